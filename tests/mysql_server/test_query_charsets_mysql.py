"""DDL that a client of MySQL writes in its own charset makes the same table at the target."""

from __future__ import annotations

import pytest

from support.statements import LETTERS, carried_over
from unshard.testing.mysql_server import MysqlServer

pytestmark = pytest.mark.server


@pytest.mark.parametrize("charset", LETTERS)
def test_letters_of_a_client_arrive(
    mysql_source: MysqlServer, mysql_target: MysqlServer, schema: str, charset: str
) -> None:
    there, here = carried_over(mysql_source, mysql_target, schema, charset)
    assert here == there
    assert LETTERS[charset][1] in there
