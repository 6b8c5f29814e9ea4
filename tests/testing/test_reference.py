"""The oracle itself: it refuses what a server refuses and keeps what a server keeps."""

from __future__ import annotations

import pytest

from support.reference import ConflictError, ReferenceDatabase, RowChange
from unshard.model.change import Op
from unshard.model.table import Column, Index, Table, TableName

NAME = TableName("s", "t")
COLUMNS = (Column("id", "int", "int(11)", nullable=False), Column("u", "int", "int(11)"))
KEYED = Table(NAME, COLUMNS, (Index("PRIMARY", ("id",), (0,), True), Index("u", ("u",), (0,), True)))
KEYLESS = Table(NAME, COLUMNS)


def insert(*row: int | None) -> RowChange:
    return RowChange(NAME, Op.INSERT, after=row)


def test_changes_follow_each_other() -> None:
    database = ReferenceDatabase(KEYED)
    database.apply(insert(1, 10), insert(2, 20), RowChange(NAME, Op.UPDATE, (1, 10), (3, 10)))
    database.apply(RowChange(NAME, Op.DELETE, (2, 20)))
    assert database.rows == {NAME: {(3, 10): 1}}


@pytest.mark.parametrize(
    "change",
    [
        insert(1, 99),
        insert(9, 10),
        RowChange(NAME, Op.DELETE, (9, 9)),
        RowChange(NAME, Op.UPDATE, (9, 9), (9, 8)),
        RowChange(NAME, Op.UPDATE, (2, 20), (2, 10)),
    ],
    ids=["same key", "same unique key", "nothing to delete", "nothing to update", "update meets another"],
)
def test_refuses_what_a_server_refuses(change: RowChange) -> None:
    database = ReferenceDatabase(KEYED)
    database.apply(insert(1, 10), insert(2, 20))
    with pytest.raises(ConflictError):
        database.apply(change)


def test_nulls_never_clash_and_replace_removes_every_clash() -> None:
    database = ReferenceDatabase(KEYED)
    database.apply(insert(1, None), insert(2, None), insert(3, 30))
    database.tables[NAME].replace((2, 30))
    assert database.rows == {NAME: {(1, None): 1, (2, 30): 1}}


def test_a_table_without_a_key_is_a_bag() -> None:
    database = ReferenceDatabase(KEYLESS)
    database.apply(insert(1, 1), insert(1, 1), insert(1, 1), RowChange(NAME, Op.DELETE, (1, 1)))
    assert database.rows == {NAME: {(1, 1): 2}}


def test_safe_mode_may_delete_what_is_not_there() -> None:
    database = ReferenceDatabase(KEYED)
    database.apply(RowChange(NAME, Op.DELETE, (1, 1)), missing_ok=True)
    assert database.rows == {NAME: {}}
