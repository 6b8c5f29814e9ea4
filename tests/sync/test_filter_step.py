"""Step *filter*: what rules leave out is gone whole and counted once, and the sums of every task have to agree."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from unshard.binlog.images import PartialImages, Present
from unshard.errors import SyncError, Where
from unshard.model.change import Op
from unshard.model.table import Column, Index, Table, TableName
from unshard.sync.batch.excluded_changes import LeftOutRows
from unshard.sync.batch.plan import ConflictKey, TablePlan
from unshard.sync.batch.row_counts import LedgerReport, RowCounts, Seen, balance
from unshard.sync.changes.filter import filter_rows, hidden_targets
from unshard.sync.planning.target_plan import plan_target

COLUMNS = (Column("id", "bigint", "bigint(20)", nullable=False), Column("v", "int", "int(11)"))
TABLE = Table(TableName("a", "t"), COLUMNS, (Index("PRIMARY", ("id",), (0,), unique=True),))


@dataclass(frozen=True)
class Without:
    """Drops changes whose image has that value, in the last column there is; of an UPDATE, either image."""

    rule: str
    value: int
    asked: tuple[Any, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        return {"rule": self.rule}

    def dropped(self, table: Table, images: pa.RecordBatch, absent: frozenset[str]) -> np.ndarray:
        assert table is TABLE
        assert absent == frozenset(self.asked)
        found = np.array([value == self.value for value in images.column(images.num_columns - 1).to_pylist()])
        op = images.column("op").to_numpy()
        before = np.flatnonzero(op == Op.UPDATE_BEFORE)
        found[before] = found[before + 1] = found[before] | found[before + 1]
        return found


@dataclass(frozen=True)
class Halves:
    """Drops the images after alone, as no rule may."""

    rule: str = "filters.halves"

    def to_dict(self) -> dict[str, Any]:
        return {"rule": self.rule}

    def dropped(self, table: Table, images: pa.RecordBatch, absent: frozenset[str]) -> np.ndarray:
        found: np.ndarray = images.column("op").to_numpy() == Op.UPDATE_AFTER
        return found


def plan(*filters: Any) -> TablePlan:
    return TablePlan(TABLE, replace(plan_target(TABLE, TABLE, Where()), id=3), filters=filters)


def images(*rows: tuple[Op, int, int, int | None]) -> pa.RecordBatch:
    columns = zip(zip(*rows, strict=True), [pa.int8(), pa.int64(), pa.int64(), pa.int64()], strict=True)
    return pa.RecordBatch.from_arrays([pa.array(values, kind) for values, kind in columns], ["op", "seq", "id", "v"])


ROWS = images(
    (Op.INSERT, 0, 1, 1),
    (Op.UPDATE_BEFORE, 1, 1, 1),
    (Op.UPDATE_AFTER, 1, 1, 2),
    (Op.DELETE, 2, 1, 2),
    (Op.INSERT, 3, 2, 3),
)


def test_the_first_rule_that_drops_a_change_is_counted() -> None:
    table = plan(Without("filters.one", 1), Without("filters.two", 2), Without("filters.nine", 9))
    ((kept_plan, kept),), filtered = filter_rows([(table, ROWS)])
    assert kept_plan is table
    assert isinstance(kept, pa.RecordBatch)
    assert kept.to_pylist() == ROWS.slice(4).to_pylist()
    assert filtered == {(3, "filters.one"): 2, (3, "filters.two"): 1}


def test_nothing_is_asked_when_nothing_is_left() -> None:
    table = plan(Without("filters.one", 1), Without("filters.two", 2), Without("filters.three", 3), Halves())
    assert filter_rows([(table, ROWS), (table, ROWS.slice(4))]) == (
        [],
        {(3, "filters.one"): 2, (3, "filters.two"): 1, (3, "filters.three"): 2},
    )


def test_without_filters_the_images_pass_as_they_are() -> None:
    given = [(plan(), ROWS), (plan(), ROWS.slice(0, 0))]
    kept, filtered = filter_rows(given)
    assert filtered == {}
    assert all(a is b for (_, a), (_, b) in zip(kept, given, strict=True))
    ((_, untouched),), filtered = filter_rows([(plan(Without("filters.nine", 9)), ROWS)])
    assert untouched is ROWS
    assert filtered == {}


def test_images_that_lack_columns_tell_which() -> None:
    present = Present(frozenset({0}), frozenset({0, 1}))
    some = PartialImages(TABLE, present, COLUMNS, ROWS.slice(1, 2), 4)
    table = plan(Without("expression-filter.v", 2, ("v",)))
    assert filter_rows([(table, some)]) == ([], {(3, "expression-filter.v"): 1})
    whole = replace(some, present=Present(frozenset({0, 1}), frozenset({0, 1})))
    ((_, kept),), _ = filter_rows([(plan(Without("expression-filter.v", 7)), whole)])
    assert kept is whole
    deleted = PartialImages(TABLE, Present(frozenset({0}), None), COLUMNS[:1], ROWS.slice(3, 1).select([0, 1, 2]), 4)
    assert filter_rows([(plan(Without("expression-filter.v", 1, ("v",))), deleted)])[0] == []


@pytest.mark.parametrize(
    ("left_out", "hidden"),
    [((1,), {3}), ((0,), set()), ((2,), set()), ((3,), set()), ((0, 1, 2), set()), ((1, 2), {3})],
)
def test_an_update_that_is_left_out_hides_what_its_row_has(left_out: tuple[int, ...], hidden: set[int]) -> None:
    """Of a table with several unique keys, where the row has other changes."""
    rule = LeftOutRows(tuple((seq, seq) for seq in left_out))
    tied = replace(plan(rule), target=replace(plan().target, id=3, ties=(ConflictKey(("v",), (0,), ("exact",)),)))
    given: list[tuple[TablePlan, Any]] = [(tied, ROWS.slice(0, 3)), (tied, ROWS.slice(3))]
    assert hidden_targets(given, filter_rows(given)[0]) == hidden
    free = [(plan(rule), images) for _, images in given]
    assert hidden_targets(free, filter_rows(free)[0]) == set()


def test_a_rule_that_parts_an_update_is_found_out() -> None:
    with pytest.raises(ValueError, match=r"filters\.halves"):
        filter_rows([(plan(Halves()), ROWS)])


LOG = TableName("a", "log")
SEEN = Seen({3: 2}, {(3, "filters.one"): 4}, 5, {LOG: 2})
DONE = {3: RowCounts(decoded=2, compacted=1, inserted=1)}
WHOLE = RowCounts(decoded=6, filtered=4, compacted=1, inserted=1, rules={"filters.one": 4})


def test_the_sums_of_either_exchange() -> None:
    kept_own = [LedgerReport(0, SEEN, DONE, {}), LedgerReport(1, SEEN, {}, {})]
    assert balance(kept_own, shuffled=False, row_events=7, where=Where()) == ({3: WHOLE}, {LOG: 2})
    parts = Seen({3: 1}, {(3, "filters.one"): 4}, 3, {LOG: 1}), Seen({3: 1}, {}, 2, {LOG: 1})
    shuffled = [LedgerReport(0, parts[0], DONE, {}), LedgerReport(1, parts[1], {}, {})]
    assert balance(shuffled, shuffled=True, row_events=7, where=Where()) == ({3: WHOLE}, {LOG: 2})
    nothing_left = [LedgerReport(0, Seen({}, {(5, "filters.one"): 2}, 1), {}, {})]
    assert balance(nothing_left, shuffled=False, row_events=1, where=Where())[0][5].filtered == 2


@pytest.mark.parametrize(
    ("code", "reports"),
    [
        ("SYNC-002", [LedgerReport(0, replace(SEEN, changes={3: 3}), DONE, {})]),
        (
            "SYNC-002",
            [LedgerReport(0, SEEN, DONE, {}), LedgerReport(1, replace(SEEN, filtered={(3, "filters.one"): 3}), {}, {})],
        ),
        ("SYNC-002", [LedgerReport(0, SEEN, {3: RowCounts(decoded=2, inserted=1)}, {})]),
        ("SYNC-064", [LedgerReport(0, replace(SEEN, events=4), DONE, {})]),
        ("SYNC-064", [LedgerReport(0, SEEN, DONE, {}), LedgerReport(1, replace(SEEN, skipped={LOG: 1}), {}, {})]),
    ],
    ids=["lost", "filtered-otherwise", "not-applied", "an-event-less", "passed-over-otherwise"],
)
def test_sums_that_do_not_agree(code: str, reports: list[LedgerReport]) -> None:
    with pytest.raises(SyncError, match=code):
        balance(reports, shuffled=False, row_events=7, where=Where("s1"))
