"""What statements and small batches cost: counted in questions to the target and in Spark jobs, not in seconds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from support.task_runs import TaskFiles, TaskRun
from unshard.spark import batches
from unshard.spark.jobs import run_tasks
from unshard.sync.planning.planner import HERE_BYTES
from unshard.testing.mariadb_server import MariadbServer

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.scenarios]

ROUND = (
    "CREATE TABLE {s}.t{n} (id INT NOT NULL PRIMARY KEY, note VARCHAR(40) NOT NULL)",
    "INSERT INTO {s}.t{n} VALUES (1, 'first'), (2, 'second')",
    "ALTER TABLE {s}.t{n} ADD COLUMN more INT NOT NULL DEFAULT 7",
    "UPDATE {s}.t{n} SET more = id",
    "DROP TABLE {s}.t{n}",
)
ROUNDS = 10
QUESTIONS_A_ROUND = 200
"""Three statements and two batches, records of the tables that they make, a look at the target's triggers.

186 were counted, and the status asks now and then.
"""


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of tasks of the jobs that batches become."""
    found: list[int] = []

    def counted(spark: SparkSession, payloads: Sequence[bytes], *rest: Any, **options: Any) -> list[bytes]:
        found.append(len(payloads))
        return run_tasks(spark, payloads, *rest, **options)

    monkeypatch.setattr(batches, "run_tasks", counted)
    return found


def questions(target: MariadbServer) -> int:
    ((_, count),) = target.query("SHOW GLOBAL STATUS LIKE 'Questions'")
    return int(count)


def make_rounds(source: MariadbServer, schema: str, numbers: range) -> None:
    source.run(*(statement.format(s=schema, n=number) for number in numbers for statement in ROUND))


def test_a_log_of_small_tables(
    spark: SparkSession,
    source_server: MariadbServer,
    target_server: MariadbServer,
    schema: str,
    tmp_path: Path,
    jobs: list[int],
) -> None:
    source_server.run(f"CREATE DATABASE {schema}", f"CREATE TABLE {schema}.kept (id INT PRIMARY KEY)")
    files = TaskFiles(tmp_path, schema, {"s1": source_server}, target_server, (schema,)).write()
    with TaskRun(files, spark) as run:
        run.catch_up()
        make_rounds(source_server, schema, range(100, 102))
        run.catch_up()
        asked = questions(target_server)
        scratch = target_server.query("SHOW GLOBAL STATUS LIKE 'Com_create_db'")
        make_rounds(source_server, schema, range(ROUNDS))
        run.catch_up()
        asked = questions(target_server) - asked
        assert target_server.query("SHOW GLOBAL STATUS LIKE 'Com_create_db'") == scratch, "trials are known by now"
        assert asked <= ROUNDS * QUESTIONS_A_ROUND
        assert jobs == [], "a small batch is no Spark job"
    assert target_server.query(f"SHOW TABLES IN {schema}") == [("kept",)]


def test_a_larger_batch_is_one_job(
    spark: SparkSession,
    source_server: MariadbServer,
    target_server: MariadbServer,
    schema: str,
    tmp_path: Path,
    jobs: list[int],
) -> None:
    source_server.run(f"CREATE DATABASE {schema}", f"CREATE TABLE {schema}.t (id INT PRIMARY KEY, v LONGTEXT)")
    files = TaskFiles(tmp_path, schema, {"s1": source_server}, target_server, (schema,)).write()
    with TaskRun(files, spark) as run:
        run.catch_up()
        source_server.run(f"INSERT INTO {schema}.t VALUES (1, REPEAT('x', {HERE_BYTES}))")
        run.catch_up()
        source_server.run(f"UPDATE {schema}.t SET v = 'y'", f"INSERT INTO {schema}.t VALUES (2, 'z')")
        run.catch_up()
    assert jobs == [1, 1], "the second batch has the long row's old image"
    assert target_server.query(f"SELECT id, v FROM {schema}.t ORDER BY id") == [(1, "y"), (2, "z")]
