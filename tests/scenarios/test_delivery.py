"""At-least-once delivery, safe mode and dumps without a lock, as a user meets them: whole tasks on real servers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from support.noted_plans import noted_plans
from support.task_runs import TaskFiles, TaskRun, at_work, newest
from support.waiting import wait_until
from unshard.dump.metadata import read_header
from unshard.errors import SyncError, UnshardError
from unshard.model.position import Position
from unshard.model.table import TableName
from unshard.sync.planning import planner as planning
from unshard.testing.compare import assert_equal
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.workload import Workload, WorkPlan

pytestmark = [pytest.mark.server, pytest.mark.spark]
AT_LEAST_ONCE = {"delivery": "at-least-once", "task-mode": "incremental"}


@pytest.fixture
def table(source_server: MariadbServer, target_server: MariadbServer, schema: str) -> TableName:
    """A table with two unique keys, the same three rows on both ends."""
    name = TableName(schema, "t")
    for server in (source_server, target_server):
        server.run(
            f"CREATE DATABASE {schema}",
            f"CREATE TABLE {name} (id INT PRIMARY KEY, u INT UNIQUE, v VARCHAR(20))",
            f"INSERT INTO {name} VALUES (1, 10, 'a'), (2, 20, 'b'), (3, 30, 'c')",
        )
    return name


def files_of(
    source: MariadbServer, target: MariadbServer, name: TableName, folder: Path, at: Position, **syncer: Any
) -> TaskFiles:
    """An incremental task at least once from `at`, whose checkpoint moves only when it has to."""
    return TaskFiles(
        folder,
        name.schema,
        {"s1": source},
        target,
        (name.schema,),
        keys=AT_LEAST_ONCE,
        instance={"meta": {"binlog-name": at.file, "binlog-pos": at.offset}},
        syncer={"checkpoint-flush-interval": 1000, **syncer},
    ).write()


def places(files: TaskFiles) -> tuple[Position, Position | None]:
    """The checkpoint of `s1`, and its exit point."""
    ((name, offset, exit_name, exit_offset),) = files.target.query(
        "SELECT binlog_name, binlog_pos, exit_safe_binlog_name, exit_safe_binlog_pos"
        f" FROM `{files.meta}`.`{files.name}_syncer_checkpoint` WHERE is_global AND id = 's1'"
    )
    return Position(name, offset), Position(exit_name, exit_offset) if exit_name else None


def test_no_batch_is_shuffled(
    table: TableName,
    spark: SparkSession,
    source_server: MariadbServer,
    target_server: MariadbServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where Spark loses the rows of a shuffle it attempts the stage again, and a task's attempts count from 0.

    A task would not know that an earlier attempt has applied some of its changes.
    """
    monkeypatch.setattr(planning, "SHUFFLE_SLOTS", 1)
    monkeypatch.setattr(planning, "SHUFFLE_BYTES", 0)
    for server in (source_server, target_server):
        server.run(f"ALTER TABLE {table} DROP KEY u")
    run = TaskRun(files_of(source_server, target_server, table, tmp_path, newest(source_server)), spark)
    ran = noted_plans(run.sync_unit())
    with run:
        run.catch_up()
        source_server.run(f"UPDATE {table} SET v = 'd'", f"INSERT INTO {table} VALUES (7, 70, 'g')")
        run.catch_up()
    assert [plan.shuffled for plan in ran] == [False] * len(ran) != []
    assert_equal([(source_server, table)], (target_server, table))


