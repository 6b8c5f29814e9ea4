"""One short task from or into a server that is not MariaDB: its copy, its rows, a statement, a second start.

Left out where the server is not on this machine; `make test-mysql` and `make test-tidb` fetch or build them.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.task_runs import TaskFiles, TaskRun
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.mysql_server import Mysql80Server
from unshard.testing.throwaway_server import ThrowawayServer
from unshard.testing.tidb_server import TidbServer

pytestmark = [pytest.mark.server, pytest.mark.spark]

ROWS = "SELECT id, v, CAST(amount AS CHAR), HEX(raw), CAST(at AS CHAR) FROM {}.t ORDER BY id"


def migrated(source: ThrowawayServer, target: ThrowawayServer, folder: Path, schema: str, spark: SparkSession) -> None:
    """Copy a table and follow it through a restart; the target then has its rows."""
    source.run(
        f"CREATE DATABASE {schema} CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci",  # which all of them have
        f"CREATE TABLE {schema}.t (id INT PRIMARY KEY, v VARCHAR(20), amount DECIMAL(10,2), raw VARBINARY(9),"
        " at DATETIME(6))",
        f"INSERT INTO {schema}.t VALUES (1, 'é', 1.50, X'00FF27', '2026-01-02 03:04:05.000006'),"
        " (2, NULL, NULL, '', NULL)",
    )
    files = TaskFiles(folder, schema, {"s1": source}, target, (schema,)).write()
    with TaskRun(files, spark) as run:
        run.catch_up()
        source.run(
            f"INSERT INTO {schema}.t VALUES (3, 'later', -2, X'5C', '1970-01-01')",
            f"UPDATE {schema}.t SET v = 'changed', id = 4 WHERE id = 2",
            f"ALTER TABLE {schema}.t ADD COLUMN more INT NOT NULL DEFAULT 7",
        )
        run.catch_up()
    source.run(f"DELETE FROM {schema}.t WHERE id = 1", f"INSERT INTO {schema}.t (id, more) VALUES (5, 8)")
    with TaskRun(files, spark) as run:
        run.catch_up()
    assert target.query(ROWS.format(schema)) == source.query(ROWS.format(schema))
    assert target.query(f"SELECT id, more FROM {schema}.t ORDER BY id") == [(3, 7), (4, 7), (5, 8)]


@pytest.mark.tidb_program
def test_mariadb_into_tidb(source_server: MariadbServer, schema: str, tmp_path: Path, spark: SparkSession) -> None:
    with TidbServer() as target:
        migrated(source_server, target, tmp_path, schema, spark)


@pytest.mark.mysql_80_program
def test_mysql_80_into_mariadb(target_server: MariadbServer, schema: str, tmp_path: Path, spark: SparkSession) -> None:
    with Mysql80Server() as source:
        migrated(source, target_server, tmp_path, schema, spark)


@pytest.mark.tidb_program
@pytest.mark.mysql_80_program
def test_mysql_80_into_tidb(schema: str, tmp_path: Path, spark: SparkSession) -> None:
    with Mysql80Server() as source, TidbServer() as target:
        migrated(source, target, tmp_path, schema, spark)
