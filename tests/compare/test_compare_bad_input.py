"""`unshard compare` where one table or one source can't be read: that is told, and the rest is compared."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.comparisons import compared, kinds
from support.task_runs import TaskFiles, TaskRun
from support.waiting import wait_until
from unshard.compare.result import CompareVerdict, ComparisonOutcome, RowClass
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.throwaway_server import ThrowawayServer

pytestmark = [pytest.mark.server, pytest.mark.spark]


@pytest.fixture(params=["full", pytest.param("all", marks=pytest.mark.scenarios)])
def files(
    request: pytest.FixtureRequest,
    source_server: MariadbServer,
    second_source: MariadbServer,
    target_server: ThrowawayServer,
    schema: str,
    tmp_path: Path,
    spark: SparkSession,
) -> Iterator[TaskFiles]:
    """Two sources, each with a table of its own and one of a merged table, copied. One row of each differs then."""
    sources = {"s1": source_server, "s2": second_source}
    for number, server in enumerate(sources.values(), 1):
        first = 10 * (number - 1)
        server.run(
            f"CREATE DATABASE {schema}",
            f"USE {schema}",
            *(f"CREATE TABLE {table}_{number} (id INT PRIMARY KEY, v INT)" for table in ("own", "t")),
            f"INSERT INTO own_{number} VALUES (1, 1), (2, 2)",
            f"INSERT INTO t_{number} VALUES ({first} + 1, 1), ({first} + 2, 2)",
        )
    route = {"schema-pattern": schema, "table-pattern": "t_*", "target-schema": schema, "target-table": "t"}
    keys = {"task-mode": request.param, "routes": {"r": route}}
    files = TaskFiles(tmp_path, f"task_{schema}", sources, target_server, (schema,), keys, {"route-rules": ["r"]})
    with TaskRun(files.write(), spark) as run:
        if request.param == "full":
            wait_until(run.crew.ended.is_set, "copied")
        else:
            run.catch_up()
    target_server.run(
        f"USE {schema}", *(f"UPDATE {table} SET v = 0 WHERE id IN (1, 11)" for table in ("own_1", "own_2", "t"))
    )
    yield files
    for one in (*sources.values(), target_server):
        one.run(f"DROP DATABASE IF EXISTS {schema}", f"DROP DATABASE IF EXISTS {files.meta}")


def told(outcome: ComparisonOutcome) -> dict[str, tuple[list[str], dict[str, str]]]:
    """By table, the codes of its errors, and its rows that differ."""
    return {one.name.table: ([error.code for error in one.errors], kinds(one)) for one in outcome.tables}


def account(server: ThrowawayServer, schema: str, *grants: str) -> str:
    """An account that may read these tables and the binlog's positions. The binlog has nothing of it."""
    user = f"few_{schema}"[:30]
    server.run(
        "SET sql_log_bin = 0",
        f"CREATE USER {user}@'%'",
        f"GRANT REPLICATION CLIENT ON *.* TO {user}@'%'",
        *(f"GRANT SELECT ON {schema}.{table} TO {user}@'%'" for table in grants),
    )
    return user


def rewrite(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_a_source_that_is_gone_leaves_the_tables_of_the_others(files: TaskFiles, spark: SparkSession) -> None:
    rewrite(files.folder / "s2.yaml", f"port: {files.sources['s2'].port}", "port: 1")
    outcome = compared(files, spark)
    assert [(error.code, error.where.source) for error in outcome.errors] == [("SOURCE-001", "s2")]
    assert told(outcome) == {
        "own_1": ([], {"id=1": "changed"}),
        "own_2": (["COMPARE-004"], {}),
        "t": (["COMPARE-004"], {}),
    }
    assert outcome.exit_code == 1


@pytest.mark.scenarios
def test_a_source_table_that_the_account_may_not_read(files: TaskFiles, spark: SparkSession, schema: str) -> None:
    user = account(files.sources["s1"], schema, "own_1")
    rewrite(files.folder / "s1.yaml", "user: root", f"user: {user}")
    try:
        found = told(compared(files, spark))
    finally:
        files.sources["s1"].run("SET sql_log_bin = 0", f"DROP USER {user}@'%'")
    assert found == {
        "own_1": ([], {"id=1": "changed"}),
        "own_2": ([], {"id=1": "changed"}),
        "t": (["COMPARE-005"], {}),
    }


@pytest.mark.scenarios
def test_a_target_table_that_the_account_may_not_read(files: TaskFiles, spark: SparkSession, schema: str) -> None:
    user = account(files.target, schema, "own_1", "t")
    files.target.run(f"GRANT ALL ON `{files.meta}`.* TO {user}@'%'")
    rewrite(files.task_path, "user: root", f"user: {user}")
    try:
        outcome = compared(files, spark)
    finally:
        files.target.run(f"DROP USER {user}@'%'")
    found = told(outcome)
    assert found["own_1"] == ([], {"id=1": "changed"})
    assert found["t"] == ([], {"id=1": "changed", "id=11": "changed"})
    assert found["own_2"] == (["COMPARE-022"], {})
    assert next(one for one in outcome.tables if one.name.table == "own_2").verdict is CompareVerdict.UNKNOWN


@pytest.mark.scenarios
def test_no_key_no_table_and_other_columns(files: TaskFiles, spark: SparkSession, schema: str) -> None:
    files.target.run(
        f"USE {schema}",
        "DROP TABLE own_1",
        "CREATE TABLE own_1 (id INT, v INT)",
        "INSERT INTO own_1 VALUES (1, 0), (2, 2)",
        "ALTER TABLE own_2 DROP COLUMN v",
        "DROP TABLE t",
        "CREATE TABLE other LIKE own_1",
    )
    outcome = compared(files, spark)
    found = {one.name.table: ([error.code for error in one.errors], dict(one.classes)) for one in outcome.tables}
    assert found == {
        "own_1": ([], {RowClass.MISSING: 1, RowClass.EXTRA: 1}),
        "own_2": (["COMPARE-002"], {}),
        "t": (["COMPARE-001"], {}),
    }
    assert outcome.exit_code == 1
