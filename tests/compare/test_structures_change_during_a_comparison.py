"""Tables that are altered, and shards that come, while rows are compared: they are compared again."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from support.comparisons import compared, compared_and_told, merged_into_one, only_table
from support.task_runs import TaskFiles, TaskRun
from unshard.cli.compare_subject import CompareSubject, CompareWish
from unshard.compare.plan import ComparisonPlan
from unshard.compare.report import text_lines
from unshard.compare.result import CompareVerdict, ComparisonOutcome, RowClass
from unshard.compare.run import TableComparison
from unshard.errors import TargetError, UnshardError
from unshard.testing.throwaway_server import ThrowawayServer

pytestmark = pytest.mark.server


def on_both(files: TaskFiles, *statements: str) -> None:
    """Run the statements in the schema of both ends. `#` is 0 on the source, and 1 on the target."""
    for number, server in enumerate((files.sources["s1"], files.target)):
        server.run(f"USE {files.schemas[0]}", *(statement.replace("#", str(number)) for statement in statements))


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


def test_a_key_gets_another_collation(files: TaskFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    """The order of the keys changes, so that one is in no range."""
    on_both(
        files,
        "CREATE TABLE t (k VARCHAR(9) COLLATE utf8mb4_bin PRIMARY KEY, v INT)",
        "INSERT INTO t VALUES ('B', 1), ('a', #), ('c', 1)",
    )
    altered = "ALTER TABLE t MODIFY k VARCHAR(9) COLLATE utf8mb4_general_ci NOT NULL"
    after_the_first_wave(monkeypatch, partial(on_both, files, altered))
    table = only_table(compared(files, None, chunk_rows=1, connections=1))
    assert (table.verdict, table.errors) == (CompareVerdict.DIFFERENT, [])
    assert [(one.kind, one.key) for one in table.differences] == [(RowClass.CHANGED, "k='a'")]


def test_a_column_is_added(files: TaskFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    on_both(files, "CREATE TABLE t (id INT PRIMARY KEY, v INT)", "INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)")
    after_the_first_wave(monkeypatch, partial(on_both, files, "ALTER TABLE t ADD COLUMN c INT DEFAULT #"))
    found = compared(files, None, chunk_rows=1, connections=1)
    table = only_table(found)
    assert (table.verdict, table.errors, table.source_rows) == (CompareVerdict.DIFFERENT, [], 3)
    assert [(one.kind, one.columns) for one in table.differences] == [(RowClass.CHANGED, ("c",))] * 3
    assert all(place.begin for place in found.places)


def test_a_table_that_changes_all_the_time_is_unknown(
    files: TaskFiles, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    on_both(files, "CREATE TABLE t (id INT PRIMARY KEY, v INT)", "INSERT INTO t VALUES (1, #)")
    alters = (partial(on_both, files, f"ALTER TABLE t ADD COLUMN {column} INT") for column in "abc")
    after_the_first_wave(monkeypatch, *alters)
    path, told = tmp_path / "mend.sql", list[str]()
    assert_unknown(compared_and_told(files, None, told.append, CompareWish(sql=path)))
    assert sum(line.endswith("comparing them again") for line in told) == 2
    assert not path.exists()


def test_a_table_that_changes_before_the_sources_are_held_is_unknown(files: TaskFiles) -> None:
    """Their writers would have to wait once more for a second comparison."""
    on_both(files, "CREATE TABLE t (id INT PRIMARY KEY, v INT)", "INSERT INTO t VALUES (1, #)")
    told: list[str] = []

    def tell(line: str) -> None:
        if line.startswith("comparing"):
            on_both(files, "ALTER TABLE t ADD COLUMN c INT")
        told.append(line)

    assert_unknown(compared_and_told(files, None, tell, hold_seconds=30.0))
    assert sum(line.startswith("comparing") for line in told) == 1


def test_what_was_compared_is_told_though_the_rest_can_not_be_compared_again(
    files: TaskFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = (f"CREATE TABLE {name} (id INT PRIMARY KEY, v INT)" for name in "tu")
    on_both(files, *tables, "INSERT INTO t VALUES (1, #)")

    def tell(line: str) -> None:
        if line.endswith("comparing them again"):
            monkeypatch.setattr(CompareSubject, "plan", lambda self: raised(TargetError("TARGET-001")))

    after_the_first_wave(monkeypatch, partial(on_both, files, "ALTER TABLE u ADD COLUMN c INT"))
    found = compared_and_told(files, None, tell)
    verdicts = {one.name.table: one.verdict for one in found.tables}
    assert verdicts == {"t": CompareVerdict.DIFFERENT, "u": CompareVerdict.UNKNOWN}
    assert [error.code for error in found.errors] == ["TARGET-001"]


def raised(error: UnshardError) -> ComparisonPlan:
    raise error


def test_a_table_that_comes_is_compared(files: TaskFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    on_both(files, "CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    after_the_first_wave(monkeypatch, partial(on_both, files, "CREATE TABLE u LIKE t"))
    found = compared(files, None)
    verdicts = {one.name.table: one.verdict for one in found.tables}
    assert verdicts == {"t": CompareVerdict.EQUAL, "u": CompareVerdict.EQUAL}
    assert found.exit_code == 0


@pytest.mark.spark
def test_the_rows_of_a_shard_that_comes_are_not_extra(
    source_server: ThrowawayServer, target_server: ThrowawayServer, spark: SparkSession, schema: str, tmp_path: Path
) -> None:
    path, created = tmp_path / "mend.sql", list[bool]()
    made = (
        *(f"CREATE TABLE t_{number} (id INT PRIMARY KEY)" for number in (1, 2)),
        *(f"INSERT INTO t_{number} VALUES ({number}01), ({number}02)" for number in (1, 2)),
    )
    merged = merged_into_one(source_server, target_server, schema, tmp_path, *made)
    with merged as files, TaskRun(files, spark) as run:
        run.catch_up()

        def tell(line: str) -> None:
            if line.startswith("comparing") and not created:
                created.append(True)
                new = (f"CREATE TABLE {schema}.t_3 LIKE {schema}.t_1", f"INSERT INTO {schema}.t_3 VALUES (301)")
                source_server.run(*new)
                run.catch_up()

        found = compared_and_told(files, spark, tell, CompareWish(sql=path))
        assert found.exit_code == 0, list(text_lines(found))
        assert only_table(found).source_rows == 5
        assert not path.exists()
