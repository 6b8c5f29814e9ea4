"""`unshard compare` of columns that a server computes, in tables without a key."""

from __future__ import annotations

import pytest

from support.comparisons import compared, only_table, repaired
from support.task_runs import TaskFiles
from unshard.compare.result import RowClass

pytestmark = pytest.mark.server

WRITTEN = "INSERT INTO t (a, v) VALUES (1, 'x'), (1, 'x'), (2, 'y'), (3, NULL)"


def tables(files: TaskFiles, source: str, target: str) -> None:
    """Make the table on both ends, each with columns of its own, and with the same rows."""
    (schema,) = files.schemas
    for server, column in ((files.sources["s1"], source), (files.target, target)):
        server.run(f"USE {schema}", f"CREATE TABLE t (a INT, v VARCHAR(9){column})", WRITTEN)


@pytest.mark.parametrize("kind", ["STORED", "VIRTUAL"])
def test_computed_otherwise_by_the_target(files: TaskFiles, kind: str) -> None:
    """It is told by the rows, and named; a repair could only write what is there."""
    tables(files, f", g INT AS (a + 1) {kind}", ", g INT AS (a * 2) STORED")
    (schema,) = files.schemas
    found = compared(files, None)
    assert found.exit_code == 1
    assert only_table(found).classes == {RowClass.MISSING: 2, RowClass.EXTRA: 2}
    told = [note for note in found.notes if "rows differ only in generated columns (g)" in note]
    assert len(told) == 1, found.notes
    assert not any("not compared" in note for note in found.notes), found.notes
    after = repaired(files, found)
    assert f"{schema}.t: repaired 0 extra, 0 changed, 0 missing" not in after.notes
    assert not any("in another state" in note for note in after.notes), after.notes
    assert files.target.query(f"SELECT COUNT(*) FROM {schema}.t") == [(4,)]


def test_equal_expressions_are_equal_and_rows_are_repaired(files: TaskFiles) -> None:
    tables(
        files,
        ", g INT AS (a + 1) STORED, h VARCHAR(20) AS (CONCAT(v, '!')) VIRTUAL",
        ", g BIGINT AS (1 + a) VIRTUAL, h VARCHAR(20) AS (CONCAT(`v`, _utf8mb4'!')) STORED",
    )
    (schema,) = files.schemas
    found = compared(files, None)
    assert (found.exit_code, found.notes) == (0, ())
    files.target.run(
        f"USE {schema}",
        "DELETE FROM t WHERE a = 1 LIMIT 1",
        "UPDATE t SET v = 'z' WHERE a = 3",
        "INSERT INTO t (a, v) VALUES (2, 'y')",
    )
    found = compared(files, None)
    assert only_table(found).classes == {RowClass.MISSING: 2, RowClass.EXTRA: 2}
    assert not any("generated" in note for note in found.notes), found.notes
    after = repaired(files, found)
    assert f"{schema}.t: repaired 2 extra, 0 changed, 2 missing" in after.notes
    assert after.exit_code == 0, after.notes


def test_rows_that_are_missing_besides_are_repaired(files: TaskFiles) -> None:
    """Of two rows that the source has, the target has one, and computes it otherwise."""
    tables(files, ", g INT AS (a + 1)", ", g INT AS (a * 2)")
    (schema,) = files.schemas
    files.target.run(f"DELETE FROM {schema}.t WHERE a = 2", f"INSERT INTO {schema}.t (a, v) VALUES (3, NULL), (9, 'q')")
    after = repaired(files, compared(files, None))
    assert f"{schema}.t: repaired 2 extra, 0 changed, 1 missing" in after.notes
    assert files.target.query(f"SELECT a, v FROM {schema}.t ORDER BY a") == [(1, "x"), (1, "x"), (2, "y"), (3, None)]
    assert only_table(after).classes == {RowClass.MISSING: 2, RowClass.EXTRA: 2}


def test_a_column_that_only_one_end_computes_is_told(files: TaskFiles) -> None:
    tables(files, ", g INT AS (a + 1)", ", h INT AS (a + 1)")
    (schema,) = files.schemas
    found = compared(files, None)
    assert found.exit_code == 0
    assert found.notes == (
        f"{schema}.t: column g is generated in s1: {schema}.t and not in the target, and is not compared",
    )


def test_a_unique_key_over_what_is_computed(files: TaskFiles) -> None:
    """Its columns name no row, as nothing writes them; the rows are counted."""
    tables(files, ", g INT AS (IFNULL(a, 0)) STORED", ", g INT AS (IFNULL(a, 0)) STORED")
    (schema,) = files.schemas
    for server in (files.sources["s1"], files.target):
        server.run(f"DELETE FROM {schema}.t WHERE a = 1 LIMIT 1", f"ALTER TABLE {schema}.t ADD UNIQUE (g)")
    files.target.run(f"UPDATE {schema}.t SET a = 8 WHERE a = 2")
    found = compared(files, None)
    assert only_table(found).classes == {RowClass.MISSING: 1, RowClass.EXTRA: 1}
    after = repaired(files, found)
    assert after.exit_code == 0, after.notes
