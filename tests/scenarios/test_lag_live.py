"""Lag through a task's life on real servers: idle, stalled by the target, stopped, the source gone."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.server_clock import clock
from support.task_runs import TaskFiles, TaskRun
from support.waiting import wait_until
from unshard.testing.mariadb_server import MariadbServer

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.scenarios]
CLOCK_SECONDS = 0.5


def lag(run: TaskRun) -> float | None:
    (reading,) = run.crew.readings()
    return reading.sync.lag_seconds if reading.sync is not None else None


def note(run: TaskRun) -> str:
    (reading,) = run.crew.readings()
    return reading.note


def grows(run: TaskRun) -> None:
    """By a second and more, no quicker than time passes. A source that is slow to tell its clock blurs a reading."""
    target = run.files.target
    begun, first = clock(target), lag(run)
    assert first is not None
    assert first > 0

    def by_the_clock() -> bool:
        now = lag(run)
        return now is not None and 1 <= now - first <= clock(target) - begun + CLOCK_SECONDS

    wait_until(by_the_clock, "it grows by the clock")


def test_lag_tells_the_truth(spark: SparkSession, target_server: MariadbServer, schema: str, tmp_path: Path) -> None:
    with MariadbServer() as source:
        source.run(f"CREATE DATABASE {schema}", f"CREATE TABLE {schema}.t (id INT PRIMARY KEY, v INT)")
        source.run(f"INSERT INTO {schema}.t VALUES (1, 1)")
        files = TaskFiles(tmp_path, schema, {"s1": source}, target_server, (schema,)).write()
        with TaskRun(files, spark) as run:
            run.catch_up()
            wait_until(lambda: lag(run) == 0.0, "0 of an idle source")
            blocker = target_server.connection()
            try:
                blocker.query("BEGIN")
                blocker.query(f"UPDATE {schema}.t SET v = v")
                source.run(f"UPDATE {schema}.t SET v = 2")
                wait_until(lambda: bool(lag(run)), "behind a stalled target")
                grows(run)
                wanted = f"a lock that connection {blocker.thread_id()} holds"
                wait_until(lambda: wanted in note(run), "who stalls it", told=lambda: note(run))
                assert f"`KILL {blocker.thread_id()}` in the target" in note(run)
            finally:
                blocker.close()
            run.catch_up()
            wait_until(lambda: note(run) == "", "nobody stalls it", told=lambda: note(run))
            wait_until(lambda: lag(run) == 0.0, "0 when it has caught up")
            (reading,) = run.crew.readings()
            assert reading.sync is not None
            assert reading.sync.tables[f"{schema}.t"].updated == 1
        assert run.crew.readings()[0].unit == "stopped"
        wait_until(lambda: lag(run) == 0.0, "0 while stopped, as nothing is new")
        source.run(f"UPDATE {schema}.t SET v = 3")
        wait_until(lambda: bool(lag(run)), "behind while stopped")
        grows(run)
        source.stop()
        wait_until(lambda: run.crew.readings()[0].upstream is None, "the source can't be asked")
        grows(run)
