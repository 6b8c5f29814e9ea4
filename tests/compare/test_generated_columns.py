"""`unshard compare` of columns that a server computes from the others."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.comparisons import compared, kinds, not_followed, only_table, run_file
from support.task_runs import TaskFiles
from unshard.cli.compare_subject import CompareWish
from unshard.testing.throwaway_server import ThrowawayServer

pytestmark = [pytest.mark.server, pytest.mark.spark]

WRITTEN = "INSERT INTO t (id, a) VALUES (1, 1), (2, 2), (3, NULL)"


@pytest.fixture
def files(
    source_server: ThrowawayServer, target_server: ThrowawayServer, schema: str, tmp_path: Path
) -> Iterator[TaskFiles]:
    with not_followed(source_server, target_server, schema, tmp_path) as files:
        yield files


def tables(files: TaskFiles, source: str, target: str, *, key: str = " PRIMARY KEY") -> None:
    """Make the table on both ends, each with columns of its own, and with the same rows."""
    (schema,) = files.schemas
    for server, column in ((files.sources["s1"], source), (files.target, target)):
        server.run(f"USE {schema}", f"CREATE TABLE t (id INT{key}, a INT{column})", WRITTEN)


def test_computed_by_the_source_and_written_in_the_target(files: TaskFiles, spark: SparkSession) -> None:
    tables(files, ", g INT AS (a + 1) STORED", ", g INT")
    (schema,) = files.schemas
    files.target.run(f"UPDATE {schema}.t SET g = 2 WHERE id = 1", f"UPDATE {schema}.t SET g = 77 WHERE id = 2")
    mend = files.folder / "mend.sql"
    found = compared(files, spark, CompareWish(sql=mend))
    assert (found.exit_code, kinds(only_table(found))) == (1, {"id=2": "changed"})
    run_file(files.target, mend)
    found = compared(files, spark)
    assert found.exit_code == 0
    assert not any("only in the target" in note for note in found.notes), found.notes


@pytest.mark.parametrize("kind", ["STORED", "VIRTUAL"])
def test_computed_otherwise_by_the_target(files: TaskFiles, spark: SparkSession, kind: str) -> None:
    tables(files, f", g INT AS (a + 1) {kind}", ", g INT AS (a * 2) STORED")
    found = compared(files, spark)
    assert (found.exit_code, kinds(only_table(found))) == (1, {"id=2": "changed"})
    assert only_table(found).differences[0].columns == ("g",)
    assert any("generated columns (g)" in note for note in found.notes), found.notes


def test_rows_with_equal_expressions_are_repaired(files: TaskFiles, spark: SparkSession) -> None:
    """The expressions need not be written alike, and no statement writes to such a column."""
    tables(
        files,
        ", g INT AS (a + 1) STORED, h VARCHAR(9) AS (CONCAT(a, 'x')) VIRTUAL",
        ", g BIGINT AS (1 + a) VIRTUAL, h VARCHAR(9) AS (CONCAT(`a`, _utf8mb4'x')) STORED",
    )
    (schema,) = files.schemas
    files.target.run(
        f"DELETE FROM {schema}.t WHERE id = 2",
        f"UPDATE {schema}.t SET a = 9 WHERE id = 1",
    )
    mend = files.folder / "mend.sql"
    found = compared(files, spark, CompareWish(sql=mend))
    assert (found.exit_code, kinds(only_table(found))) == (1, {"id=1": "changed", "id=2": "missing"})
    assert found.notes == (f"{mend} has 2 statements",)
    run_file(files.target, mend)
    assert compared(files, spark).exit_code == 0


def test_what_is_not_compared_is_told(files: TaskFiles, spark: SparkSession) -> None:
    tables(files, ", g INT AS (a + 1) STORED, h INT AS (a + 2)", ", h DATE AS ('2024-01-01'), i INT AS (a + 3)")
    (here,), (there,) = (
        server.query("SELECT COLUMN_TYPE FROM information_schema.COLUMNS WHERE COLUMN_NAME = 'h'")
        for server in (files.sources["s1"], files.target)
    )
    found = compared(files, spark)
    (schema,) = files.schemas
    name = f"{schema}.t: column"
    assert found.exit_code == 0
    assert sorted(found.notes) == [
        f"{name} g is generated in s1: {schema}.t and not in the target, and is not compared",
        f"{name} h is generated on both ends, as {here[0]} in the source and {there[0]} in the target,"
        " and is not compared",
    ]
