"""CREATE DATABASE IF NOT EXISTS of a MySQL, and of MariaDBs of other versions: logged also where nothing is done."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.operated_tasks import go_on, stopped_run
from support.task_runs import TaskFiles, TaskRun
from unshard.errors import UnshardError
from unshard.testing.throwaway_server import ThrowawayServer

pytestmark = [pytest.mark.server, pytest.mark.spark]


@pytest.mark.parametrize("source", ["mysql_56", "mysql_80", "old_mariadb", "other_mariadb"])
def test_a_create_without_effect_is_not_the_definition(
    source: str,
    request: pytest.FixtureRequest,
    target_server: ThrowawayServer,
    schema: str,
    spark: SparkSession,
    tmp_path: Path,
) -> None:
    server: ThrowawayServer = request.getfixturevalue(source)
    default = "CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci"
    server.run(f"CREATE DATABASE {schema} {default}")
    files = TaskFiles(tmp_path, schema, {"s1": server}, target_server, (schema,)).write()
    again = f"CREATE DATABASE IF NOT EXISTS {schema} CHARACTER SET latin1"
    with TaskRun(files, spark) as run:
        run.catch_up()
        server.run(again, f"CREATE TABLE {schema}.t (id INT PRIMARY KEY, v VARCHAR(20))")
        server.run(f"INSERT INTO {schema}.t VALUES (1, 'Zoë 日本')")
        run.catch_up()
    assert target_server.query(f"SELECT v FROM {schema}.t") == [("Zoë 日本",)]


@pytest.mark.parametrize("source", ["mysql_56", "mysql_80", "old_mariadb", "other_mariadb"])
def test_a_statement_from_a_time_at_which_the_task_stood_still(
    source: str,
    request: pytest.FixtureRequest,
    target_server: ThrowawayServer,
    schema: str,
    spark: SparkSession,
    tmp_path: Path,
) -> None:
    """The default of a character set is the source's own."""
    server: ThrowawayServer = request.getfixturevalue(source)
    server.run(f"CREATE DATABASE {schema} CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci")
    files = TaskFiles(tmp_path, schema, {"s1": server}, target_server, (schema, f"{schema}_2")).write()
    go_on(files, spark)
    server.run(f"CREATE DATABASE IF NOT EXISTS {schema}_2 CHARACTER SET latin1")
    server.run(f"CREATE DATABASE IF NOT EXISTS {schema}_2")
    go_on(files, spark)
    server.run(f"CREATE DATABASE IF NOT EXISTS {schema} CHARACTER SET latin1")
    error = stopped_run(files, spark)
    assert isinstance(error, UnshardError)
    assert error.code == "DDL-050"
