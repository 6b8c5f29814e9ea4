"""A SET with an empty member: its values are the same numbers behind the dump, in the binlog and in the target."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import pyarrow as pa
import pytest

from unshard.binlog.columns import _set_text
from unshard.dump.read import read_rows
from unshard.model.table import Column, TableName
from unshard.mysql.structure import read_table
from unshard.mysql.types import set_text
from unshard.source.snapshot import open_reader
from unshard.testing.mysql_server import Mysql80Server
from unshard.testing.throwaway_server import ThrowawayServer
from unshard.testing.tidb_server import TidbServer

DEFINITIONS = ("SET('','a')", "SET('a','','b') CHARACTER SET latin1", "SET('b','a','')")
MEMBERS = (("", "a"), ("a", "", "b"), ("b", "a", ""))


@pytest.mark.parametrize("members", MEMBERS)
def test_the_log_has_a_text_of_its_own_for_each_number(members: tuple[str, ...]) -> None:
    column = Column("s", "set", "set()", members=members)
    numbers = range(1 << len(members))
    texts = _set_text(column, pa.array(numbers, pa.uint64())).to_pylist()
    assert texts == [set_text(column, number) for number in numbers]
    assert len({*texts}) == len(texts)


def test_a_set_without_an_empty_member() -> None:
    column = Column("s", "set", "set('a','b')", members=("a", "b"))
    assert [set_text(column, number) for number in range(4)] == ["", "a", "b", "a,b"]


def read(server: ThrowawayServer, name: TableName) -> list[list[Any]]:
    with closing(server.connection()) as connection:
        table = read_table(connection, name)
    assert table is not None
    with closing(open_reader(server.endpoint, text=False)) as reader:
        return [batch.column(1).to_pylist() for batch in read_rows(reader, table, ("1 = 1", ""))]


def assert_kept(server: ThrowawayServer, schema: str, *, reads: bool = True) -> None:
    """Each number is read as its text, which the server takes for that number."""
    server.run(f"CREATE DATABASE {schema}")
    for definition, members in zip(DEFINITIONS, MEMBERS, strict=True):
        name, column = TableName(schema, "t"), Column("s", "set", "set()", members=members)
        numbers = range(1 << len(members))
        texts = [set_text(column, number) for number in numbers]
        server.run(
            f"DROP TABLE IF EXISTS {name}",
            f"CREATE TABLE {name} (id INT PRIMARY KEY, s {definition})",
            *(f"INSERT INTO {name} VALUES ({number}, {number})" for number in numbers),
        )
        assert not reads or read(server, name) == [texts]
        server.run(*(f"UPDATE {name} SET s = '{text}' WHERE id = {number}" for number, text in enumerate(texts)))
        assert server.query(f"SELECT id FROM {name} WHERE CAST(s AS UNSIGNED) <> id") == []


@pytest.mark.server
def test_what_a_server_shows_without_the_member(source_server: ThrowawayServer, schema: str) -> None:
    assert_kept(source_server, schema)


@pytest.mark.server
@pytest.mark.mysql_80_program
def test_it_is_kept_by_mysql(schema: str) -> None:
    with Mysql80Server() as server:
        assert_kept(server, schema)


@pytest.mark.server
@pytest.mark.tidb_program
def test_it_is_kept_by_tidb(schema: str) -> None:
    with TidbServer() as server:
        assert_kept(server, schema, reads=False)
