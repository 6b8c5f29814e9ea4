"""The forms of text that step *causality* compares, held to all collations of a real MariaDB."""

from __future__ import annotations

from support.coarse_forms import assert_coarser
from unshard.testing.mariadb_server import MariadbServer

_COLLATIONS = """
SELECT FULL_COLLATION_NAME, CHARACTER_SET_NAME FROM information_schema.COLLATION_CHARACTER_SET_APPLICABILITY
 WHERE COLLATION_NAME NOT LIKE 'uca1400%' OR CHARACTER_SET_NAME = 'utf8mb4'
"""


def test_no_collation_calls_two_texts_equal_that_have_two_forms(target_server: MariadbServer, schema: str) -> None:
    collations = [(str(name), str(charset)) for name, charset in target_server.query(_COLLATIONS)]
    assert assert_coarser(target_server, schema, collations) > 10_000
