"""The number 0 of an ENUM, which has no text of its own where the ENUM has an empty member, arrives on TiDB."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.task_runs import TaskFiles, TaskRun
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.tidb_server import TidbServer

pytestmark = [pytest.mark.server, pytest.mark.spark]


@pytest.mark.parametrize("multiple_rows", [True, False])
def test_an_update_to_the_number_0_of_an_enum(
    source_server: MariadbServer,
    tidb: TidbServer,
    schema: str,
    tmp_path: Path,
    spark: SparkSession,
    multiple_rows: bool,
) -> None:
    source_server.run(
        "SET sql_mode = ''",
        f"CREATE DATABASE {schema}",
        f"CREATE TABLE {schema}.t (id INT PRIMARY KEY, e ENUM('x', '', '0'), f ENUM('0', '00', ''))",
        f"INSERT INTO {schema}.t VALUES (1, 'x', '0'), (2, NULL, NULL), (3, 0, 0), (4, '', '')",
    )
    syncer = {"multiple-rows": multiple_rows, "compact": multiple_rows}
    files = TaskFiles(tmp_path, f"task_{schema}", {"s1": source_server}, tidb, (schema,), syncer=syncer).write()
    with TaskRun(files, spark) as run:
        run.catch_up()
        source_server.run(
            "SET sql_mode = ''",
            f"UPDATE {schema}.t SET e = 0, f = 0 WHERE id IN (1, 2)",
            f"UPDATE {schema}.t SET e = 'x', f = '00' WHERE id = 3",
            f"INSERT INTO {schema}.t VALUES (5, 0, 0)",
        )
        run.catch_up()
    asked = f"SELECT id, e + 0, f + 0 FROM {schema}.t ORDER BY id"
    assert tidb.query(asked) == source_server.query(asked)
