"""Modes that stop short of following, dumps of other tools, and beginnings that name no file."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from support.task_runs import TaskFiles, TaskRun, newest
from support.waiting import wait_until
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
