"""Structures read from a real server."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace

import pytest

from unshard.load.create_statements import create_table
from unshard.model.shape import misfits
from unshard.model.table import TableName
from unshard.mysql.connection import rows, session
from unshard.mysql.structure import read_table, table_names, without_hashes
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.mysql_server import Mysql80Server

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


def test_columns_that_unique_keys_by_a_hash_hide(source_server: MariadbServer, schema: str) -> None:
    """They stand behind all others, as in the binlog; what has no such keys has none."""
    source_server.run(
        f"CREATE DATABASE {schema}",
        f"CREATE TABLE {schema}.t (db_row_hash_1 INT, s TEXT, b BLOB, v VARCHAR(9), UNIQUE (s), UNIQUE (v) USING HASH,"
        " KEY (b(9)), UNIQUE (db_row_hash_1)) WITH SYSTEM VERSIONING",
        f"CREATE TABLE {schema}.m (v VARCHAR(9), UNIQUE (v)) ENGINE=MEMORY",
    )
    with session(source_server.endpoint, "source") as connection:
        table = read_table(connection, TableName(schema, "t"))
        memory = read_table(connection, TableName(schema, "m"))
    assert table is not None
    assert memory is not None
    hidden = ["row_start", "row_end", "DB_ROW_HASH_2", "DB_ROW_HASH_3"]
    assert [column.name for column in table.columns[4:]] == hidden
    assert all(column.generated and column.invisible for column in table.columns[4:])
    assert without_hashes(table).columns == table.columns[:-2]
    assert [column.name for column in memory.columns] == ["v"]


@pytest.mark.server
@pytest.mark.mysql_80_program
def test_a_type_that_newer_servers_name_otherwise(target_server: MariadbServer, schema: str) -> None:
    """MySQL 8.0.11 and newer show GEOMETRYCOLLECTION as geomcollection, which no other server knows."""
    name = TableName(schema, "t")
    columns = "id INT PRIMARY KEY, g GEOMETRYCOLLECTION, geomcollection INT, c VARCHAR(20) DEFAULT 'geomcollection'"
    target_server.run(f"CREATE DATABASE {schema}", f"CREATE TABLE {name} ({columns})")
    with Mysql80Server() as server:
        server.run(f"CREATE DATABASE {schema}", f"CREATE TABLE {name} ({columns})")
        with closing(server.connection()) as connection:
            here = read_table(connection, name)
    with closing(target_server.connection()) as connection:
        there = read_table(connection, name)
        assert here is not None
        assert there is not None
        earlier = replace(here, columns=(here.columns[0], replace(here.columns[1], type="geomcollection")))
        assert misfits(here, there) == misfits(there, here) == []
        assert misfits(earlier, replace(there, columns=there.columns[:2])) == []
        rows(connection, f"DROP TABLE {name}")
        text = here.create_sql.replace("utf8mb4_0900_ai_ci", "utf8mb4_general_ci")
        rows(connection, create_table(text, schema, name, lambda one: one))
        assert read_table(connection, name) == there
