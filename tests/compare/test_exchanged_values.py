"""`unshard compare` repairs rows of the target that hold each other's values of a unique key."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import pytest

from support.comparisons import compared, only_table, repaired, run_file
from support.numbers import numbers
from support.task_runs import TaskFiles
from unshard.cli.compare_subject import CompareWish
from unshard.compare import repair_transaction
from unshard.compare.repair_transaction import RepairTransaction
from unshard.compare.result import ComparisonOutcome

pytestmark = pytest.mark.server

COLUMNS = "(id INT PRIMARY KEY, u VARCHAR(20) NOT NULL UNIQUE, n INT, UNIQUE (n))"
SWAPPED = (
    "INSERT INTO t (id, u, n) VALUES (1, 'a', 1), (2, 'b', 2)",
    "INSERT INTO t (id, u, n) VALUES (1, 'b', 1), (2, 'a', 2)",
)
CYCLE = (
    "INSERT INTO t (id, u, n) VALUES (1, 'a', 1), (2, 'b', 2), (3, 'c', 3), (4, 'd', 4)",
    "INSERT INTO t (id, u, n) VALUES (1, 'd', 1), (2, 'A', 2), (3, 'B', 3), (4, 'c', 4)",
)
BY_TWO_KEYS = (
    "INSERT INTO t (id, u, n) VALUES (1, 'a', 1), (2, 'b', 2), (3, 'c', 3)",
    "INSERT INTO t (id, u, n) VALUES (1, 'b', 7), (2, 'x', 3), (3, 'c', 1)",
)
CHAIN = (
    "INSERT INTO t (id, u, n) VALUES (1, 'b', 2), (2, 'c', 3), (3, 'd', 4), (4, 'e', 5)",
    "INSERT INTO t (id, u, n) VALUES (1, 'a', 1), (2, 'b', 2), (3, 'c', 3), (4, 'd', 4)",
)
MISSING = (
    "INSERT INTO t (id, u, n) VALUES (1, 'a', 1), (2, 'b', 2), (3, 'c', 3)",
    "INSERT INTO t (id, u, n) VALUES (2, 'c', 3), (3, 'a', 1)",
)
EXTRA = (
    "INSERT INTO t (id, u, n) VALUES (1, 'a', 1), (2, 'b', 2)",
    "INSERT INTO t (id, u, n) VALUES (1, 'b', 2), (2, 'x', NULL), (9, 'a', 1)",
)
WAYS = ["command", pytest.param("file", marks=pytest.mark.scenarios)]


def tables(files: TaskFiles, rows: Sequence[str], columns: str = COLUMNS, *, more: str = "") -> None:
    """Make the table on both ends, with the rows of each; `more`: columns of the target."""
    (schema,) = files.schemas
    for server, written, its in ((files.sources["s1"], rows[0], ""), (files.target, rows[1], more)):
        server.run(f"USE {schema}", f"CREATE TABLE t {columns[:-1]}{its})", written)


def mended(files: TaskFiles, way: str, limit: int = 100) -> ComparisonOutcome:
    """Bring the target to the source's rows, by the command or by the file. Return what differs afterwards."""
    if way == "file":
        path = files.folder / "mend.sql"
        compared(files, None, CompareWish(sql=path), limit=limit)
        run_file(files.target, path)
        return compared(files, None)
    return repaired(files, compared(files, None, limit=limit), limit=limit)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "rows",
    [SWAPPED, CYCLE, BY_TWO_KEYS, CHAIN, MISSING, EXTRA],
    ids=["swapped", "cycle", "two keys", "chain", "missing", "extra"],
)
def test_the_target_is_equal_afterwards(files: TaskFiles, way: str, rows: Sequence[str]) -> None:
    tables(files, rows)
    after = mended(files, way)
    (schema,) = files.schemas
    asked = f"SELECT id, u, n FROM {schema}.t ORDER BY id"
    assert files.target.query(asked) == files.sources["s1"].query(asked), after.notes
    assert after.exit_code == 0, after.notes


@pytest.mark.parametrize("way", WAYS)
def test_more_rows_than_a_transaction_has(files: TaskFiles, way: str) -> None:
    """A long chain, whose last row frees the value of the one before, and rows that hold each other's far apart."""
    (schema,) = files.schemas
    columns = "(id INT PRIMARY KEY, u INT NOT NULL UNIQUE)"
    chain = f"SELECT seq, seq {{}} FROM {numbers(1, 250)}"
    tables(files, tuple(f"INSERT INTO t {chain.format(shift)}" for shift in ("", "- 1")), columns)
    far = f"SELECT 1000 + seq, {{}} FROM {numbers(1, 150)}"
    files.sources["s1"].run(f"INSERT INTO {schema}.t {far.format('1000 + seq')}")
    files.target.run(f"INSERT INTO {schema}.t {far.format('1151 - seq')}")
    after = mended(files, way, limit=1000)
    assert files.target.query(f"SELECT COUNT(*) FROM {schema}.t WHERE id <> u") == [(0,)], after.notes
    assert after.exit_code == 0, after.notes


