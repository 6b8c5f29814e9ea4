"""Something dies or is stopped while a task runs; what it does go on to apply is applied once."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from pyspark.sql import SparkSession

from support.exactly_once import assert_exactly_once
from support.task_runs import Command, TaskFiles, TaskRun, at_work, commit_more, processes_below
from support.waiting import wait_until
from unshard.errors import UnshardError
from unshard.relay.unit import RelayUnit
from unshard.testing.hold import row_held, stands_still
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.workload import Workload

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.recovery, pytest.mark.faults]
LOCK_SECONDS = 3600
"""How long the servers let a session wait for a lock: whoever stops does not wait until that is over."""


def kill_python_workers() -> int:
    """SIGKILL to the Spark Python workers below this process; how many there were."""
    killed = 0
    for child in processes_below(os.getpid()):
        with suppress(psutil.NoSuchProcess):  # it has just ended; of a zombie the words are not told either
            above = child.parent()
            # not the daemon that forks them
            if _of_spark(child) and above is not None and _of_spark(above):
                child.kill()
                killed += 1
    return killed


def _of_spark(process: psutil.Process) -> bool:
    return "spark.daemon" in " ".join(process.cmdline())


def applies(run: TaskRun) -> None:
    """Wait until the run has applied another batch."""

    def batches() -> int:
        if run.crew.errors:
            raise run.crew.errors[0]
        sync = run.crew.subtasks[0].sync
        return sync.meter.batches if sync is not None else 0

    before = batches()
    wait_until(lambda: batches() > before, "a batch is applied")


@pytest.mark.usefixtures("small_jobs")
def test_a_killed_spark_worker_is_replaced(
    files: TaskFiles, work: Workload, source: MariadbServer, target: MariadbServer, spark: SparkSession
) -> None:
    name = work.plan.names[0]
    with TaskRun(files, spark) as run:
        run.catch_up()
        with row_held(target, name.quoted):
            source.run(f"UPDATE {name.quoted} SET k = k + 1", f"DELETE FROM {name.quoted} WHERE id > 500")
            wait_until(lambda: stands_still(target), "in the middle of a batch")
            assert kill_python_workers() > 0
        work.run(transactions=50)
        run.catch_up()
    assert_exactly_once(source, target, work.plan.names)


def test_a_restarted_target_is_waited_for(
    files: TaskFiles, work: Workload, source: MariadbServer, target: MariadbServer, spark: SparkSession
) -> None:
    with TaskRun(files, spark) as run:
        run.reach("sync")
        with at_work(work, share=0.1):
            applies(run)
            for _ in range(2):
                target.kill()
                commit_more(work, transactions=40)
                target.start()
                applies(run)
        run.catch_up()
    assert_exactly_once(source, target, work.plan.names)


def test_a_target_that_dies_in_the_middle_of_a_batch(
    files: TaskFiles, work: Workload, source: MariadbServer, target: MariadbServer, spark: SparkSession
) -> None:
    name = work.plan.names[0]
    with TaskRun(files, spark) as run:
        run.catch_up()
        with row_held(target, name.quoted):
            source.run(f"UPDATE {name.quoted} SET k = k + 1")
            wait_until(lambda: stands_still(target), "in the middle of a batch")
            target.kill()
        target.start()
        run.catch_up()
    assert_exactly_once(source, target, work.plan.names)


def test_a_restarted_source_is_waited_for(
    files: TaskFiles, work: Workload, source: MariadbServer, target: MariadbServer, spark: SparkSession
) -> None:
    with TaskRun(files, spark) as run:
        run.reach("sync")
        work.run(transactions=30)
        source.kill()
        relay = run.crew.subtasks[0].relay
        assert isinstance(relay, RelayUnit)
        wait_until(lambda: relay.status().reconnecting_since is not None, "it reconnects")
        source.start()
        work.run(transactions=30)
        run.catch_up()
    assert_exactly_once(source, target, work.plan.names)


def test_of_two_runs_of_one_task_the_older_is_fenced_out(
    files: TaskFiles, work: Workload, source: MariadbServer, target: MariadbServer, spark: SparkSession, tmp_path: Path
) -> None:
    elsewhere = replace(files, folder=tmp_path / "another-host").write()
    older = TaskRun(files, spark).start()
    older.reach("sync")
    with at_work(work, share=0.1):
        applies(older)
        with TaskRun(elsewhere, spark) as newer:
            newer.reach("sync")
            error = older.error()
            assert isinstance(error, UnshardError)
            assert error.code == "SYNC-001"
            applies(newer)
            work.pause()
            newer.catch_up()
            work.resume()
            newer.catch_up()
    with TaskRun(elsewhere, spark) as last:
        last.catch_up()
    assert_exactly_once(source, target, work.plan.names)


def stopped_well(command: Command) -> None:
    command.interrupt()
    assert command.wait() == 0, command.text
    assert "the same command goes on from here" in command.text
    assert "Traceback" not in command.text


@pytest.fixture
def long_locks(source: MariadbServer, target: MariadbServer) -> Iterator[None]:
    for server in (source, target):
        server.run(f"SET GLOBAL innodb_lock_wait_timeout = {LOCK_SECONDS}")
    yield
    for server in (source, target):
        server.run("SET GLOBAL innodb_lock_wait_timeout = DEFAULT")


@pytest.mark.usefixtures("long_locks")
def test_ctrl_c_at_any_time(
    files: TaskFiles, work: Workload, source: MariadbServer, target: MariadbServer, schema: str
) -> None:
    first = work.plan.names[0]
    lock = source.connection()
    with lock.cursor() as cursor:
        cursor.execute(f"LOCK TABLES {first.quoted} WRITE")  # the dump stands still before this table
        with Command(files) as command:
            command.shows("s1  dump")
            wait_until(lambda: stands_still(source), "in the middle of the dump")
            stopped_well(command)
    lock.close()

    target.run(f"CREATE DATABASE {first.schema}")
    ((_, create),) = source.query(f"SHOW CREATE TABLE {first.quoted}")
    target.run(create, database=first.schema)
    held = target.connection()
    held.autocommit(False)
    with held.cursor() as cursor:
        cursor.execute(f"INSERT INTO {first.quoted} (id) VALUES (1)")  # the load stands still before this row
        with Command(files) as command:
            command.shows("s1  load")
            wait_until(lambda: stands_still(target), "in the middle of the load")
            stopped_well(command)
    held.rollback()
    held.close()

    with at_work(work, share=0.1), Command(files) as command:
        command.shows("s1  sync")
        wait_until(lambda: files.applied("s1") is not None, "following")
        begun = files.applied("s1")
        wait_until(lambda: files.applied("s1") != begun, "a batch is applied")
        stopped_well(command)
    with Command(files) as command:
        command.catch_up()
        stopped_well(command)
    assert_exactly_once(source, target, work.plan.names)


@pytest.mark.parametrize("as_job", [False, True])
def test_a_batch_that_outlasts_the_stop_is_finished_by_the_next_start(
    as_job: bool,
    files: TaskFiles,
    work: Workload,
    source: MariadbServer,
    target: MariadbServer,
    spark: SparkSession,
    request: pytest.FixtureRequest,
) -> None:
    if as_job:
        request.getfixturevalue("small_jobs")
    name = work.plan.names[0]
    run = TaskRun(files, spark).start()
    run.catch_up()
    run.crew.wait_on_stop = 0.5
    with row_held(target, name.quoted):
        source.run(f"UPDATE {name.quoted} SET k = k + 1")
        wait_until(lambda: stands_still(target), "in the middle of a batch")
        run.crew.stop.set()
        wait_until(run.crew.ended.is_set, "it has ended, though the row is still held")
        run.stop()
    assert run.crew.subtasks[0].broken_off
    assert target.query(f"SELECT state FROM {files.meta}.{files.name}_apply_batch") == [("open",)]
    with TaskRun(files, spark) as again:
        again.catch_up()
    assert not again.crew.subtasks[0].broken_off
    assert_exactly_once(source, target, work.plan.names)


def test_a_stop_does_not_wait_until_rows_are_paid_for(
    files: TaskFiles, work: Workload, source: MariadbServer, target: MariadbServer, spark: SparkSession
) -> None:
    name = work.plan.names[0]
    with TaskRun(files, spark) as run:
        run.catch_up()
    database = {"host": "127.0.0.1", "user": "root", "port": target.port, "max-rows-per-second": 1}
    run = TaskRun(replace(files, keys={"target-database": database}).write(), spark).start()
    run.catch_up()
    run.crew.wait_on_stop = 0.5
    sums = f"SELECT SUM(k) FROM {name.quoted}"
    before = target.query(sums)
    source.run(f"UPDATE {name.quoted} SET k = k + 1")
    wait_until(lambda: target.query(sums) != before, "a part of the batch is applied")
    run.crew.stop.set()
    wait_until(run.crew.ended.is_set, "it has ended, before the rows are paid for")
    run.stop()
    assert run.crew.subtasks[0].broken_off
    with TaskRun(files.write(), spark) as again:
        again.catch_up()
    assert_exactly_once(source, target, work.plan.names)