def test_an_error_leaves_an_exit_point_and_safe_mode_ends_there(
    table: TableName, spark: SparkSession, source_server: MariadbServer, target_server: MariadbServer, tmp_path: Path
) -> None:
    at = newest(source_server)
    files = files_of(source_server, target_server, table, tmp_path, at, **{"safe-mode-duration": "10ms"})
    with TaskRun(files, spark) as run:
        source_server.run(f"UPDATE {table} SET v = 'd' WHERE id = 1")
        run.catch_up()
        assert places(files)[0] == at  # nothing is durable of it
        wait_until(lambda: not run.sync.safe_mode, "out of safe mode")
    assert places(files) == (newest(source_server), newest(source_server))
    target_server.run(f"INSERT INTO {table} VALUES (4, 40, 'in the way')")
    begin = newest(source_server)
    clash = f"INSERT INTO {table} VALUES (4, 41, 'e')", f"UPDATE {table} SET id = 5, u = 40 WHERE id = 1"
    source_server.run("BEGIN", *clash, "COMMIT")
    failing = TaskRun(files, spark).start()
    error = failing.error()
    assert isinstance(error, SyncError)
    assert error.code == "SYNC-003"
    assert places(files) == (begin, newest(source_server))
    source_server.run(f"INSERT INTO {table} VALUES (6, 60, 'f')")
    with TaskRun(files, spark) as run:
        run.catch_up()
        assert run.sync.safe_mode == ""
    assert_equal([(source_server, table)], (target_server, table))


def test_a_restart_without_an_exit_point_is_in_safe_mode_for_its_time(
    table: TableName, spark: SparkSession, source_server: MariadbServer, target_server: MariadbServer, tmp_path: Path
) -> None:
    at, ((gtid,),) = newest(source_server), source_server.query("SELECT @@gtid_binlog_pos")
    files = files_of(source_server, target_server, table, tmp_path, at)
    source_server.run(
        f"INSERT INTO {table} VALUES (4, 40, 'd')",
        f"UPDATE {table} SET u = 21 WHERE id = 2",
        f"UPDATE {table} SET u = 20, id = 9 WHERE id = 1",
        f"DELETE FROM {table} WHERE id = 3",
    )
    with TaskRun(files, spark) as run:
        run.catch_up()
        assert "safe-mode-duration" in run.sync.safe_mode
    meta = f"`{files.meta}`.`{files.name}_syncer_checkpoint`"
    # as SIGKILL would have left it: all is applied, and the checkpoint stands at the beginning
    target_server.run(
        f"UPDATE {meta} SET binlog_pos = {at.offset}, binlog_gtid = '{gtid}', exit_safe_binlog_name = ''"
        " WHERE is_global"
    )
    with TaskRun(files, spark) as run:
        run.catch_up()
    assert_equal([(source_server, table)], (target_server, table))


def test_exactly_once_stays_in_safe_mode_over_restarts_until_the_exit_point(
    table: TableName, spark: SparkSession, source_server: MariadbServer, target_server: MariadbServer, tmp_path: Path
) -> None:
    files = files_of(source_server, target_server, table, tmp_path, newest(source_server))
    files = replace(files, keys={"task-mode": "incremental"}).write()
    with TaskRun(files, spark) as run:
        run.catch_up()
    at = newest(source_server)
    ahead = Position(at.file, at.offset + 100_000)
    target_server.run(
        f"UPDATE `{files.meta}`.`{files.name}_syncer_checkpoint` SET exit_safe_binlog_name = '{ahead.file}',"
        f" exit_safe_binlog_pos = {ahead.offset} WHERE is_global"
    )
    for number in (4, 5):
        row = f"INSERT INTO {table} VALUES ({number}, {number}0, 'x')"
        target_server.run(row)  # it is there already, as a dump without a lock may have read it
        source_server.run(row)
        with TaskRun(files, spark) as run:
            run.catch_up()
            assert f"until {ahead}" in run.sync.safe_mode
        assert places(files) == (newest(source_server), ahead)
    source_server.run(f"INSERT INTO {table} VALUES (6, 60, REPEAT('x', 20))", f"UPDATE {table} SET v = REPEAT('y', 20)")
    source_server.run(*[f"UPDATE {table} SET u = u + 100, v = '{number}'" for number in range(400)])
    with TaskRun(files, spark) as run:
        run.catch_up()
    with TaskRun(files, spark) as run:
        source_server.run(f"DELETE FROM {table} WHERE id = 4")
        run.catch_up()
        assert run.sync.safe_mode == ""
    assert places(files) == (newest(source_server), None)
    assert_equal([(source_server, table)], (target_server, table))


