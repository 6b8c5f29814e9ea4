"""Lag through a task's life on real servers: idle, stalled by the target, stopped, the source gone."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from task_runs import TaskFiles, TaskRun, wait_until
from unshard.testing.servers import MariadbServer

pytestmark = [pytest.mark.server, pytest.mark.spark]


def lag(run: TaskRun) -> float | None:
    (reading,) = run.crew.readings()
    return reading.sync.lag_seconds if reading.sync is not None else None


def grows(run: TaskRun) -> None:
    first, begun = lag(run), time.monotonic()
    time.sleep(1.2)
    second, passed = lag(run), time.monotonic() - begun
    assert first is not None and second is not None and first > 0
    assert second - first == pytest.approx(passed, abs=0.5)


def test_lag_tells_the_truth(spark: SparkSession, target_server: MariadbServer, schema: str, tmp_path: Path) -> None:
    with MariadbServer() as source:
        source.run(f"CREATE DATABASE {schema}", f"CREATE TABLE {schema}.t (id INT PRIMARY KEY, v INT)")
        source.run(f"INSERT INTO {schema}.t VALUES (1, 1)")
        files = TaskFiles(tmp_path, schema, {"s1": source}, target_server, (schema,)).write()
        with TaskRun(files, spark) as run:
            run.catch_up()
            wait_until(lambda: lag(run) == 0.0, "0 of an idle source", 15)
            blocker = target_server.connection()
            try:
                blocker.query("BEGIN")
                blocker.query(f"UPDATE {schema}.t SET v = v")
                source.run(f"UPDATE {schema}.t SET v = 2")
                wait_until(lambda: bool(lag(run)), "behind a stalled target", 15)
                grows(run)
            finally:
                blocker.close()
            run.catch_up()
            wait_until(lambda: lag(run) == 0.0, "0 when it has caught up", 15)
            (reading,) = run.crew.readings()
            assert reading.sync is not None and reading.sync.tables[f"{schema}.t"].updated == 1
        assert run.crew.readings()[0].unit == "stopped"
        wait_until(lambda: lag(run) == 0.0, "0 while stopped, as nothing is new", 15)
        source.run(f"UPDATE {schema}.t SET v = 3")
        wait_until(lambda: bool(lag(run)), "behind while stopped", 15)
        grows(run)
        source.stop()
        time.sleep(2.1)
        grows(run)
