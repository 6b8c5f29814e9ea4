"""Tables that a source tells apart by the case of their names, on a target that takes such names for one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from support.operated_tasks import ctl
from support.target_servers import folding_names
from support.task_runs import TaskFiles, TaskRun
from unshard.errors import UnshardError
from unshard.sync.statements.names_by_case import NamesByCase
from unshard.testing.throwaway_server import ThrowawayServer

pytestmark = [pytest.mark.server, pytest.mark.spark]

ROW = "(id INT PRIMARY KEY, v VARCHAR(20))"


@pytest.fixture(scope="module")
def folding(target_server: ThrowawayServer) -> Iterator[ThrowawayServer]:
    with folding_names(target_server) as server:
        yield server


@pytest.fixture
def files(source_server: ThrowawayServer, folding: ThrowawayServer, schema: str, tmp_path: Path) -> TaskFiles:
    """A task of one table, `orders`, with a row."""
    source_server.run(f"CREATE DATABASE {schema}", f"CREATE TABLE {schema}.orders {ROW}")
    source_server.run(f"INSERT INTO {schema}.orders VALUES (1, 'first')")
    return TaskFiles(tmp_path, schema, {"s1": source_server}, folding, (schema,)).write()


def stops(files: TaskFiles, spark: SparkSession, *statements: str, code: str = "DDL-049") -> str:
    """Run a task, then the statements on its first source; return the error that it stops with."""
    source = next(iter(files.sources.values()))
    with TaskRun(files, spark).failing() as run:
        run.catch_up()
        source.run(f"USE `{files.schemas[0]}`", *statements)
        with pytest.raises(UnshardError) as stopped:
            run.catch_up()
    assert stopped.value.code == code, stopped.value
    return str(stopped.value)


def rows_of(server: ThrowawayServer, table: str) -> Any:
    return server.query(f"SELECT * FROM {table} ORDER BY id")


SECOND = {
    "create": (f"CREATE TABLE Orders {ROW}",),
    "like": ("CREATE TABLE Orders LIKE orders",),
    "select": ("CREATE TABLE Orders (PRIMARY KEY (id)) SELECT * FROM orders",),
    "if not there": (f"CREATE TABLE IF NOT EXISTS Orders {ROW}",),
    "or replace": (f"CREATE /*M! OR REPLACE */ TABLE Orders {ROW}",),
    "drop": ("DROP TABLE IF EXISTS Orders",),
    "rename": (f"CREATE TABLE others {ROW}", "RENAME TABLE others TO Orders"),
    "alter": (f"CREATE TABLE others {ROW}", "ALTER TABLE others RENAME TO Orders"),
    "two at once": (f"CREATE TABLE a {ROW}", f"CREATE TABLE b {ROW}", "RENAME TABLE a TO Others, b TO others"),
}
QUICK = ("create", "drop", "alter")


@pytest.mark.parametrize(
    "case", [case if case in QUICK else pytest.param(case, marks=pytest.mark.scenarios) for case in SECOND]
)
def test_a_second_table_is_refused(case: str, files: TaskFiles, spark: SparkSession) -> None:
    table = f"{files.name}.{'others' if case == 'two at once' else 'orders'}"
    text = stops(files, spark, *SECOND[case])
    assert table in text.replace(table.replace("o", "O", 1), "")
    assert rows_of(files.target, f"{files.name}.orders") == [(1, "first")]


def ends_alike(files: TaskFiles, spark: SparkSession, *statements: str, tables: dict[str, str]) -> None:
    """Go on, run further statements on the first source, and compare its tables with those of the target."""
    source = next(iter(files.sources.values()))
    with TaskRun(files, spark) as run:
        run.catch_up()
        source.run(f"USE `{files.schemas[0]}`", *statements)
        run.catch_up()
    for table, there in tables.items():
        assert rows_of(source, f"{files.name}.{table}") == rows_of(files.target, f"{files.name}.{there}"), table


@pytest.mark.scenarios
def test_names_follow_each_other(files: TaskFiles, spark: SparkSession) -> None:
    """One table is never beside the other."""
    steps = ("DROP TABLE orders", f"CREATE TABLE Orders {ROW}", "INSERT INTO Orders VALUES (2, 'b')")
    ends_alike(files, spark, *steps, tables={"Orders": "Orders"})


def case_counts(name: str) -> str:
    """The pattern of the advice."""
    return f"~^(?-i:{name})$"


def route(schema: str, target_schema: str, **table: str) -> dict[str, Any]:
    rule = {"schema-pattern": schema, "target-schema": target_schema, **table}
    return {"keys": {"routes": {"r": rule}}, "instance": {"route-rules": ["r"]}}


CREATES = (f"CREATE TABLE Orders {ROW}", "INSERT INTO Orders VALUES (7, 'capital')")


def left_out(files: TaskFiles, **lists: object) -> dict[str, Any]:
    return {"keys": {"block-allow-list": {"own": {"do-dbs": [case_counts(files.name)], **lists}}}}


@pytest.mark.scenarios
@pytest.mark.parametrize("advice", ["route", "ignore", "one"])
def test_the_advice_for_a_second_table(advice: str, files: TaskFiles, spark: SparkSession) -> None:
    error = stops(files, spark, *CREATES)
    assert "`~^(?-i:NAME)$`" in error
    to = {"route": "capital_orders", "ignore": "Orders", "one": "orders"}[advice]
    changed = route(files.name, files.name, **{"table-pattern": case_counts("Orders"), "target-table": to})
    if advice == "ignore":
        changed = left_out(files, **{"ignore-tables": [{"db-name": files.name, "tbl-name": case_counts("Orders")}]})
    more = ("INSERT INTO Orders VALUES (8, 'both')", "INSERT INTO orders VALUES (2, 'second')")
    tables = {"orders": "orders", "Orders": to} if advice == "route" else {"orders": "orders"}
    ends_alike(replace(files, **changed).write(), spark, *more, tables={} if advice == "one" else tables)
    if advice == "one":
        there = rows_of(files.target, f"{files.name}.orders")
        assert there == [(1, "first"), (2, "second"), (7, "capital"), (8, "both")]


@pytest.mark.scenarios
def test_an_operator_does_not_let_its_rows_in(files: TaskFiles, spark: SparkSession) -> None:
    stops(files, spark, *CREATES)
    ctl("binlog", "skip", str(files.task_path), "-s", "s1")
    with TaskRun(files, spark).failing() as run, pytest.raises(UnshardError) as stopped:
        run.catch_up()
    assert getattr(stopped.value, "code", "") == "DDL-049"
    assert rows_of(files.target, f"{files.name}.orders") == [(1, "first")]


@pytest.mark.scenarios
def test_a_drop_of_what_was_never_there_is_left_out(files: TaskFiles, spark: SparkSession) -> None:
    stops(files, spark, "DROP TABLE IF EXISTS Orders")
    ctl("binlog", "skip", str(files.task_path), "-s", "s1")
    ends_alike(files, spark, "INSERT INTO orders VALUES (2, 'second')", tables={"orders": "orders"})


@pytest.mark.scenarios
@pytest.mark.parametrize("advice", ["route", "ignore"])
def test_a_second_database(advice: str, files: TaskFiles, spark: SparkSession) -> None:
    upper = files.name.upper()
    files = replace(files, schemas=(files.name, upper)).write()
    statements = (f"CREATE DATABASE {upper}", f"CREATE TABLE {upper}.t {ROW}", f"INSERT INTO {upper}.t VALUES (5, 'x')")
    stops(files, spark, *statements)
    changed = route(case_counts(upper), f"{files.name}_capital")
    if advice == "ignore":
        changed = left_out(files)
    files = replace(files, **changed).write()
    ends_alike(files, spark, "INSERT INTO orders VALUES (2, 'second')", tables={"orders": "orders"})
    databases = {name for (name,) in files.target.query("SHOW DATABASES")}
    assert (f"{files.name}_capital" in databases) == (advice == "route")
    if advice == "route":
        assert rows_of(files.target, f"{files.name}_capital.t") == [(5, "x")]
        ends_alike(files, spark, f"DROP DATABASE {upper}", tables={"orders": "orders"})


@pytest.mark.scenarios
@pytest.mark.parametrize("mode", ["", "pessimistic", "optimistic"])
def test_a_table_of_another_source(
    mode: str, files: TaskFiles, second_source: ThrowawayServer, spark: SparkSession
) -> None:
    """The sources may route their tables alike, each in its own case."""
    second_source.run(f"CREATE DATABASE {files.name}", f"CREATE TABLE {files.name}.others {ROW}")
    keys = {"shard-mode": mode} if mode else {}
    files = replace(files, sources={"s2": second_source, **files.sources}, keys=keys).write()
    text = stops(files, spark, *CREATES)
    assert f"{files.name}.orders of s1" in text
    assert rows_of(files.target, f"{files.name}.orders") == [(1, "first")]


@pytest.mark.scenarios
@pytest.mark.parametrize("mode", ["", "pessimistic", "optimistic"])
def test_shards_in_two_cases_that_are_routed_to_one_table(mode: str, files: TaskFiles, spark: SparkSession) -> None:
    keys = {"shard-mode": mode} if mode else {}
    merged = route(files.name, files.name, **{"table-pattern": "ord*", "target-table": "All_Orders"})
    files = replace(files, **merged)
    files = replace(files, keys={**files.keys, **keys}).write()
    ends_alike(files, spark, *CREATES, tables={})
    assert rows_of(files.target, f"{files.name}.All_Orders") == [(1, "first"), (7, "capital")]


@pytest.mark.scenarios
@pytest.mark.parametrize("made", ["before", "behind"])
def test_tables_of_which_the_log_has_brought_nothing(made: str, files: TaskFiles, spark: SparkSession) -> None:
    """An incremental task: the first rows of a table, or its CREATE, are the first that is read of it."""
    files.target.run(f"CREATE DATABASE {files.name}", f"CREATE TABLE {files.name}.orders {ROW}")
    files.target.run(f"INSERT INTO {files.name}.orders VALUES (1, 'first')")
    if made == "before":
        files.sources["s1"].run(f"CREATE TABLE {files.name}.Orders {ROW}")
    files = replace(files, keys={"task-mode": "incremental"}).write()
    stops(files, spark, *(CREATES if made == "behind" else CREATES[1:]))
    assert rows_of(files.target, f"{files.name}.orders") == [(1, "first")]


@pytest.mark.scenarios
def test_two_sources_that_make_them_at_once(
    files: TaskFiles, second_source: ThrowawayServer, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither sees the other's table before its statement. Afterwards one of them does, then and at each start."""
    second_source.run(f"CREATE DATABASE {files.name}", f"CREATE TABLE {files.name}.others {ROW}")
    files = replace(files, sources={"s2": second_source, **files.sources}).write()
    monkeypatch.setattr(NamesByCase, "refuse", lambda self, found: None)
    stops(files, spark, *CREATES)
    with TaskRun(files, spark).failing() as run, pytest.raises(UnshardError) as stopped:
        run.catch_up()
    assert getattr(stopped.value, "code", "") == "DDL-049"
    assert rows_of(files.target, f"{files.name}.orders") == [(1, "first")]
