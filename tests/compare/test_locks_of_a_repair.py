"""The locks that `unshard compare --repair` holds in the sources: when they are lost, and how long writers wait."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from support.comparisons import compared, merged_into_one
from support.task_runs import TaskFiles, TaskRun
from support.waiting import wait_until
from unshard.cli.compare_subject import CompareWish, task_subject
from unshard.compare import repairer
from unshard.compare.result import ComparisonOutcome
from unshard.compare.run import CompareSettings
from unshard.config.files import load_files
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.throwaway_server import ThrowawayServer

pytestmark = [pytest.mark.server, pytest.mark.spark]

EVERY_SECONDS = 0.3
"""InnoDB does not renew its list of transactions while it is read more often than each 0.1 s."""


@pytest.fixture
def files(
    source_server: MariadbServer, target_server: ThrowawayServer, schema: str, tmp_path: Path
) -> Iterator[TaskFiles]:
    """Shards `t_1` and `t_2` of one source, merged into `t`."""
    made = [f"CREATE TABLE t_{number} (id INT PRIMARY KEY, v VARCHAR(20))" for number in (1, 2)]
    made += [f"INSERT INTO t_{number} VALUES ({number}01, 'x'), ({number}02, 'y')" for number in (1, 2)]
    with merged_into_one(source_server, target_server, schema, tmp_path, *made) as files:
        yield files


def repaired(files: TaskFiles, spark: SparkSession, found: ComparisonOutcome, patience: float) -> ComparisonOutcome:
    subject = task_subject(load_files(files.task_path, files.source_paths), CompareWish())
    settings = CompareSettings(patience_seconds=patience)
    return subject.repair(found, settings, spark, lambda line: None, threading.Event())


def lockers(server: ThrowawayServer) -> list[int]:
    """Sessions that hold locks of rows."""
    found = server.query("SELECT trx_mysql_thread_id FROM information_schema.innodb_trx WHERE trx_rows_locked > 0")
    return [int(session) for (session,) in found]


def test_a_change_made_after_the_locks_are_lost_is_not_overwritten(
    files: TaskFiles, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    (schema,), source = files.schemas, files.sources["s1"]
    values: list[Any] = []
    write = repairer._TableRepair._write

    with TaskRun(files, spark) as run:

        def write_without_locks(self: Any, *args: Any) -> Any:
            if values:
                return write(self, *args)
            (locker,) = lockers(source)
            source.run(f"KILL {locker}")
            wait_until(lambda: not lockers(source), "the locks are lost", every=EVERY_SECONDS)
            source.run(f"UPDATE {schema}.t_1 SET v = 'newer' WHERE id = 101")
            run.catch_up()
            done = write(self, *args)
            values.append(files.target.query(f"SELECT v FROM {schema}.t WHERE id = 101"))
            return done

        monkeypatch.setattr(repairer._TableRepair, "_write", write_without_locks)
        run.catch_up()
        files.target.run(f"UPDATE {schema}.t SET v = 'wrong' WHERE id IN (101, 102)")
        after = repaired(files, spark, compared(files, spark), patience=60.0)
        assert values == [[("newer",)]]
        assert after.exit_code == 0, after.notes
        assert f"{schema}.t: repaired 0 extra, 1 changed, 0 missing" in after.notes


def test_writers_do_not_wait_for_a_session_that_holds_the_row_in_the_target(
    files: TaskFiles, spark: SparkSession
) -> None:
    (schema,), source = files.schemas, files.sources["s1"]
    with TaskRun(files, spark) as run, ThreadPoolExecutor() as threads:
        run.catch_up()
        files.target.run(f"UPDATE {schema}.t SET v = 'wrong' WHERE id IN (101, 102)")
        found = compared(files, spark)
        with closing(files.target.connection()) as holder, closing(source.connection()) as writer:
            with holder.cursor() as cursor:
                cursor.execute("BEGIN")
                cursor.execute(f"SELECT v FROM {schema}.t WHERE id = 101 FOR UPDATE")
            repair = threads.submit(repaired, files, spark, found, 120.0)
            wait_until(lambda: bool(lockers(source)), "the repair has locked rows in the source", every=EVERY_SECONDS)
            with writer.cursor() as cursor:
                cursor.execute("SET SESSION innodb_lock_wait_timeout = 30")
                cursor.execute(f"UPDATE {schema}.t_1 SET v = 'later' WHERE id = 101")
                cursor.execute("COMMIT")
            holder.rollback()
        after = repair.result()
        run.catch_up()
        assert after.exit_code == 0, after.notes
        assert files.target.query(f"SELECT id, v FROM {schema}.t WHERE id < 200 ORDER BY id") == [
            (101, "later"),
            (102, "y"),
        ]