def test_a_second_process_stops_the_first_at_its_next_checkpoint(
    table: TableName, spark: SparkSession, source_server: MariadbServer, target_server: MariadbServer, tmp_path: Path
) -> None:
    files = files_of(
        source_server, target_server, table, tmp_path, newest(source_server), **{"checkpoint-flush-interval": 1}
    )
    first = TaskRun(files, spark).start()
    first.catch_up()
    target_server.run(f"UPDATE `{files.meta}`.`{files.name}_apply_batch` SET epoch = epoch + 1")
    source_server.run(f"INSERT INTO {table} VALUES (4, 40, 'd')")
    error = first.error()
    assert isinstance(error, UnshardError)
    assert error.code == "SYNC-001"


def test_a_table_without_a_key_is_refused_before_it_could_double(
    table: TableName, spark: SparkSession, source_server: MariadbServer, target_server: MariadbServer, tmp_path: Path
) -> None:
    for server in (source_server, target_server):
        server.run(f"CREATE TABLE {table.schema}.bare (v INT)")
    files = files_of(source_server, target_server, table, tmp_path, newest(source_server))
    source_server.run(f"INSERT INTO {table.schema}.bare VALUES (1)")
    error = TaskRun(files, spark).start().error()
    assert isinstance(error, SyncError)
    assert (error.code, error.where.table) == ("SYNC-043", f"{table.schema}.bare")
    assert target_server.query(f"SELECT COUNT(*) FROM {table.schema}.bare") == [(0,)]


def test_a_dump_without_a_lock_arrives_equal_while_writers_go_on(
    spark: SparkSession, source_server: MariadbServer, target_server: MariadbServer, schema: str, tmp_path: Path
) -> None:
    work = Workload(source_server, WorkPlan(schema, kinds=(("small", 60), ("several_tables", 15), ("rollback", 8))))
    work.create()
    work.fill(2000)
    instance = {"mydumper": {"extra-args": "--consistency none -r 100", "threads": 2}}
    files = TaskFiles(
        tmp_path,
        schema,
        {"s1": source_server},
        target_server,
        (f"{schema}_1",),
        keys={"clean-dump-file": False},
        instance=instance,
    ).write()
    run = TaskRun(files, spark)
    (subtask,) = run.crew.subtasks
    assert subtask.dump is not None
    read = subtask.dump._run_tasks

    def read_while_written(payloads: Sequence[bytes], *how: Any, **more: Any) -> list[bytes]:
        at = newest(source_server)
        found = read(payloads, *how, **more)
        wait_until(lambda: newest(source_server) > at, "written while it is dumped")
        return found

    subtask.dump._run_tasks = read_while_written
    with at_work(work), run:
        run.reach("sync")
        run.catch_up()
    with TaskRun(files, spark) as run:
        run.catch_up()
        assert (run.sync.missing, run.sync.safe_mode) == (0, "")
    header = read_header(tmp_path / f"dump.{schema}" / "s1")
    assert header is not None
    assert header.end is not None
    assert header.begin.position < header.end.position, "the writers did nothing during the dump"
    for name in work.plan.names:
        assert_equal([(source_server, name)], (target_server, name))


def test_ddl_during_a_dump_without_a_lock_stops_the_task(
    table: TableName, spark: SparkSession, source_server: MariadbServer, target_server: MariadbServer, tmp_path: Path
) -> None:
    files = files_of(source_server, target_server, table, tmp_path, newest(source_server))
    files = replace(files, keys={"task-mode": "incremental"}).write()
    with TaskRun(files, spark) as run:
        source_server.run(f"INSERT INTO {table} VALUES (4, 40, 'd')")
        run.catch_up()
    at = newest(source_server)
    target_server.run(
        f"UPDATE `{files.meta}`.`{files.name}_syncer_checkpoint` SET exit_safe_binlog_name = '{at.file}',"
        f" exit_safe_binlog_pos = {at.offset + 100_000},"
        """ table_info = '{"delivery": "exactly-once", "cause": "dump"}' WHERE is_global"""
    )
    source_server.run(f"TRUNCATE TABLE {table}", f"ALTER TABLE {table} ADD w INT")
    error = TaskRun(files, spark).start().error()
    assert isinstance(error, SyncError)
    assert (error.code, error.where.table) == ("SYNC-047", str(table))
    assert target_server.query(f"SELECT * FROM {table}") == []
