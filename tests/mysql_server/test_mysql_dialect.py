"""What MySQL has and MariaDB hasn't: collations, and definitions that only one of both understands."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from task_runs import TaskFiles, TaskRun
from unshard.errors import LoadError
from unshard.model.table import TableName
from unshard.testing.compare import assert_equal
from unshard.testing.mysql_server import MysqlServer
from unshard.testing.servers import MariadbServer

pytestmark = [pytest.mark.server, pytest.mark.spark]


def test_a_collation_that_the_target_lacks_is_named_and_tables_made_by_hand_are_filled(
    spark: SparkSession, mysql_source: MysqlServer, target_server: MariadbServer, schema: str, tmp_path: Path
) -> None:
    name = TableName(schema, "t")
    mysql_source.run(
        f"CREATE DATABASE {schema}",
        f"CREATE TABLE {name} (id INT PRIMARY KEY, word VARCHAR(20))",
        f"INSERT INTO {name} VALUES (1, 'é'), (2, 'e')",
    )
    files = TaskFiles(tmp_path, schema, {"s1": mysql_source}, target_server, (schema,)).write()
    by_hand = [
        f"CREATE DATABASE {schema} COLLATE utf8mb4_unicode_520_ci",
        f"CREATE TABLE {name} (id INT PRIMARY KEY, word VARCHAR(20) COLLATE utf8mb4_unicode_520_ci)",
    ]
    for what, remedy in zip((f"database {schema}", f"table {name}"), by_hand, strict=True):
        run = TaskRun(files, spark).start()
        error = run.error()
        run.crew.stop.set()
        assert isinstance(error, LoadError) and error.code == "LOAD-011"
        assert what in str(error) and "utf8mb4_0900_ai_ci" in str(error)
        target_server.run(remedy)
    with TaskRun(files, spark) as run:
        run.reach("sync")
        mysql_source.run(f"INSERT INTO {name} VALUES (3, 'ü')", f"UPDATE {name} SET word = '語' WHERE id = 1")
        run.catch_up()
    assert_equal([(mysql_source, name)], (target_server, name))
