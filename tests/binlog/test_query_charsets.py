"""DDL that a client writes in its own charset makes the same table at the target."""

from __future__ import annotations

import pytest

from unshard.testing.servers import MariadbServer
from unshard.testing.statements import LETTERS, carried_over


@pytest.mark.parametrize("charset", LETTERS)
def test_letters_of_a_client_arrive(
    source_server: MariadbServer, target_server: MariadbServer, schema: str, charset: str
) -> None:
    there, here = carried_over(source_server, target_server, schema, charset)
    assert here == there
    assert LETTERS[charset][1] in there
    assert LETTERS[charset][2][0] in there
