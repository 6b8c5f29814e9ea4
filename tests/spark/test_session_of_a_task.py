"""When a task asks for its Spark session: at once for a copy, and with the first large batch after that."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.exactly_once import assert_exactly_once
from support.task_runs import TaskFiles, TaskRun
from unshard.errors import EngineError
from unshard.model.table import TableName
from unshard.spark.lazy import LazySession
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.throwaway_server import ThrowawayServer
from unshard.worker.engine import NOT_STARTED

pytestmark = [pytest.mark.server, pytest.mark.spark]

LARGE = 20_000
"""Rows of a transaction that is too large for a batch in the driver's process."""


class Asked:
    """A session that notes how often it is started, ahead or by a job."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        self.calls: list[str] = []
        self.session = LazySession(2, local=True, start=self._start, ahead=lambda: self.calls.append("ahead"))

    def _start(self) -> SparkSession:
        self.calls.append("start")
        return self.spark


def test_small_batches_need_no_session(
    spark: SparkSession, source_server: MariadbServer, target_server: ThrowawayServer, schema: str, tmp_path: Path
) -> None:
    table = TableName(schema, "t")
    source_server.run(f"CREATE DATABASE {schema}", f"CREATE TABLE {table} (id INT PRIMARY KEY, v INT)")
    source_server.run(f"INSERT INTO {table} VALUES (1, 1)")
    files = TaskFiles(tmp_path, schema, {"s1": source_server}, target_server, (schema,)).write()

    copying = Asked(spark)
    with TaskRun(files, copying.session) as run:
        run.catch_up()
    assert copying.calls == ["ahead", "start"]

    following = Asked(spark)
    with TaskRun(files, following.session) as run:
        source_server.run(f"INSERT INTO {table} VALUES (2, 2)", f"UPDATE {table} SET v = 3 WHERE id = 1")
        run.catch_up()
        assert following.calls == []
        source_server.run(f"USE {schema}", f"INSERT INTO {table} SELECT seq, seq FROM seq_3_to_{LARGE}")
        run.catch_up()
    assert following.calls == ["start"]
    assert_exactly_once(source_server, target_server, [table])


def test_a_job_that_spark_could_not_be_started_for_stops_the_task_and_the_next_start_goes_on(
    spark: SparkSession, source_server: MariadbServer, target_server: ThrowawayServer, schema: str, tmp_path: Path
) -> None:
    def refuse() -> SparkSession:
        raise EngineError(NOT_STARTED)

    table = TableName(schema, "t")
    source_server.run(f"CREATE DATABASE {schema}", f"CREATE TABLE {table} (id INT PRIMARY KEY, v INT)")
    files = TaskFiles(tmp_path, schema, {"s1": source_server}, target_server, (schema,)).write()
    with TaskRun(files, spark) as run:
        run.catch_up()
    source_server.run(f"USE {schema}", f"INSERT INTO {table} SELECT seq, seq FROM seq_1_to_{LARGE}")
    run = TaskRun(files, LazySession(2, local=True, start=refuse)).start()
    error = run.error()
    assert isinstance(error, EngineError)
    assert error.code == NOT_STARTED
    with TaskRun(files, spark) as run:
        run.catch_up()
    assert_exactly_once(source_server, target_server, [table])
