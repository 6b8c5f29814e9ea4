"""Collation ids against the servers' own list."""

from __future__ import annotations

import pytest

from unshard.mysql.collations import charset_of
from unshard.testing.mariadb_server import MariadbServer

LISTED = "SELECT id, character_set_name FROM information_schema.COLLATION_CHARACTER_SET_APPLICABILITY WHERE id > 0"


def test_every_collation_of_mariadb_has_its_charset(source_server: MariadbServer) -> None:
    listed = source_server.query(LISTED)
    assert len(listed) > 1000
    assert [(number, charset_of(number)) for number, _ in listed] == listed


@pytest.mark.parametrize("number", [0, 1000, 2000, 3400, 65535])
def test_an_unknown_collation_is_no_guess(number: int) -> None:
    with pytest.raises(KeyError):
        charset_of(number)
