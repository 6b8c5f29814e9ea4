"""Modes that stop short of following, dumps of other tools, and beginnings that name no file."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from support.target_servers import BUILT_IN_COLLATIONS
from support.task_runs import TaskFiles, TaskRun, newest
from support.waiting import wait_until
from unshard.model.table import TableName
from unshard.testing.compare import assert_equal
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.programs import program
from unshard.testing.workload import Workload, WorkPlan

pytestmark = [pytest.mark.server, pytest.mark.spark]


def filled(server: MariadbServer, schema: str) -> Workload:
    work = Workload(server, WorkPlan(schema, threads=1))
    work.create()
    work.fill(200)
    return work


@pytest.mark.mydumper
def test_load_takes_what_mydumper_wrote(
    spark: SparkSession, source_server: MariadbServer, target_server: MariadbServer, schema: str, tmp_path: Path
) -> None:
    work = filled(source_server, schema)
    login = ["--host", "127.0.0.1", "--port", str(source_server.port), "--user", "root"]
    folder = tmp_path / "by-mydumper"
    subprocess.run(
        [program("mydumper"), *login, "--database", f"{schema}_1", "--rows", "50", "--outputdir", str(folder)],
        check=True,
    )
    keys: dict[str, Any] = {"task-mode": "load", "loaders": {"own": {"dir": str(folder)}}}
    files = TaskFiles(tmp_path, schema, {"s1": source_server}, target_server, (f"{schema}_1",), keys=keys).write()
    for _ in range(2):  # a second start finds all of it loaded
        run = TaskRun(files, spark).start()
        run.crew.join()
    for name in work.plan.names:
        assert_equal([(source_server, name)], (target_server, name))
    assert (folder / "metadata").exists()


@pytest.fixture
def zoned(source_server: MariadbServer, schema: str) -> Iterator[Callable[[str], None]]:
    """`zoned(zone)`: the source's time zone is that one, and it has a table with a moment."""

    def make(zone: str) -> None:
        source_server.run(
            f"CREATE DATABASE {schema}",
            f"CREATE TABLE {schema}.t (id INT PRIMARY KEY, ts TIMESTAMP NOT NULL)",
            f"INSERT INTO {schema}.t VALUES (1, FROM_UNIXTIME(1767225600))",
            f"SET GLOBAL time_zone = '{zone}'",
        )

    ((before,),) = source_server.query("SELECT @@global.time_zone")
    yield make
    source_server.run(f"SET GLOBAL time_zone = '{before}'")


@pytest.mark.mydumper
@pytest.mark.parametrize("zone", ["+00:00", "+05:00"])
def test_a_dump_that_does_not_tell_its_time_zone(
    zone: str,
    zoned: Callable[[str], None],
    spark: SparkSession,
    source_server: MariadbServer,
    target_server: MariadbServer,
    schema: str,
    tmp_path: Path,
) -> None:
    zoned(zone)
    login = ["--host", "127.0.0.1", "--port", str(source_server.port), "--user", "root"]

    def dumped(name: str, *flags: str) -> dict[str, Any]:
        place = ["--database", schema, "--outputdir", str(tmp_path / name)]
        subprocess.run([program("mydumper"), *login, *place, *flags], check=True)
        return {"task-mode": "load", "loaders": {"own": {"dir": str(tmp_path / name)}}}

    def run(name: str, keys: dict[str, Any]) -> TaskRun:
        files = TaskFiles(tmp_path, name, {"s1": source_server}, target_server, (schema,), keys=keys)
        return TaskRun(files.write(), spark).start()

    keys = dumped("in_zone", "--skip-tz-utc")
    error = run(schema, keys).error()
    assert "LOAD-028" in str(error)
    assert "set `timezone: UTC` in the task's file and start again" in str(error)
    if zone == "+00:00":
        run(schema, {**keys, "timezone": "UTC"}).crew.join()
    else:
        run(f"{schema}_anew", dumped("in_utc")).crew.join()
    assert target_server.query(f"SELECT id, UNIX_TIMESTAMP(ts) FROM {schema}.t") == [(1, 1767225600)]


@pytest.mark.scenarios
def test_dump_writes_files_and_leaves_the_target_alone(
    spark: SparkSession, source_server: MariadbServer, target_server: MariadbServer, schema: str, tmp_path: Path
) -> None:
    filled(source_server, schema)
    keys = {"task-mode": "dump"}
    files = TaskFiles(tmp_path, schema, {"s1": source_server}, target_server, (f"{schema}_1",), keys=keys).write()
    TaskRun(files, spark).start().crew.join()
    assert {path.name.split(".")[1] for path in tmp_path.rglob("*.parquet")} == {"table_1", "table_2"}
    assert not target_server.query("SELECT 1 FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = %s", (f"{schema}_1",))


