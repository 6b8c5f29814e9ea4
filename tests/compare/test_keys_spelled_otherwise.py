"""Keys that the target's collation takes for one, while the source's tells them apart or spells them otherwise."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.comparisons import compared, kinds, not_followed, only_table
from support.task_runs import TaskFiles
from unshard.cli.compare_subject import CompareWish, task_subject
from unshard.compare import repairer
from unshard.compare.chase import KEYS_AT_ONCE, ChasedTable
from unshard.compare.executor.repair_rows import AskedKeys, RepairOrder
from unshard.compare.report import text_lines
from unshard.compare.result import CompareVerdict, ComparisonOutcome, TableOutcome
from unshard.compare.run import CompareSettings
from unshard.config.files import load_files
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.throwaway_server import ThrowawayServer

pytestmark = [pytest.mark.server, pytest.mark.spark]

MANY = KEYS_AT_ONCE * 2


@pytest.fixture
def files(
    source_server: MariadbServer, target_server: ThrowawayServer, schema: str, tmp_path: Path
) -> Iterator[TaskFiles]:
    with not_followed(source_server, target_server, schema, tmp_path) as files:
        yield files


def put(server: ThrowawayServer, schema: str, collation: str, *keys: str, value: int = 1) -> None:
    """A table of rows with these keys."""
    listed = ", ".join(f"('{key}', {value})" for key in keys)
    server.run(
        f"USE {schema}",
        f"CREATE TABLE t (k VARCHAR(20) COLLATE {collation} PRIMARY KEY, v INT)",
        f"INSERT INTO t VALUES {listed}",
    )


def look(files: TaskFiles, spark: SparkSession) -> TableOutcome:
    table = only_table(compared(files, spark, limit=10 * MANY))
    assert not table.errors, [str(error) for error in table.errors]
    return table


def test_the_target_has_lost_one_of_two_rows(files: TaskFiles, spark: SparkSession, schema: str) -> None:
    """The row that it has is spelled as the other one: both are found under its key."""
    put(files.sources["s1"], schema, "utf8mb4_bin", "a", "A", "b")
    put(files.target, schema, "utf8mb4_general_ci", "A", "b")
    table = look(files, spark)
    assert (kinds(table), table.spelled) == ({"k='a'": "collision"}, 0)
    (found,) = table.differences
    assert sorted(str(row["k"]) for _, row in found.source) == ["A", "a"]


def test_a_source_that_does_not_pad(files: TaskFiles, spark: SparkSession, schema: str) -> None:
    source = files.sources["s1"]
    unpadded = "utf8mb4_general_nopad_ci" if isinstance(source, MariadbServer) else "utf8mb4_0900_ai_ci"
    put(source, schema, unpadded, "a", "a ", "b")
    put(files.target, schema, "utf8mb4_general_ci", "a", "b")
    assert kinds(look(files, spark)) == {"k='a '": "collision"}


def test_of_more_keys_than_a_task_takes_those_that_are_one_are_looked_at_together(
    files: TaskFiles, spark: SparkSession, schema: str
) -> None:
    """é and E stand far from e in the order of their bytes, and so do ö and o."""
    between = [f"f{number}" for number in range(MANY)]
    put(files.sources["s1"], schema, "utf8mb4_bin", "é", "E", "ö", *between)
    put(files.target, schema, "utf8mb4_general_ci", "e", "O")
    table = look(files, spark)
    told = kinds(table)
    assert {key: kind for key, kind in told.items() if not key.startswith("k='f")} == {"k='E'": "collision"}
    assert (len(told), table.spelled) == (MANY + 1, 1)


def test_other_counts_of_rows_are_no_equality(
    files: TaskFiles, spark: SparkSession, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(files.sources["s1"], schema, "utf8mb4_bin", "a", "b", "c")
    put(files.target, schema, "utf8mb4_bin", "a", "b")
    monkeypatch.setattr(ChasedTable, "add", lambda self, keys, room: None)  # as if no key differed
    found = compared(files, spark)
    assert found.verdict is CompareVerdict.UNKNOWN
    assert any("COMPARE-023" in line and "3 rows" in line for line in text_lines(found)), list(text_lines(found))


def repaired(files: TaskFiles, spark: SparkSession, found: ComparisonOutcome) -> ComparisonOutcome:
    subject = task_subject(load_files(files.task_path, files.source_paths), CompareWish())
    return subject.repair(found, CompareSettings(patience_seconds=60.0), spark, print, threading.Event())


def rows(files: TaskFiles) -> list[tuple[str, int]]:
    (schema,) = files.schemas
    return [(str(key), int(value)) for key, value in files.target.query(f"SELECT k, v FROM {schema}.t ORDER BY k")]


def test_a_row_is_not_deleted_that_a_source_has_in_another_spelling(
    files: TaskFiles, spark: SparkSession, schema: str
) -> None:
    put(files.sources["s1"], schema, "utf8mb4_bin", "b")
    put(files.target, schema, "utf8mb4_general_ci", "b", "e", "x")
    found = compared(files, spark)
    assert kinds(only_table(found)) == {"k='e'": "extra", "k='x'": "extra"}
    files.sources["s1"].run(f"INSERT INTO {schema}.t VALUES ('é', 1)")
    after = repaired(files, spark, found)
    assert rows(files) == [("b", 1), ("e", 1)]
    assert after.exit_code == 0, after.notes
    assert f"{schema}.t: 1 rows are in another state now than they were compared in: not written" in after.notes


def test_a_row_is_not_deleted_where_a_source_does_not_know_the_collation(
    files: TaskFiles, spark: SparkSession, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(files.sources["s1"], schema, "utf8mb4_bin", "b")
    put(files.target, schema, "utf8mb4_general_ci", "b", "e")

    def unsure(order: RepairOrder) -> AskedKeys:
        keys = tuple(key for key, _ in order.rows)
        return AskedKeys(keys, frozenset(keys))

    monkeypatch.setattr(repairer, "keys_to_ask", unsure)
    after = repaired(files, spark, compared(files, spark))
    assert rows(files) == [("b", 1), ("e", 1)]
    assert any("does not know the collation of the target's key: not deleted" in one for one in after.notes), (
        after.notes
    )


def test_a_row_with_a_key_spelled_otherwise_is_repaired(files: TaskFiles, spark: SparkSession, schema: str) -> None:
    put(files.sources["s1"], schema, "utf8mb4_general_ci", "abc", "d")
    put(files.target, schema, "utf8mb4_general_ci", "ABC", "D", value=2)
    found = compared(files, spark)
    after = repaired(files, spark, found)
    assert (found.exit_code, after.exit_code, rows(files)) == (1, 0, [("abc", 1), ("d", 1)]), after.notes
