"""XA transactions among ordinary ones: rows come at XA COMMIT, once, and never at XA ROLLBACK, over restarts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from support.task_runs import TaskFiles, TaskRun, newest
from support.waiting import wait_until
from unshard.errors import BinlogError
from unshard.model.position import Position
from unshard.model.table import TableName
from unshard.testing.binlog_count import count_by_key, row_events
from unshard.testing.compare import assert_equal
from unshard.testing.mariadb_server import MariadbServer

pytestmark = [pytest.mark.server, pytest.mark.spark]


class Branches:
    """XA transactions, each in a session of its own: a prepared one outlives it."""

    def __init__(self, server: MariadbServer, table: TableName) -> None:
        self.server, self.table = server, table

    def prepare(self, xid: str, *statements: str) -> None:
        self._run(f"XA START '{xid}'", *statements, f"XA END '{xid}'", f"XA PREPARE '{xid}'")

    def insert(self, xid: str, *keys: int) -> None:
        self.prepare(xid, *(f"INSERT INTO {self.table} VALUES ({key}, '{xid}')" for key in keys))

    def commit(self, xid: str) -> None:
        self._run(f"XA COMMIT '{xid}'")

    def rollback(self, xid: str) -> None:
        self._run(f"XA ROLLBACK '{xid}'")

    def _run(self, *statements: str) -> None:
        # a prepared transaction can be ended elsewhere once its session has gone
        connection = self.server.connection()
        number = connection.thread_id()
        with connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
        connection.close()
        gone = "SELECT 1 FROM information_schema.PROCESSLIST WHERE ID = %s"
        wait_until(lambda: not self.server.query(gone, (number,)), "the session is over")


@pytest.fixture
def table(source_server: MariadbServer, schema: str) -> TableName:
    name = TableName(schema, "t")
    source_server.run(f"CREATE DATABASE {schema}", f"CREATE TABLE {name} (id INT PRIMARY KEY, v VARCHAR(20))")
    return name


@pytest.fixture
def branches(source_server: MariadbServer, table: TableName) -> Iterator[Branches]:
    yield Branches(source_server, table)
    for _, length, _, data in source_server.query("XA RECOVER"):
        source_server.run(f"XA ROLLBACK '{data[:length].decode()}'")


@pytest.fixture
def files(source_server: MariadbServer, target_server: MariadbServer, schema: str, tmp_path: Path) -> TaskFiles:
    return TaskFiles(
        tmp_path, schema, {"s1": source_server}, target_server, (schema,), syncer={"compact": False}
    ).write()


def keys(server: MariadbServer, table: TableName) -> list[int]:
    return [key for (key,) in server.query(f"SELECT id FROM {table} ORDER BY id")]


def kept(files: TaskFiles) -> list[Any]:
    return files.target.query(f"SELECT xid FROM `{files.meta}`.`{files.name}_prepared_xa`")


@pytest.mark.scenarios
def test_rows_come_with_the_commit_and_once(
    spark: SparkSession,
    source_server: MariadbServer,
    target_server: MariadbServer,
    table: TableName,
    branches: Branches,
    files: TaskFiles,
) -> None:
    with TaskRun(files, spark) as run:
        run.reach("sync")
        branches.insert(f"{table.schema}-a", 1, 2)
        branches.insert(f"{table.schema}-b", 3)
        branches.insert(f"{table.schema}-c", 4)
        source_server.run(f"INSERT INTO {table} VALUES (10, 'plain')")
        run.catch_up()
        assert keys(target_server, table) == [10]
        assert len(kept(files)) == 3
        branches.commit(f"{table.schema}-b")
        branches.rollback(f"{table.schema}-c")
        run.catch_up()
        assert keys(target_server, table) == [3, 10]
    source_server.run("FLUSH BINARY LOGS", f"INSERT INTO {table} VALUES (11, 'plain')")
    with TaskRun(files, spark) as run:
        run.reach("sync")
        run.catch_up()
        assert keys(target_server, table) == [3, 10, 11]
        assert len(kept(files)) == 1
    source_server.run("FLUSH BINARY LOGS")
    branches.commit(f"{table.schema}-a")
    with TaskRun(files, spark) as run:
        run.reach("sync")
        run.catch_up()
        branches.prepare(
            f"{table.schema}-a", f"UPDATE {table} SET v = 'again' WHERE id = 1", f"DELETE FROM {table} WHERE id = 2"
        )
        run.catch_up()
        assert keys(target_server, table) == [1, 2, 3, 10, 11]
        branches.commit(f"{table.schema}-a")
        run.catch_up()
    assert kept(files) == []
    assert_equal([(source_server, table)], (target_server, table))
    counts = count_by_key(row_events(target_server, [table]))
    inserted = {("INSERT", str(key)): 1 for key in (1, 2, 3, 10, 11)}
    expected = {**inserted, ("UPDATE", "1"): 1, ("DELETE", "2"): 1}
    assert {(kind, key[0]): times for (_, kind, key), times in counts.items()} == expected


def test_what_was_prepared_before_the_task_is_found_in_the_log(
    spark: SparkSession,
    source_server: MariadbServer,
    target_server: MariadbServer,
    table: TableName,
    branches: Branches,
    files: TaskFiles,
) -> None:
    source_server.run("FLUSH BINARY LOGS")
    branches.insert(f"{table.schema}-a", 1)
    branches.insert(f"{table.schema}-b", 2)
    with TaskRun(files, spark) as run:
        run.reach("sync")
        assert keys(target_server, table) == []
        branches.commit(f"{table.schema}-a")
        branches.rollback(f"{table.schema}-b")
        run.catch_up()
    assert keys(target_server, table) == [1]
    assert sum(row_events(target_server, [table]).values()) == 1


def test_a_commit_whose_rows_nobody_has_stops_the_task(
    spark: SparkSession, source_server: MariadbServer, branches: Branches, files: TaskFiles, table: TableName
) -> None:
    branches.insert(f"{table.schema}-a", 1)
    source_server.run("FLUSH BINARY LOGS")
    run = TaskRun(files, spark).start()
    run.reach("sync")
    branches.commit(f"{table.schema}-a")
    at = newest(source_server)
    error = run.error()
    assert isinstance(error, BinlogError)
    assert error.code == "BINLOG-034"
    assert f"{table.schema}-a".encode().hex() in error.message
    assert Position.parse(str(error.where.position)).file == at.file
