"""Tasks whose source's host has summer time: a TIMESTAMP of winter and of summer becomes a DATETIME."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.shard_runs import Shards
from support.task_runs import TaskFiles, TaskRun
from support.time_zones import server_of, server_that_knows
from unshard.errors import LoadError, SyncError
from unshard.model.table import TableName
from unshard.testing.compare import assert_equal
from unshard.testing.mariadb_server import MariadbServer

pytestmark = [pytest.mark.server, pytest.mark.spark]
BERLIN = "Europe/Berlin"
OF_THE_HOST = "SET time_zone = 'SYSTEM'"
LATE = "2024-01-15 20:00:00"
WINTER, SUMMER = "'2024-01-15 11:00:00'", "'2024-07-15 10:00:00'"


@pytest.fixture(scope="module")
def berlin() -> Iterator[MariadbServer]:
    with server_of(BERLIN) as server:
        yield server


@pytest.fixture(scope="module")
def knowing() -> Iterator[MariadbServer]:
    """A target that knows the name of the zone."""
    with server_that_knows(BERLIN) as server:
        yield server


@pytest.mark.parametrize("ghost", [False, True], ids=["plain", "gh-ost"])
def test_the_rows_have_the_offset_of_their_own_time(
    ghost: bool, berlin: MariadbServer, knowing: MariadbServer, spark: SparkSession, schema: str, tmp_path: Path
) -> None:
    """The ALTER of a ghost table, which is empty, has no time zone in the log."""
    name = TableName(schema, "t")
    statements = ["ALTER TABLE t MODIFY at DATETIME"]
    if ghost:
        statements = [
            "CREATE TABLE _t_gho LIKE t",
            "ALTER TABLE _t_gho MODIFY at DATETIME",
            "INSERT INTO _t_gho SELECT * FROM t",
            "RENAME TABLE t TO _t_del, _t_gho TO t",
        ]
    berlin.run(
        f"CREATE DATABASE {schema}",
        f"CREATE TABLE {name} (id INT PRIMARY KEY, at TIMESTAMP NULL)",
        f"INSERT INTO {name} VALUES (1, {WINTER}), (2, {SUMMER})",
    )
    files = TaskFiles(tmp_path, schema, {"s1": berlin}, knowing, (schema,)).write()
    with TaskRun(files, spark) as run:
        run.reach("sync")
        berlin.run(OF_THE_HOST, *statements, f"INSERT INTO {name} VALUES (3, {WINTER})", database=schema)
        run.catch_up()
    assert_equal([(berlin, name)], (knowing, name))
    there = [str(value) for (value,) in knowing.query(f"SELECT at FROM {name} ORDER BY id")]
    assert there[:2] == ["2024-01-15 12:00:00", "2024-07-15 12:00:00"]


@pytest.mark.parametrize("mode", ["pessimistic", "optimistic"])
@pytest.mark.parametrize("last", [0, pytest.param(1, marks=pytest.mark.scenarios)])
def test_a_shard_without_rows_has_the_zone_of_the_others(
    mode: str,
    last: int,
    berlin: MariadbServer,
    knowing: MariadbServer,
    spark: SparkSession,
    schema: str,
    tmp_path: Path,
) -> None:
    """Their session has another zone than the host, and only shard 0 has rows."""
    row = "id BIGINT NOT NULL PRIMARY KEY, v VARCHAR(20) NOT NULL, at TIMESTAMP NULL"
    shards = Shards(schema, {"s1": berlin}, knowing, tmp_path, row=row, keys={"shard-mode": mode})
    berlin.run(f"UPDATE {shards.at(0)} SET at = {SUMMER}", f"DELETE FROM {shards.at(1)}")
    with TaskRun(shards.files(), spark) as run:
        run.reach("sync")
        run.catch_up()
        for table in (1 - last, last):
            berlin.run("SET time_zone = '+05:00'", f"ALTER TABLE {shards.at(table)} MODIFY at DATETIME")
        shards.settle(run)
    (here,) = berlin.query(f"SELECT at FROM {shards.at(0)}")
    assert knowing.query(f"SELECT at FROM {shards.merged}") == [here]
    assert str(here[0]) == "2024-07-15 15:00:00"


@pytest.mark.scenarios
def test_generated_columns_that_depend_on_the_zone(
    target_server: MariadbServer, spark: SparkSession, schema: str, tmp_path: Path
) -> None:
    """The copy is refused, and so is the first row after an ALTER; columns of the target that convert take all rows."""
    copied, altered = TableName(schema, "t"), TableName(schema, "u")
    local = "SET time_zone = '+08:00'"
    with MariadbServer({"default_time_zone": "+08:00"}) as china:
        china.run(
            f"CREATE DATABASE {schema}",
            f"CREATE TABLE {copied} (id INT PRIMARY KEY, n INT, at TIMESTAMP NULL, day DATE AS (DATE(at)) STORED,"
            " UNIQUE (n, day))",
            f"CREATE TABLE {altered} (id INT PRIMARY KEY, at TIMESTAMP NULL)",
            local,
            f"INSERT INTO {copied} (id, n, at) VALUES (1, 1, '{LATE}'), (2, 1, '2024-01-16 04:00:00')",
            f"INSERT INTO {altered} VALUES (1, '{LATE}'), (2, '2024-01-16 04:00:00')",
        )
        files = TaskFiles(tmp_path, schema, {"s1": china}, target_server, (schema,)).write()
        with TaskRun(files, spark).failing() as run:
            error = run.error()
        assert isinstance(error, LoadError)
        assert error.code == "LOAD-004"
        converted = "DATE(CONVERT_TZ(at, '+00:00', '+08:00'))"
        target_server.run(f"ALTER TABLE {copied} MODIFY day DATE AS ({converted}) STORED")
        with TaskRun(files, spark) as run:
            run.reach("sync")
            china.run(local, f"INSERT INTO {copied} (id, n, at) VALUES (3, 1, '2024-01-17 04:00:00')")
            china.run(local, f"ALTER TABLE {copied} MODIFY n BIGINT, ADD v VARCHAR(9) DEFAULT 'x'")
            china.run(f"UPDATE {copied} SET n = 2 WHERE id = 1")
            run.catch_up()
        assert_equal([(china, copied)], (target_server, copied))
        china.run(local, f"ALTER TABLE {altered} ADD hour INT AS (HOUR(at)) STORED")
        china.run(local, f"INSERT INTO {altered} (id, at) VALUES (4, '2024-01-16 04:00:00')")
        with TaskRun(files, spark).failing() as run:
            error = run.error()
        assert isinstance(error, SyncError)
        assert error.code == "SYNC-007"
        target_server.run(f"ALTER TABLE {altered} MODIFY hour INT AS (HOUR(CONVERT_TZ(at, '+00:00', '+08:00'))) STORED")
        with TaskRun(files, spark) as run:
            run.reach("sync")
            run.catch_up()
        assert_equal([(china, altered)], (target_server, altered))
        assert target_server.query(f"SELECT hour FROM {altered} ORDER BY id") == [(20,), (4,), (4,)]
