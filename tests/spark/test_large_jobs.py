"""What is sent with a large job takes no room once the job has ended: a task runs such jobs for weeks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.noted_plans import noted_plans
from support.task_runs import TaskFiles, TaskRun
from unshard.errors import EngineError
from unshard.model.table import TableName
from unshard.spark import batches
from unshard.spark.jobs import run_tasks
from unshard.spark.worker_process import load
from unshard.sync.planning import planner
from unshard.testing.compare import assert_equal
from unshard.testing.mariadb_server import MariadbServer

pytestmark = pytest.mark.spark

LARGE = 3 << 20
"""Bytes of a job that Spark does not send with each task, but as a broadcast."""


@contextmanager
def leaving_nothing(spark: SparkSession) -> Iterator[None]:
    """Fail where files of broadcasts that the block makes are there after it."""
    folder = Path(spark.sparkContext._temp_dir)
    before = set(folder.iterdir())
    yield
    assert {path.name: path.stat().st_size for path in set(folder.iterdir()) - before} == {}


@pytest.mark.parametrize("barrier", [False, True])
def test_a_large_job_leaves_no_file(barrier: bool, spark: SparkSession) -> None:
    payloads = [bytes([number]) * LARGE for number in (1, 2)]
    with leaving_nothing(spark):
        assert run_tasks(spark, payloads, load, barrier=barrier) == payloads


def test_a_large_job_that_fails_leaves_no_file(spark: SparkSession) -> None:
    def failing(payload: bytes) -> bytes:
        raise ValueError(f"of the task itself, with {len(payload)} bytes")

    with leaving_nothing(spark), pytest.raises(EngineError, match=f"of the task itself, with {LARGE} bytes"):
        run_tasks(spark, [bytes(LARGE)], failing)


@pytest.mark.server
@pytest.mark.parametrize("shuffled", [pytest.param(False, marks=pytest.mark.scenarios), True])
def test_a_batch_whose_log_is_sent_along_leaves_no_file(
    shuffled: bool,
    spark: SparkSession,
    source_server: MariadbServer,
    target_server: MariadbServer,
    schema: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(batches, "sees", lambda session, folder: False)
    if shuffled:
        monkeypatch.setattr(planner, "SHUFFLE_SLOTS", 1)
        monkeypatch.setattr(planner, "SHUFFLE_BYTES", 1)
    source_server.run(f"CREATE DATABASE {schema}", f"CREATE TABLE {schema}.t (id INT PRIMARY KEY, v LONGTEXT)")
    files = TaskFiles(tmp_path, schema, {"s1": source_server}, target_server, (schema,)).write()
    run = TaskRun(files, spark)
    ran = noted_plans(run.sync_unit())
    with run:
        run.catch_up()
        with leaving_nothing(spark):
            source_server.run(*(f"INSERT INTO {schema}.t VALUES ({key}, REPEAT('x', {LARGE}))" for key in (1, 2)))
            run.catch_up()
    assert {plan.shuffled for plan in ran if not plan.here} == {shuffled}, "the batch was no job"
    table = TableName(schema, "t")
    assert_equal([(source_server, table)], (target_server, table))
