"""The forms of text that step *causality* compares, held to all collations of a real MySQL."""

from __future__ import annotations

from support.coarse_forms import assert_coarser
from unshard.testing.mysql_server import MysqlServer

_COLLATIONS = "SELECT COLLATION_NAME, CHARACTER_SET_NAME FROM information_schema.COLLATION_CHARACTER_SET_APPLICABILITY"


def test_no_collation_calls_two_texts_equal_that_have_two_forms(mysql_target: MysqlServer, schema: str) -> None:
    collations = [(str(name), str(charset)) for name, charset in mysql_target.query(_COLLATIONS)]
    assert assert_coarser(mysql_target, schema, collations) > 1_000
