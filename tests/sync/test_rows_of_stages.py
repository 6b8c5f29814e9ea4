"""A batch goes on without changes after a part of it was applied: the others are written as they are without these."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from support.reference import RowChange
from support.row_batches import Target
from unshard.errors import SyncError
from unshard.model.change import Op
from unshard.model.table import TableName
from unshard.sync.batch.excluded_changes import ExclusionEpoch
from unshard.sync.batch.plan import BatchPlan, BatchShape
from unshard.testing.throwaway_server import ThrowawayServer

pytestmark = pytest.mark.server
SCHEMA = "stages"
TABLES = {"t": "id INT PRIMARY KEY, code INT UNIQUE, v VARCHAR(9)"}
T = TableName(SCHEMA, "t")
Row = tuple[Any, ...]


@pytest.fixture(scope="module")
def target(target_server: ThrowawayServer) -> Iterator[Target]:
    found = Target(target_server, SCHEMA, TABLES)
    yield found
    found.connection.close()


def insert(*after: Any) -> RowChange:
    return RowChange(T, Op.INSERT, after=after)


def delete(*before: Any) -> RowChange:
    return RowChange(T, Op.DELETE, before=before)


def update(before: Row, after: Row) -> RowChange:
    return RowChange(T, Op.UPDATE, before=before, after=after)


def refused_then_run(target: Target, plan: BatchPlan, changes: list[RowChange], excluded: int) -> None:
    """The target refuses the second chunk; a change is excluded, and the row that was in the way is removed."""
    with pytest.raises(SyncError, match="SYNC-003"):
        target.run(plan, changes)
    with target.connection.cursor() as cursor:
        cursor.execute("DELETE FROM t WHERE v = 'foreign'")
    target.run(replace(plan, stages=(ExclusionEpoch(((excluded, excluded),), (1,)),)), changes)


@pytest.mark.parametrize("multiple_rows", [True, False])
def test_an_insert_whose_delete_is_left_out(target: Target, multiple_rows: bool) -> None:
    plan = target.batch(BatchShape(1, 1, multiple_rows=multiple_rows, locked_upserts=False))
    target.fill("t", [(2, 5, "foreign")])
    refused_then_run(target, plan, [insert(10, 10, "new"), delete(1, 1, "a"), insert(1, 5, "b")], 1)
    assert target.rows("t") == [(1, 5, "b"), (10, 10, "new")]


@pytest.mark.parametrize("multiple_rows", [True, False])
def test_an_update_whose_insert_is_left_out(target: Target, multiple_rows: bool) -> None:
    plan = target.batch(BatchShape(1, 1, multiple_rows=multiple_rows, locked_upserts=False))
    target.fill("t", [(1, 7, "old"), (2, 5, "foreign")])
    changes = [insert(10, 10, "new"), insert(1, 5, "a"), update((1, 5, "a"), (1, 5, "b"))]
    refused_then_run(target, plan, changes, 1)
    assert target.rows("t") == [(1, 5, "b"), (10, 10, "new")]


def test_a_kept_column_of_an_update_whose_insert_is_left_out(target: Target) -> None:
    plan = target.batch(BatchShape(1, 1))
    plan = replace(plan, tables=tuple(replace(table, kept=frozenset({"v"})) for table in plan.tables))
    target.fill("t", [(1, 7, "old"), (2, 5, "foreign")])
    changes = [insert(10, 10, "new"), insert(1, 5, "filled"), update((1, 5, "filled"), (1, 5, "filled"))]
    refused_then_run(target, plan, changes, 1)
    assert target.rows("t") == [(1, 5, "old"), (10, 10, "new")]


def test_two_stages(target: Target) -> None:
    """The second one excludes more from what the first one has left."""
    plan = target.batch(BatchShape(1, 1, locked_upserts=False))
    target.fill("t", [(1, 7, "old"), (3, 8, "old")])
    changes = [
        insert(10, 10, "new"),
        insert(1, 5, "a"),
        update((1, 5, "a"), (1, 6, "b")),
        insert(3, 3, "a"),
        update((3, 3, "a"), (3, 4, "b")),
    ]
    with pytest.raises(SyncError, match="SYNC-003"):
        target.run(plan, changes)
    first = ExclusionEpoch(((1, 1),), (1,))
    with pytest.raises(SyncError, match="SYNC-003"):
        target.run(replace(plan, stages=(first,)), changes)
    target.run(replace(plan, stages=(first, ExclusionEpoch(((3, 3),), (1,)))), changes)
    assert target.rows("t") == [(1, 6, "b"), (10, 10, "new"), (3, 4, "b")]