@pytest.mark.parametrize("way", WAYS)
def test_columns_of_the_target_alone_keep_their_values(files: TaskFiles, way: str) -> None:
    tables(files, SWAPPED, more=", own VARCHAR(20) DEFAULT 'none', g INT AS (n + 1)")
    (schema,) = files.schemas
    files.target.run(f"UPDATE {schema}.t SET own = CONCAT('it''s ', id)")
    mended(files, way)
    assert files.target.query(f"SELECT id, u, own FROM {schema}.t ORDER BY id") == [
        (1, "a", "it's 1"),
        (2, "b", "it's 2"),
    ]


def test_a_change_of_a_column_that_only_the_target_has_is_not_lost(
    files: TaskFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It comes between the look at the rows and the statements."""
    tables(files, SWAPPED, more=", own FLOAT DEFAULT 0.1, seen TIMESTAMP(3) NULL DEFAULT '2020-01-01 00:00:00.25'")
    (schema,) = files.schemas
    run, change = RepairTransaction.run, [f"UPDATE {schema}.t SET own = 0.7 WHERE id = 2"]

    def run_behind_a_change(self: RepairTransaction, connection: Any) -> Any:
        while change:
            files.target.run(change.pop())
        return run(self, connection)

    monkeypatch.setattr(RepairTransaction, "run", run_behind_a_change)
    after, asked = mended(files, "command"), f"SELECT id, u, own FROM {schema}.t ORDER BY id"
    assert files.target.query(asked) == [(1, "b", 0.1), (2, "a", 0.7)]
    assert any("refuses row 2: 0 rows are found by its values" in note for note in after.notes), after.notes
    assert mended(files, "command").exit_code == 0
    assert files.target.query(asked) == [(1, "a", 0.1), (2, "b", 0.7)]


def test_a_file_overwrites_no_column_that_only_the_target_has(files: TaskFiles) -> None:
    tables(files, SWAPPED, more=", own INT")
    (schema,) = files.schemas
    path = files.folder / "mend.sql"
    compared(files, None, CompareWish(sql=path))
    files.target.run(f"UPDATE {schema}.t SET own = 7 WHERE id = 2")
    with pytest.raises(AssertionError, match="Duplicate entry"):
        run_file(files.target, path)
    assert files.target.query(f"SELECT id, u, own FROM {schema}.t ORDER BY id") == [(1, "b", None), (2, "a", 7)]


@pytest.mark.parametrize("checks", ["0", "1"])
def test_rows_that_refer_to_them_are_not_lost(files: TaskFiles, checks: str) -> None:
    """Also where the task's sessions check foreign keys."""
    tables(files, SWAPPED)
    (schema,) = files.schemas
    for server in (files.sources["s1"], files.target):
        server.run(
            f"CREATE TABLE {schema}.child (id INT PRIMARY KEY, t INT REFERENCES t (id) ON DELETE CASCADE)",
            f"INSERT INTO {schema}.child VALUES (1, 1), (2, 2)",
        )
    text = files.task_path.read_text()
    assert "target-database:" in text
    files.task_path.write_text(
        text.replace("target-database:", f"target-database:\n  session: {{foreign_key_checks: '{checks}'}}", 1)
    )
    after = mended(files, "command")
    assert after.exit_code == 0, after.notes


def test_no_row_is_lost_where_the_target_refuses_one(files: TaskFiles) -> None:
    tables(files, SWAPPED)
    (schema,) = files.schemas
    files.target.run(
        f"CREATE TRIGGER {schema}.guard BEFORE INSERT ON {schema}.t FOR EACH ROW"
        " IF NEW.id = 2 THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'not this one'; END IF"
    )
    after = mended(files, "command")
    assert only_table(after).classes.total() == 2
    assert files.target.query(f"SELECT id, u FROM {schema}.t ORDER BY id") == [(1, "b"), (2, "a")]
    assert any("refuses row 2: 1644: not this one" in note for note in after.notes), after.notes


@pytest.mark.parametrize("way", WAYS)
def test_no_row_is_lost_in_a_table_without_transactions(files: TaskFiles, way: str) -> None:
    tables(files, SWAPPED)
    (schema,) = files.schemas
    files.target.run(
        f"ALTER TABLE {schema}.t ENGINE = MyISAM",
        f"CREATE TRIGGER {schema}.guard BEFORE INSERT ON {schema}.t FOR EACH ROW"
        " SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'not this one'",
    )
    with nullcontext() if way == "command" else pytest.raises(AssertionError, match="Duplicate entry"):
        mended(files, way)
    assert files.target.query(f"SELECT id, u FROM {schema}.t ORDER BY id") == [(1, "b"), (2, "a")]


def test_no_row_is_lost_where_the_process_dies(files: TaskFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    tables(files, CYCLE)
    (schema,) = files.schemas
    asked = f"SELECT id, u, n FROM {schema}.t ORDER BY id"
    before, found = files.target.query(asked), compared(files, None)

    def die(point: str) -> None:
        raise KeyboardInterrupt(point)

    with monkeypatch.context() as dying:
        dying.setattr(repair_transaction, "reach", die)
        with pytest.raises(KeyboardInterrupt, match="repair-commit-before"):
            repaired(files, found)
    assert files.target.query(asked) == before
    assert repaired(files, found).exit_code == 0
