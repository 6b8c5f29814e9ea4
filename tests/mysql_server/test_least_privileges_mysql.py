"""A task between two MySQLs whose accounts have just what the tutorial grants: no SUPER anywhere."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.checked_tasks import as_user, found, with_keys
from support.task_runs import TaskFiles, TaskRun
from unshard.errors import UnshardError
from unshard.testing.mysql_server import MysqlServer

pytestmark = [pytest.mark.server, pytest.mark.spark]
ON_SCHEMA = "SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, ALTER, INDEX, REFERENCES"


@pytest.fixture
def files(mysql_source: MysqlServer, mysql_target: MysqlServer, schema: str, tmp_path: Path) -> TaskFiles:
    mysql_source.run(
        f"CREATE DATABASE {schema}",
        f"CREATE TABLE {schema}.t (id INT PRIMARY KEY, e ENUM('a'))",
        f"INSERT INTO {schema}.t VALUES (1, 'a')",
    )
    source = as_user(
        mysql_source, "reader", "REPLICATION SLAVE, REPLICATION CLIENT, RELOAD ON *.*", f"SELECT ON `{schema}`.*"
    )
    task = TaskFiles(tmp_path, schema, {"s1": mysql_source}, mysql_target, (schema,), source={"from": source})
    on = (f"`{schema}`.*", f"`{task.meta}%`.*".replace("_", r"\_"))
    target = as_user(mysql_target, "least", *(f"{ON_SCHEMA} ON {name}" for name in on))
    return with_keys(task, target_database=target)


def test_a_task_of_every_unit(files: TaskFiles, spark: SparkSession, mysql_source: MysqlServer, schema: str) -> None:
    assert found(files, "target db privilege checker") == []
    with TaskRun(files.write(), spark) as run:
        run.catch_up()
        mysql_source.run(
            f"CREATE TABLE {schema}.child (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES {schema}.t (id))",
            f"INSERT INTO {schema}.child VALUES (7, 1)",
            # as pt-online-schema-change does it: the server gives its own key over p another name
            f"ALTER TABLE {schema}.child DROP FOREIGN KEY child_ibfk_1,"
            f" ADD CONSTRAINT _child_ibfk_1 FOREIGN KEY (p) REFERENCES {schema}.t (id)",
            f"ALTER TABLE {schema}.t ADD COLUMN v VARCHAR(9) DEFAULT 'x'",
            f"UPDATE {schema}.t SET v = 'é'",
        )
        run.catch_up()
    query = f"SELECT e, v, c.id FROM {schema}.t JOIN {schema}.child c ON p = t.id"
    assert files.target.query(query) == [("a", "é", 7)]


def test_more_warnings_than_the_target_lists(
    files: TaskFiles, spark: SparkSession, mysql_source: MysqlServer, mysql_target: MysqlServer, schema: str
) -> None:
    mysql_source.run(
        "SET sql_mode = ''",
        f"INSERT INTO {schema}.t WITH RECURSIVE n (i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 999)"
        " SELECT /*+ SET_VAR(cte_max_recursion_depth = 9999) */ i, 0 FROM n",
        f"INSERT INTO {schema}.t SELECT id + 1000, e FROM {schema}.t WHERE id > 1",
    )
    files.write()
    error = TaskRun(files, spark).start().error()
    assert isinstance(error, UnshardError), error
    assert error.code == "LOAD-021", error
    mysql_target.run("GRANT SESSION_VARIABLES_ADMIN ON *.* TO least@`127.0.0.1`")
    with TaskRun(files, spark) as run:
        run.catch_up()
    query = f"SELECT COUNT(*), SUM(e = 0) FROM {schema}.t"
    assert mysql_target.query(query) == mysql_source.query(query)
