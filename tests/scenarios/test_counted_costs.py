"""What a migration costs in counts, which are the same on a busy machine: statements a table, jobs a batch."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.task_runs import TaskFiles, TaskRun
from support.waiting import wait_until
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.throwaway_server import ThrowawayServer

pytestmark = [pytest.mark.server, pytest.mark.spark]
FEW, MANY = 10, 40


def asked(server: ThrowawayServer) -> int:
    """The statements that the server has been sent since its start."""
    return int(server.query("SHOW GLOBAL STATUS LIKE 'Questions'")[0][1])


def jobs(spark: SparkSession) -> int:
    """The jobs that the session has run so far."""
    return int(spark.sparkContext._jsc.sc().dagScheduler().numTotalJobs())


def copied(spark: SparkSession, folder: Path, tables: int) -> tuple[int, int, int]:
    """The statements at both ends, and the jobs, of a copy of that many tables and the start of following."""
    with MariadbServer() as source, MariadbServer() as target:
        source.run("CREATE DATABASE a")
        for number in range(tables):
            source.run(f"CREATE TABLE a.t{number} (id INT PRIMARY KEY)", f"INSERT INTO a.t{number} VALUES (1), (2)")
        files = TaskFiles(folder / str(tables), "counted", {"s1": source}, target, ("a",)).write()
        before = asked(source), asked(target), jobs(spark)
        with TaskRun(files, spark) as run:
            run.reach("sync")
            wait_until(lambda: run.crew.subtasks[0].claimed, "following")
        after = asked(source), asked(target), jobs(spark)  # before its end it goes on asking beside this thread
        read, written, ran = (now - then for now, then in zip(after, before, strict=True))
        return read, written, ran


def test_a_table_costs_few_statements_and_no_job_of_its_own(spark: SparkSession, tmp_path: Path) -> None:
    """Nine of those that the source is asked open the table's snapshot, so that its position is sure."""
    few, many = copied(spark, tmp_path, FEW), copied(spark, tmp_path, MANY)
    read, written, ran = ((more - less) / (MANY - FEW) for less, more in zip(few, many, strict=True))
    assert read <= 21
    assert written <= 18
    assert ran < 1


@pytest.mark.usefixtures("small_jobs")
def test_a_batch_is_one_job(spark: SparkSession, tmp_path: Path) -> None:
    with MariadbServer() as source, MariadbServer() as target:
        source.run("CREATE DATABASE a", "CREATE TABLE a.t (id INT PRIMARY KEY, v INT)")
        files = TaskFiles(tmp_path, "counted", {"s1": source}, target, ("a",)).write()
        with TaskRun(files, spark) as run:
            run.catch_up()
            batches, ran = run.sync.batches, jobs(spark)
            for number in range(20):
                source.run(f"INSERT INTO a.t VALUES ({number}, 0)")
                run.catch_up()
            made = run.sync.batches - batches
            assert made >= 20
            assert jobs(spark) - ran <= made
