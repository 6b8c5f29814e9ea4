"""Tables that are altered, and shards that come, while rows are compared: they are compared again."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from support.comparisons import compared, only_table
from support.task_runs import TaskFiles, TaskRun
from unshard.cli.compare_subject import CompareSubject, CompareWish, task_subject
from unshard.compare.plan import ComparisonPlan
from unshard.compare.report import text_lines
from unshard.compare.result import CompareVerdict, ComparisonOutcome, RowClass
from unshard.compare.run import CompareSettings, TableComparison
from unshard.config.files import load_files
from unshard.errors import TargetError, UnshardError
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.throwaway_server import ThrowawayServer

pytestmark = [pytest.mark.server, pytest.mark.spark]


@pytest.fixture
def files(
    source_server: MariadbServer, target_server: ThrowawayServer, schema: str, tmp_path: Path
) -> Iterator[TaskFiles]:
    source_server.run(f"CREATE DATABASE {schema} CHARACTER SET utf8mb4")
    yield TaskFiles(tmp_path, f"task_{schema}", {"s1": source_server}, target_server, (schema,))
    source_server.run(f"DROP DATABASE {schema}")
    target_server.run(f"DROP DATABASE IF EXISTS {schema}", f"DROP DATABASE IF EXISTS meta_task_{schema}")


def copied(files: TaskFiles) -> TaskFiles:
    """The files of a task that copies and does not follow, with the target's schema."""
    (schema,) = files.schemas
    files.target.run(f"CREATE DATABASE {schema} CHARACTER SET utf8mb4")
    return replace(files, keys={"task-mode": "full"}).write()


def after_the_first_wave(monkeypatch: pytest.MonkeyPatch, *actions: Callable[[], None]) -> None:
    """Let each action run after one wave of ranges, in turn."""
    compare, waves = TableComparison._compare, list(reversed(actions))

    def compare_and_act(self: Any, *args: Any) -> float:
        busy = compare(self, *args)
        if waves:
            waves.pop()()
        return busy

    monkeypatch.setattr(TableComparison, "_compare", compare_and_act)


def assert_unknown(found: ComparisonOutcome) -> None:
    table = only_table(found)
    assert table.verdict is CompareVerdict.UNKNOWN
    assert [error.code for error in table.errors] == ["COMPARE-024"], list(text_lines(found))
    assert (found.exit_code, table.differences) == (2, [])


