"""Sharding groups and locks as rows: what is loaded is what was saved, and writers come one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

from unshard.model.position import Location, Position
from unshard.model.table import TableName
from unshard.mysql.connection import connect
from unshard.shard.group import ShardingGroup, TableState
from unshard.shard.lock_keeper import Outcome
from unshard.shard.sequence import DdlItem
from unshard.target.meta import MetaTables
from unshard.target.sharding import announce, done, forget_source, join, load_keepers, look, own
from unshard.target.sharding_groups import load_groups, save_group
from unshard.testing.mariadb_server import MariadbServer

TARGET, OTHER = TableName("db", "t"), TableName("db", "u`'\n")
ONE, TWO = TableName("up", "t_1"), TableName("up", "t_2")
ADD = ("ALTER TABLE `db`.`t` ADD a INT",)
SOURCES = ("s1", "s2")


@pytest.fixture
def meta(target_server: MariadbServer, schema: str) -> MetaTables:
    meta = MetaTables(schema, "task")
    connection = connect(target_server.endpoint, "target")
    meta.create(connection)
    connection.close()
    return meta


@pytest.fixture
def connection(target_server: MariadbServer) -> Iterator[Any]:
    connection = connect(target_server.endpoint, "target")
    yield connection
    connection.close()


@contextmanager
def transaction(connection: Any, end: str = "COMMIT") -> Iterator[Any]:
    with connection.cursor() as cursor:
        cursor.execute("BEGIN")
        yield cursor
        cursor.execute(end)


def at(offset: int) -> Location:
    return Location(Position("bin.000001", offset), "0-1-7")


def test_groups_are_there_again_as_they_were_saved(meta: MetaTables, connection: Any) -> None:
    item = DdlItem(at(100), at(105), ADD, {"after": [1]}, "now")
    group = ShardingGroup("s1", OTHER, {ONE: TableState(), TWO: TableState()}, resolved=3)
    for step in (group.meet(ONE, item), group.meet(ONE, item).drop(TWO, at(120)).report()):
        with transaction(connection) as cursor:
            save_group(cursor, meta, group, step)
        assert load_groups(connection, meta, "s1").groups == {OTHER: step}
        group = step
    assert load_groups(connection, meta, "s2").groups == {}
    with transaction(connection) as cursor:
        save_group(cursor, meta, group, group.resolve(at(105)))
    assert load_groups(connection, meta, "s1").groups == {}


def test_what_is_rolled_back_was_never_there(meta: MetaTables, connection: Any) -> None:
    with transaction(connection) as cursor:
        assert announce(cursor, meta, "s1", {TARGET: [ONE]}, SOURCES) == frozenset()
        announce(cursor, meta, "s2", {TARGET: [TWO]}, SOURCES)
    with transaction(connection) as cursor:
        join(cursor, meta, "s1", TARGET, ADD)
    with transaction(connection, "ROLLBACK") as cursor:
        join(cursor, meta, "s2", TARGET, ADD)
    assert look(connection, meta, "s1")[TARGET].outcome is Outcome.WAIT
    assert look(connection, meta, "s2")[TARGET].outcome is None


def test_two_sources_take_a_ddl_through(meta: MetaTables, connection: Any) -> None:
    with transaction(connection) as cursor:
        announce(cursor, meta, "s1", {TARGET: [ONE], OTHER: [TWO]}, SOURCES)
        join(cursor, meta, "s1", TARGET, ADD)
    assert look(connection, meta, "s1")[TARGET].outcome is Outcome.WAIT
    with transaction(connection) as cursor:
        announce(cursor, meta, "s2", {TARGET: [TWO]}, SOURCES)
        join(cursor, meta, "s2", TARGET, ADD)
    assert look(connection, meta, "s1")[TARGET].outcome is Outcome.EXECUTE
    with transaction(connection) as cursor:
        assert not own(cursor, meta, "s3", TARGET, [ONE])
        done(cursor, meta, "s1", TARGET)
        assert own(cursor, meta, "s3", TARGET, [ONE])
    assert look(connection, meta, "s2")[TARGET].outcome is Outcome.SKIP
    with transaction(connection) as cursor:
        done(cursor, meta, "s2", TARGET)
        own(cursor, meta, "s3", TARGET, [])
    assert look(connection, meta, "s2") == {}
    assert {keeper.target: keeper.gone for keeper in load_keepers(connection, meta)} == {TARGET: 1, OTHER: 0}
    with transaction(connection) as cursor:
        forget_source(cursor, meta, "s1")
    found = {keeper.target: (set(keeper.members), dict(keeper.away)) for keeper in load_keepers(connection, meta)}
    assert found == {TARGET: ({"s2"}, {"s1": 1}), OTHER: (set(), {"s1": 0})}


def test_sources_that_report_at_once_lose_nothing(meta: MetaTables, target_server: MariadbServer) -> None:
    names = [f"s{number}" for number in range(4)]

    def report(source: str) -> None:
        connection = connect(target_server.endpoint, "target")
        with transaction(connection) as cursor:
            announce(cursor, meta, source, {TARGET: [ONE]}, names)
        for _ in range(5):
            with transaction(connection) as cursor:
                join(cursor, meta, source, TARGET, ADD)
            while (answer := look(connection, meta, source)[TARGET]).outcome is Outcome.WAIT:
                pass
            executed.extend([source] * (answer.outcome is Outcome.EXECUTE))
            with transaction(connection) as cursor:
                done(cursor, meta, source, TARGET)
        connection.close()

    executed: list[str] = []
    with ThreadPoolExecutor(len(names)) as pool:
        list(pool.map(report, names))
    assert len(executed) == 5
    connection = connect(target_server.endpoint, "target")
    (keeper,) = load_keepers(connection, meta)
    connection.close()
    assert (keeper.locks, keeper.gone) == ((), 5)
