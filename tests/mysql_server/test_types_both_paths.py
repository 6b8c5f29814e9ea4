"""Dump and binlog give one value for each type on a real MySQL and on a newer MariaDB too."""

from __future__ import annotations

import struct

import pyarrow as pa
import pytest

from support.both_paths import by_dump, make
from unshard.model.table import TableName
from unshard.mysql.structure import read_table
from unshard.sync.changes.decode import FOREVER
from unshard.testing.mysql_server import MysqlServer, OtherMariadbServer
from unshard.testing.throwaway_server import ThrowawayServer
from unshard.testing.type_cases import COMMON, MARIADB, Cases

LATE = {"timestamp(6) null default null": ("'2038-01-19 03:14:08'", "'2106-02-07 06:28:15.999999'")}
"""TIMESTAMP since MariaDB 11.5."""


def exact(values: pa.ChunkedArray | pa.Array) -> list[object]:
    return [struct.pack("<d", value) if isinstance(value, float) else value for value in values.to_pylist()]


def assert_both_agree(server: ThrowawayServer, schema: str, cases: Cases) -> None:
    made = make(server, schema, cases)
    logged, dumped = made.by_binlog(), by_dump(server, made.tables)
    for definition, (name, column) in made.columns.items():
        assert logged[name].schema.field(column) == dumped[name].schema.field(column), definition
        assert exact(logged[name].column(column)) == exact(dumped[name].column(column)), definition
    server.run(f"DROP DATABASE {schema}")


@pytest.mark.parametrize("server", ["mysql_source", "mysql_80", "mysql_56", "old_mariadb"])
def test_what_all_servers_have(server: str, schema: str, request: pytest.FixtureRequest) -> None:
    assert_both_agree(request.getfixturevalue(server), schema, COMMON)


@pytest.mark.parametrize("cases", [COMMON, {**MARIADB, **LATE}], ids=["common", "own"])
def test_a_newer_mariadb(other_mariadb: OtherMariadbServer, schema: str, cases: Cases) -> None:
    assert_both_agree(other_mariadb, schema, cases)


def test_what_a_newer_mariadb_calls_the_end_of_time(other_mariadb: OtherMariadbServer, schema: str) -> None:
    other_mariadb.run(
        f"CREATE DATABASE {schema}",
        f"CREATE TABLE {schema}.t (id int) WITH SYSTEM VERSIONING",
        f"INSERT INTO {schema}.t VALUES (1)",
    )
    connection = other_mariadb.connection()
    table = read_table(connection, TableName(schema, "t"))
    connection.close()
    assert table is not None
    assert table.row_end is not None
    ((end,),) = other_mariadb.query(f"SELECT CAST(row_end AS CHAR) FROM {schema}.t")
    assert end == FOREVER[1]
    other_mariadb.run(f"DROP DATABASE {schema}")


def test_an_enum_of_the_most_members(mysql_source: MysqlServer, schema: str) -> None:
    """65,535 members are what a number of two bytes can tell apart. The server itself takes most of the time."""
    members = ",".join(f"'m{number}'" for number in range(1, 65536))
    assert_both_agree(mysql_source, schema, {f"enum({members})": ("1", "255", "256", "257", "32768", "65535", "NULL")})
