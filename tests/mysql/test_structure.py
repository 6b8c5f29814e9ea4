"""Structures read from a real server."""

from __future__ import annotations

import pytest

from unshard.model.table import TableName
from unshard.mysql.connection import session
from unshard.mysql.structure import read_table, table_names
from unshard.testing.servers import MariadbServer

MEMBERS = ("plain", "it's", "back\\slash", "line\nfeed", "comma,quote'", "", "é漢", "zero\0byte")


@pytest.mark.parametrize("kind", ["ENUM", "SET"])
def test_members_are_read_as_they_were_written(kind: str, source_server: MariadbServer, schema: str) -> None:
    members = [member for member in MEMBERS if kind == "ENUM" or "," not in member]
    with session(source_server.endpoint, "source") as connection:
        literals = ",".join(connection.literal(member).decode() for member in members)
        connection.query(f"CREATE DATABASE {schema}")
        connection.query(f"CREATE TABLE {schema}.t (e {kind}({literals}))".encode())
        table = read_table(connection, TableName(schema, "t"))
    assert table is not None
    assert table.columns[0].members == tuple(members)


def test_keys_counters_and_columns_of_a_table(source_server: MariadbServer, schema: str) -> None:
    source_server.run(
        f"CREATE DATABASE {schema}",
        f"CREATE TABLE {schema}.t (a INT UNSIGNED AUTO_INCREMENT, b VARCHAR(10) NOT NULL, c INT AS (d + 1) STORED,"
        " d INT NOT NULL, PRIMARY KEY (a), UNIQUE KEY u (b(3)), UNIQUE KEY v (d), KEY w (c))",
        f"INSERT INTO {schema}.t (b, d) VALUES ('x', 1)",
    )
    with session(source_server.endpoint, "source") as connection:
        table = read_table(connection, TableName(schema, "t"))
        assert TableName(schema, "t") in table_names(connection)
        assert read_table(connection, TableName(schema, "none")) is None
    assert table is not None
    assert table.identity == ("a",)
    assert {index.name for index in table.unique_keys} == {"PRIMARY", "u", "v"}
    assert [column.generated for column in table.columns] == [False, False, True, False]
    assert [column.has_default for column in table.columns] == [True, False, True, False]
    assert table.columns[0].unsigned
    assert table.columns[0].auto_increment
    assert "AUTO_INCREMENT=" not in table.create_sql
    assert type(table).from_dict(table.to_dict()) == table