def test_a_key_gets_another_collation(
    files: TaskFiles, spark: SparkSession, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The order of the keys changes, so that one is in no range."""
    files = copied(files)
    ends = [files.sources["s1"], files.target]
    for server, value in zip(ends, (1, 999), strict=True):
        server.run(
            f"USE {schema}",
            "CREATE TABLE t (k VARCHAR(9) COLLATE utf8mb4_bin PRIMARY KEY, v INT)",
            f"INSERT INTO t VALUES ('B', 1), ('a', {value}), ('c', 1)",
        )

    def alter() -> None:
        for server in ends:
            server.run(f"ALTER TABLE {schema}.t MODIFY k VARCHAR(9) COLLATE utf8mb4_general_ci NOT NULL")

    after_the_first_wave(monkeypatch, alter)
    table = only_table(compared(files, spark, chunk_rows=1, connections=1))
    assert (table.verdict, table.errors) == (CompareVerdict.DIFFERENT, [])
    assert [(one.kind, one.key) for one in table.differences] == [(RowClass.CHANGED, "k='a'")]


def test_a_column_is_added(files: TaskFiles, spark: SparkSession, schema: str, monkeypatch: pytest.MonkeyPatch) -> None:
    files = copied(files)
    ends = [files.sources["s1"], files.target]
    for server in ends:
        server.run(
            f"USE {schema}", "CREATE TABLE t (id INT PRIMARY KEY, v INT)", "INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)"
        )

    def alter() -> None:
        for number, server in enumerate(ends):
            server.run(f"ALTER TABLE {schema}.t ADD COLUMN c INT DEFAULT {number}")

    after_the_first_wave(monkeypatch, alter)
    found = compared(files, spark, chunk_rows=1, connections=1)
    table = only_table(found)
    assert (table.verdict, table.errors, table.source_rows) == (CompareVerdict.DIFFERENT, [], 3)
    assert [(one.kind, one.columns) for one in table.differences] == [(RowClass.CHANGED, ("c",))] * 3
    assert all(place.begin for place in found.places)


def test_a_table_that_changes_all_the_time_is_unknown(
    files: TaskFiles, spark: SparkSession, schema: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    files = copied(files)
    ends = [files.sources["s1"], files.target]
    for server, value in zip(ends, (1, 2), strict=True):
        server.run(
            f"CREATE TABLE {schema}.t (id INT PRIMARY KEY, v INT)", f"INSERT INTO {schema}.t VALUES (1, {value})"
        )

    def alter(column: str) -> None:
        for server in ends:
            server.run(f"ALTER TABLE {schema}.t ADD COLUMN {column} INT")

    after_the_first_wave(monkeypatch, *(partial(alter, column) for column in ("a", "b", "c")))
    path = tmp_path / "mend.sql"
    subject = task_subject(load_files(files.task_path, files.source_paths), CompareWish())
    told: list[str] = []
    assert_unknown(subject.compare(CompareSettings(), spark, told.append, threading.Event(), path))
    assert sum(line.endswith("comparing them again") for line in told) == 2
    assert not path.exists()


def test_what_was_compared_is_told_though_the_rest_can_not_be_compared_again(
    files: TaskFiles, spark: SparkSession, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = copied(files)
    ends = [files.sources["s1"], files.target]
    for server, value in zip(ends, (1, 2), strict=True):
        server.run(
            *(f"CREATE TABLE {schema}.{name} (id INT PRIMARY KEY, v INT)" for name in ("t", "u")),
            f"INSERT INTO {schema}.t VALUES (1, {value})",
        )

    def alter() -> None:
        for server in ends:
            server.run(f"ALTER TABLE {schema}.u ADD COLUMN c INT")

    def tell(line: str) -> None:
        if line.endswith("comparing them again"):
            monkeypatch.setattr(CompareSubject, "plan", lambda self: raised(TargetError("TARGET-001")))

    after_the_first_wave(monkeypatch, alter)
    subject = task_subject(load_files(files.task_path, files.source_paths), CompareWish())
    found = subject.compare(CompareSettings(), spark, tell, threading.Event())
    verdicts = {one.name.table: one.verdict for one in found.tables}
    assert verdicts == {"t": CompareVerdict.DIFFERENT, "u": CompareVerdict.UNKNOWN}
    assert [error.code for error in found.errors] == ["TARGET-001"]


def raised(error: UnshardError) -> ComparisonPlan:
    raise error


def test_a_table_that_comes_is_compared(
    files: TaskFiles, spark: SparkSession, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = copied(files)
    ends = [files.sources["s1"], files.target]
    for server in ends:
        server.run(f"CREATE TABLE {schema}.t (id INT PRIMARY KEY)", f"INSERT INTO {schema}.t VALUES (1)")

    def create() -> None:
        for server in ends:
            server.run(f"CREATE TABLE {schema}.u LIKE {schema}.t")

    after_the_first_wave(monkeypatch, create)
    found = compared(files, spark)
    verdicts = {one.name.table: one.verdict for one in found.tables}
    assert verdicts == {"t": CompareVerdict.EQUAL, "u": CompareVerdict.EQUAL}
    assert found.exit_code == 0


def test_the_rows_of_a_shard_that_comes_are_not_extra(
    files: TaskFiles, spark: SparkSession, schema: str, tmp_path: Path
) -> None:
    source, path = files.sources["s1"], tmp_path / "mend.sql"
    source.run(
        f"USE {schema}",
        *(f"CREATE TABLE t_{number} (id INT PRIMARY KEY)" for number in (1, 2)),
        *(f"INSERT INTO t_{number} VALUES ({number}01), ({number}02)" for number in (1, 2)),
    )
    route = {"schema-pattern": schema, "table-pattern": "t_*", "target-schema": schema, "target-table": "t"}
    files = replace(files, keys={"routes": {"r": route}}, instance={"route-rules": ["r"]}).write()
    with TaskRun(files, spark) as run:
        run.catch_up()

        created: list[bool] = []

        def tell(line: str) -> None:
            if line.startswith("comparing") and not created:
                created.append(True)
                source.run(f"CREATE TABLE {schema}.t_3 LIKE {schema}.t_1", f"INSERT INTO {schema}.t_3 VALUES (301)")
                run.catch_up()

        subject = task_subject(load_files(files.task_path, files.source_paths), CompareWish())
        settings = CompareSettings(patience_seconds=60.0)
        found = subject.compare(settings, spark, tell, threading.Event(), path)
        assert found.exit_code == 0, list(text_lines(found))
        assert only_table(found).source_rows == 5
        assert not path.exists()