@pytest.mark.parametrize("by_gtid", [True, False], ids=["gtid alone", "now"])
def test_incremental_without_a_file_begins_at_the_right_transaction(
    by_gtid: bool,
    spark: SparkSession,
    source_server: MariadbServer,
    target_server: MariadbServer,
    schema: str,
    tmp_path: Path,
) -> None:
    work = filled(source_server, schema)
    filled(target_server, schema)
    ((gtid,),) = source_server.query("SELECT @@gtid_binlog_pos")
    if by_gtid:
        work.run(transactions=30)
    files = TaskFiles(
        tmp_path,
        schema,
        {"s1": source_server},
        target_server,
        (f"{schema}_1",),
        keys={"task-mode": "incremental"},
        instance={"meta": {"binlog-gtid": gtid}} if by_gtid else {},
        source={"enable-gtid": by_gtid},
    ).write()
    before = newest(source_server)
    with TaskRun(files, spark) as run:
        run.reach("sync")
        if not by_gtid:
            wait_until(lambda: run.crew.readings()[0].sync is not None, "the sync has its place")
            location = run.sync.location
            assert location is not None
            assert location.position >= before
        work.run(transactions=30)
        run.catch_up()
        assert run.sync.missing == 0
    for name in work.plan.names:
        assert_equal([(source_server, name)], (target_server, name))


@pytest.fixture
def two_domains() -> Iterator[MariadbServer]:
    """A source of its own: what is logged in a domain stays in the GTID position for good."""
    with MariadbServer(BUILT_IN_COLLATIONS) as server:
        yield server


def test_changes_that_a_set_of_two_domains_has_already_do_no_harm_again(
    spark: SparkSession, two_domains: MariadbServer, target_server: MariadbServer, schema: str, tmp_path: Path
) -> None:
    """The replica was behind in one domain, and ahead in the other: what it had is applied again, in safe mode."""
    name = TableName(f"{schema}_1", "t")
    other = "SET SESSION gtid_domain_id = 77"
    for server in (two_domains, target_server):
        server.run(f"CREATE DATABASE {name.schema}", f"CREATE TABLE {name} (id INT PRIMARY KEY, v INT)")
    two_domains.run(f"INSERT INTO {name} VALUES (1, 1)")
    two_domains.run(other, f"INSERT INTO {name} VALUES (2, 1)")
    ((before,),) = two_domains.query("SELECT @@gtid_binlog_pos")
    two_domains.run(other, f"INSERT INTO {name} VALUES (3, 1)")
    two_domains.run(f"INSERT INTO {name} VALUES (4, 1)")
    ((after,),) = two_domains.query("SELECT @@gtid_binlog_pos")
    target_server.run(f"INSERT INTO {name} VALUES (1, 100), (2, 100), (4, 100)")
    late = {one for one in before.split(",") if one.startswith("77-")}
    gtid = ",".join([*(one for one in after.split(",") if not one.startswith("77-")), *late])
    two_domains.run(f"INSERT INTO {name} VALUES (5, 1)")
    files = TaskFiles(
        tmp_path,
        schema,
        {"s1": two_domains},
        target_server,
        (name.schema,),
        keys={"task-mode": "incremental"},
        instance={"meta": {"binlog-gtid": gtid}},
        source={"enable-gtid": True},
    ).write()
    with TaskRun(files, spark) as run:
        run.reach("sync")
        run.catch_up()
        assert target_server.query(f"SELECT * FROM {name} ORDER BY id") == [(1, 100), (2, 100), (3, 1), (4, 1), (5, 1)]
        two_domains.run(f"UPDATE {name} SET v = 9")
        run.catch_up()
    assert_equal([(two_domains, name)], (target_server, name))


def test_values_that_a_sequence_gives_out_are_left_out(
    spark: SparkSession, source_server: MariadbServer, target_server: MariadbServer, schema: str, tmp_path: Path
) -> None:
    """Neither is the sequence copied, as the list of what is not migrated says."""
    name = TableName(f"{schema}_1", "t")
    source_server.run(
        f"CREATE DATABASE {name.schema}",
        f"CREATE TABLE {name} (id INT PRIMARY KEY, v INT)",
        f"CREATE SEQUENCE {name.schema}.numbers",
    )
    files = TaskFiles(tmp_path, schema, {"s1": source_server}, target_server, (name.schema,)).write()
    with TaskRun(files, spark) as run:
        run.reach("sync")
        source_server.run(f"INSERT INTO {name} VALUES (NEXT VALUE FOR {name.schema}.numbers, 1)")
        run.catch_up()
        source_server.run(f"SELECT NEXT VALUE FOR {name.schema}.numbers", f"INSERT INTO {name} VALUES (9, 1)")
        run.catch_up()
    assert_equal([(source_server, name)], (target_server, name))
    assert target_server.query("SHOW TABLES FROM " + name.schema) == [("t",)]
