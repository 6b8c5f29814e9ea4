"""CREATE DATABASE IF NOT EXISTS: every server logs it also where the database is there, and nothing is done."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.operated_tasks import ctl, go_on, stopped_run
from support.task_runs import TaskFiles, TaskRun
from unshard.errors import UnshardError
from unshard.testing.throwaway_server import ThrowawayServer
from unshard.testing.tidb_server import TidbServer

pytestmark = [pytest.mark.server, pytest.mark.spark]

UNICODE = "CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci"
WORDS = "Zoë 日本"


@pytest.fixture
def files(source_server: ThrowawayServer, target_server: ThrowawayServer, schema: str, tmp_path: Path) -> TaskFiles:
    """A task of the database `<schema>`, which is empty on the source, and of `<schema>_more`, which is not there."""
    source_server.run(f"CREATE DATABASE {schema} {UNICODE}")
    return TaskFiles(tmp_path, schema, {"s1": source_server}, target_server, (schema, f"{schema}_more")).write()


@pytest.fixture(params=["copied", pytest.param("given", marks=pytest.mark.scenarios), "incremental"])
def mode(request: pytest.FixtureRequest, files: TaskFiles) -> TaskFiles:
    """A task that copies, and incremental ones, whose target has the database or lacks it."""
    if request.param == "given":
        files.target.run(f"CREATE DATABASE {files.name} {UNICODE}")
    return replace(files, keys={} if request.param == "copied" else {"task-mode": "incremental"}).write()


def creates(files: TaskFiles, database: str, charset: str = "latin1") -> str:
    """What an application runs at each start, and a table with a row after it."""
    statement = f"CREATE DATABASE IF NOT EXISTS {database} CHARACTER SET {charset}"
    files.sources["s1"].run(statement)
    return statement


def inserts(files: TaskFiles, database: str, table: str = "t", words: str = WORDS) -> None:
    name = f"{database}.{table}"
    statement = f"CREATE TABLE {name} (id INT PRIMARY KEY, v VARCHAR(20))"
    files.sources["s1"].run(statement, f"INSERT INTO {name} VALUES (1, '{words}')")


def same(files: TaskFiles, database: str, charset: str, table: str = "t", words: str = WORDS) -> None:
    """Whether both ends have the row, and columns of the character set; into TiDB, values of latin1 come as utf8mb4."""
    asked = "SELECT CHARACTER_SET_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s"
    for server in (files.sources["s1"], files.target):
        assert server.query(f"SELECT v FROM {database}.{table}") == [(words,)]
        found = server.query(f"{asked} AND COLUMN_NAME = 'v'", (database, table))
        assert found == [("utf8mb4" if isinstance(server, TidbServer) else charset,)], server


def test_a_create_without_effect_is_not_the_definition(mode: TaskFiles, spark: SparkSession) -> None:
    with TaskRun(mode, spark) as run:
        run.catch_up()
        creates(mode, mode.name)
        inserts(mode, mode.name)
        run.catch_up()
        same(mode, mode.name, "utf8mb4")
        more = f"{mode.name}_more"
        creates(mode, more)
        creates(mode, more, "utf8mb4")
        inserts(mode, more, words="Zoë")
        run.catch_up()
        same(mode, more, "latin1", words="Zoë")
        mode.sources["s1"].run(f"DROP DATABASE {mode.name}")
        creates(mode, mode.name)
        inserts(mode, mode.name, "u", "Zoë")
        run.catch_up()
        same(mode, mode.name, "latin1", "u", "Zoë")


@pytest.mark.scenarios
@pytest.mark.parametrize("case", ["there", "made"])
def test_a_create_that_may_have_had_an_effect(case: str, mode: TaskFiles, spark: SparkSession) -> None:
    """It ran while the task stood still: the source does not tell any more whether the database was there before."""
    go_on(mode, spark)
    database = mode.name if case == "there" else f"{mode.name}_more"
    charset, words = ("utf8mb4", WORDS) if case == "there" else ("latin1", "Zoë")
    statement = creates(mode, database)
    inserts(mode, database, words=words)
    creates(mode, database)
    if case == "made":
        mode.sources["s1"].run(f"ALTER DATABASE {database} {UNICODE}")
    error = stopped_run(mode, spark)
    assert isinstance(error, UnshardError)
    assert error.code == "DDL-050"
    assert "latin1_swedish_ci" in str(error)
    assert "utf8mb4_general_ci" in str(error)
    if case == "there":
        ctl("binlog", "skip", str(mode.task_path), "-s", "s1")
    else:
        ctl("binlog", "replace", str(mode.task_path), "-s", "s1", statement)
    with TaskRun(mode, spark) as run:
        run.catch_up()
        same(mode, database, charset, words=words)
        inserts(mode, database, "u")
        run.catch_up()
        same(mode, database, "utf8mb4", "u")


@pytest.mark.scenarios
def test_a_create_that_says_what_the_source_has(mode: TaskFiles, spark: SparkSession) -> None:
    """Nothing depends on whether it had an effect."""
    go_on(mode, spark)
    creates(mode, f"{mode.name}_more")
    creates(mode, mode.name, "utf8mb4 COLLATE utf8mb4_general_ci")
    inserts(mode, f"{mode.name}_more", words="Zoë")
    inserts(mode, mode.name)
    go_on(mode, spark)
    same(mode, f"{mode.name}_more", "latin1", words="Zoë")
    same(mode, mode.name, "utf8mb4")
