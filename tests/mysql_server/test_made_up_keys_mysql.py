"""Keys that MySQL makes up for tables without one: a target that would add them, a source that hides them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.checked_tasks import as_user, mended, with_keys
from support.operated_tasks import go_on, stopped_run
from support.task_runs import TaskFiles, TaskRun
from unshard.errors import UnshardError
from unshard.model.table import TableName
from unshard.testing.compare import assert_equal
from unshard.testing.mysql_server import MysqlServer

pytestmark = [pytest.mark.server, pytest.mark.spark]
ON_SCHEMA = "SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, ALTER, INDEX, REFERENCES"
CHECK = "target db privilege checker"
MADE_UP = (
    "SELECT TABLE_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = %s AND COLUMN_NAME = 'my_row_id'"
    " ORDER BY TABLE_NAME"
)
TABLES = {
    "keyless": "(a INT, b VARCHAR(20))",
    "half": "(a INT NOT NULL UNIQUE, b VARCHAR(20))",
    "made": "(a INT, b VARCHAR(20))",
}


@pytest.fixture
def adding(mysql_target: MysqlServer) -> Iterator[MysqlServer]:
    """A target that adds a key to each table without one."""
    mysql_target.run("SET GLOBAL sql_generate_invisible_primary_key = ON")
    yield mysql_target
    mysql_target.run("SET GLOBAL sql_generate_invisible_primary_key = OFF")


@pytest.fixture
def hiding(mysql_source: MysqlServer) -> Iterator[MysqlServer]:
    """A source that shows no key that it has made up."""
    mysql_source.run("SET GLOBAL show_gipk_in_create_table_and_information_schema = OFF")
    yield mysql_source
    mysql_source.run("SET GLOBAL show_gipk_in_create_table_and_information_schema = ON")


def change(source: MysqlServer, schema: str, number: int) -> None:
    for name in (*TABLES, "hidden"):
        source.run(
            f"INSERT INTO {schema}.{name} (a, b) VALUES ({number}0, 'x'), ({number}1, 'x'), ({number}2, NULL)",
            f"UPDATE {schema}.{name} SET b = 'y', a = a + 100 WHERE a = {number}1",
            f"DELETE FROM {schema}.{name} WHERE a = {number} LIMIT 1",
        )


def test_tables_keep_the_keys_of_the_source(
    spark: SparkSession, hiding: MysqlServer, adding: MysqlServer, schema: str, tmp_path: Path
) -> None:
    """`hidden` has such a key in the source; `made` was made by hand on the target, where it got one."""
    hiding.run(
        f"CREATE DATABASE {schema}",
        *(f"CREATE TABLE {schema}.{name} {definition}" for name, definition in TABLES.items()),
        "SET sql_generate_invisible_primary_key = ON",
        f"CREATE TABLE {schema}.hidden {TABLES['keyless']}",
        *(f"INSERT INTO {schema}.{name} VALUES (1, 'x'), (2, 'x'), (3, NULL)" for name in (*TABLES, "hidden")),
        *(f"INSERT INTO {schema}.{name} VALUES (1, 'x'), (2, 'x')" for name in ("keyless", "made", "hidden")),
    )
    adding.run(f"CREATE DATABASE {schema}", f"CREATE TABLE {schema}.made {TABLES['made']}")
    with TaskRun(TaskFiles(tmp_path, schema, {"s1": hiding}, adding, (schema,)).write(), spark) as run:
        run.catch_up()
        change(hiding, schema, 1)
        run.catch_up()
        hiding.run(
            *(f"ALTER TABLE {schema}.{name} ADD COLUMN c INT NOT NULL DEFAULT 7" for name in (*TABLES, "hidden")),
            f"CREATE TABLE {schema}.later {TABLES['keyless']}",
            f"INSERT INTO {schema}.later VALUES (1, 'x'), (1, 'x')",
            f"DELETE FROM {schema}.later LIMIT 1",
        )
        change(hiding, schema, 2)
        run.catch_up()
    for name in (*TABLES, "hidden", "later"):
        query = f"SELECT * FROM {schema}.{name} ORDER BY a, b"
        assert adding.query(query) == hiding.query(query), name
    assert adding.query(MADE_UP, (schema,)) == [("hidden",), ("made",)]
    query = f"SELECT my_row_id, a, b, c FROM {schema}.hidden ORDER BY 1"
    assert adding.query(query) == hiding.query(query)


@pytest.fixture
def files(mysql_source: MysqlServer, adding: MysqlServer, schema: str, tmp_path: Path) -> TaskFiles:
    """A task whose account has what the tutorial grants."""
    mysql_source.run(
        f"CREATE DATABASE {schema}",
        f"CREATE TABLE {schema}.t (id INT PRIMARY KEY, b INT)",
        f"INSERT INTO {schema}.t VALUES (1, 1)",
    )
    task = TaskFiles(tmp_path, schema, {"s1": mysql_source}, adding, (schema,))
    on = (f"`{schema}`.*", f"`{task.meta}%`.*".replace("_", r"\_"))
    account = as_user(adding, "plain", *(f"{ON_SCHEMA} ON {name}" for name in on))
    return with_keys(task, target_database=account).write()


@pytest.mark.parametrize("when", ["copied", "followed"])
def test_an_account_that_may_not_turn_them_off(
    when: str, spark: SparkSession, mysql_source: MysqlServer, files: TaskFiles, schema: str
) -> None:
    """It is told beforehand; tables that have a key are copied and followed all the same."""
    if when == "followed":
        go_on(files, spark)
    mysql_source.run(
        f"INSERT INTO {schema}.t VALUES (2, 2)",
        f"CREATE TABLE {schema}.keyless (a INT)",
        f"INSERT INTO {schema}.keyless VALUES (1), (1)",
    )
    error = stopped_run(files, spark)
    assert isinstance(error, UnshardError), error
    assert error.code == "DDL-036", error
    if when == "followed":
        assert files.target.query(f"SELECT id FROM {schema}.t ORDER BY id") == [(1,), (2,)]
    (grant,) = mended(files, CHECK, files.target, "fail" if when == "copied" else "warn", "SESSION_VARIABLES_ADMIN")
    assert grant == "GRANT SESSION_VARIABLES_ADMIN ON *.* TO 'plain'@'127.0.0.1'"
    go_on(files, spark)
    for name in ("t", "keyless"):
        assert_equal([(mysql_source, TableName(schema, name))], (files.target, TableName(schema, name)))
    assert files.target.query(MADE_UP, (schema,)) == []


def test_a_target_that_insists_on_keys(
    spark: SparkSession, mysql_source: MysqlServer, adding: MysqlServer, schema: str, tmp_path: Path
) -> None:
    """Tables of our own have them; one without is copied with the key that the target adds."""
    mysql_source.run(
        f"CREATE DATABASE {schema}",
        f"CREATE TABLE {schema}.keyless (a INT, b INT)",
        f"INSERT INTO {schema}.keyless VALUES (1, 1), (1, 1), (2, 2)",
    )
    adding.run("SET GLOBAL sql_require_primary_key = ON")
    try:
        with TaskRun(TaskFiles(tmp_path, schema, {"s1": mysql_source}, adding, (schema,)).write(), spark) as run:
            run.catch_up()
            mysql_source.run(
                f"DELETE FROM {schema}.keyless WHERE a = 1 LIMIT 1",
                f"UPDATE {schema}.keyless SET b = 7 WHERE a = 2",
            )
            run.catch_up()
    finally:
        adding.run("SET GLOBAL sql_require_primary_key = OFF")
    assert adding.query(f"SELECT * FROM {schema}.keyless ORDER BY a") == [(1, 1), (2, 7)]
    assert adding.query(MADE_UP, (schema,)) == [("keyless",)]
