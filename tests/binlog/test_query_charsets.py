"""DDL that a client writes in its own charset makes the same table at the target."""

from __future__ import annotations

import pytest

from support.statements import LETTERS, carried_over, last_query
from unshard.mysql.connection import rows
from unshard.testing.mariadb_server import MariadbServer


@pytest.mark.parametrize("charset", LETTERS)
def test_letters_of_a_client_arrive(
    source_server: MariadbServer, target_server: MariadbServer, schema: str, charset: str
) -> None:
    there, here = carried_over(source_server, target_server, schema, charset)
    assert here == there
    assert LETTERS[charset][1] in there
    assert LETTERS[charset][2][0] in there


def test_letters_of_swe7_arrive(source_server: MariadbServer, target_server: MariadbServer, schema: str) -> None:
    """The server writes backticks of its own into what it logs for DROP TABLE."""
    sql = b"CREATE TABLE `t[` (`a{` VARCHAR(9) DEFAULT '@|~' COMMENT '`') DEFAULT CHARSET swe7"
    there, here = carried_over(source_server, target_server, schema, "swe7", sql)
    assert here == there
    assert "tÄ" in there
    assert "'Éöü'" in there
    connection = source_server.connection(schema)
    try:
        rows(connection, "SET NAMES swe7")
        connection.query(b"DROP TABLE `t[`")
    finally:
        connection.close()
    assert "`" in last_query(source_server.binlog_files()[-1].read_bytes())
