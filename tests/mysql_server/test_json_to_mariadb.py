"""JSON columns that statements make on a MySQL while a task follows it to a MariaDB, which has no such type.

Its column of text keeps what MySQL prints, also of values that JSON text has no words for, so none stops the task.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.task_runs import TaskFiles, TaskRun
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.mysql_server import MysqlServer

pytestmark = [pytest.mark.server, pytest.mark.spark]


def test_documents_arrive(
    spark: SparkSession, mysql_source: MysqlServer, target_server: MariadbServer, schema: str, tmp_path: Path
) -> None:
    charset = "CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci"
    mysql_source.run(
        f"CREATE DATABASE {schema} {charset}",
        f"CREATE TABLE {schema}.t (id INT PRIMARY KEY)",
        f"INSERT INTO {schema}.t VALUES (1)",
    )
    files = TaskFiles(tmp_path, schema, {"s1": mysql_source}, target_server, (schema,)).write()
    with TaskRun(files, spark) as run:
        run.reach("sync")
        mysql_source.run(
            f"""ALTER TABLE {schema}.t ADD j JSON, ADD l LONGTEXT""",
            f"""UPDATE {schema}.t SET j = '{{"a": [1, null, "é"]}}', l = '[1]'""",
            f"CREATE TABLE {schema}.made (id INT PRIMARY KEY, `a``b` JSON)",
            f"INSERT INTO {schema}.made VALUES (1, '[true, 1.5]'), (2, NULL)",
            f"ALTER TABLE {schema}.made ADD v INT",
            f"INSERT INTO {schema}.made VALUES (3, '{{}}', 4)",
            f"INSERT INTO {schema}.made VALUES (4, JSON_ARRAY(1.10, DATE'2024-02-29', x'00FF'), 5)",
        )
        run.catch_up()
    for table in ("t", "made"):
        query = f"SELECT * FROM {schema}.{table} ORDER BY id"
        assert target_server.query(query) == mysql_source.query(query)
