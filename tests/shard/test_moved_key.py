"""A row that moves between shards: whatever waits of it, in the end the target has the row that a shard has."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from hypothesis import given, settings
from hypothesis import strategies as st

from unshard.model.table import TableName
from unshard.sync.sharding.move_outcomes import CLASH, LEFT_OUT, Fate, KeyChange, MoveOutcome, When, fates

NONE: Mapping[int, Fate] = MappingProxyType({})
TABLES = A, B, C = tuple(TableName("up", f"t_{n}") for n in range(3))


def change(order: int, table: TableName, lives: bool, when: When, *, inserts: bool = True) -> KeyChange:
    return KeyChange(order, table, inserts and lives, lives, when)


@dataclass
class Life:
    """One row's: its changes by table in the order of the log, where transactions end, and which row is left.

    `late`: UPDATEs of an old row between the INSERT of the new one and the DELETE.
    """

    changes: list[KeyChange]
    edges: list[int]
    first: int | None
    last: int | None
    late: frozenset[int]
    owner: TableName | None


@st.composite
def lives(draw: st.DrawFn) -> Life:
    owner: TableName | None = draw(st.sampled_from((None, *TABLES)))
    begin = owner
    first = row = -1 if owner is not None else None
    changes: list[KeyChange] = []
    edges = [0]
    late: set[int] = set()
    for _ in range(draw(st.integers(1, 10))):
        to = draw(st.sampled_from((None, *TABLES)))
        steps = [(owner, False)] if owner not in (None, to) else []
        steps += [(to, True)] if to is not None else []
        steps = steps if draw(st.booleans()) else steps[::-1]
        if len(steps) > 1 and steps[0][1] and draw(st.booleans()):
            steps.insert(1, (steps[1][0], True))
            late.add(len(changes) + 1)
        for table, alive in steps:
            assert table is not None
            row = len(changes) if alive and len(changes) not in late else row
            new = len(changes) not in late and not (table == owner == to)
            changes.append(change(len(changes), table, alive, When.AHEAD, inserts=new))
        owner, row = to, row if to is not None else None
        edges.append(len(changes))
    return Life(changes, edges, first, row, frozenset(late), begin)


def left_in(batch: list[KeyChange], found: Mapping[int, Fate]) -> list[KeyChange]:
    """Those of a batch of a re-sync that are applied; none is a clash."""
    assert MoveOutcome.CLASH not in {fate.outcome for fate in found.values()}
    there = {one.order for one in batch}
    return [one for one in batch if (fate := found.get(one.order)) is None or fate.behind in there]


def compacted(batch: list[KeyChange], row: int | None) -> int | None:
    """The row behind a batch whose changes are compacted by table: DELETEs first, then INSERTs, then UPDATEs."""
    by_table: dict[TableName, list[KeyChange]] = {}
    for one in batch:
        by_table.setdefault(one.table, []).append(one)
    ranks = [((its[-1].lives * (2 - its[0].inserts)), its[-1].order, its[-1]) for its in by_table.values()]
    for _, order, one in sorted(ranks, key=lambda ranked: ranked[:2]):
        row = order if one.lives else None
    return row


def written(life: Life, changes: list[KeyChange], row: int | None) -> int | None:
    """As if each transaction began with its DELETE: one that doesn't is not for these rules where nothing waits."""
    for one in sorted(changes, key=lambda one: (bisect_right(life.edges, one.order), _stays(life, one))):
        row = one.order if one.lives else None
    return row


def _stays(life: Life, one: KeyChange) -> bool:
    """What is compacted knows of no UPDATE before a DELETE."""
    return one.lives and one.order not in life.late


@settings(max_examples=600)
@given(lives(), st.data(), st.booleans())
def test_the_row_ends_as_its_shard_has_it(life: Life, data: st.DataObject, compacts: bool) -> None:
    """Shards meet two DDL at places of their own, which lie in no transaction; the main stream goes on in between."""

    def write(changes: list[KeyChange], row: int | None, found: Mapping[int, Fate] = NONE) -> int | None:
        for batch in batches(data, life, changes, {*first.values(), *second.values()}):
            some = left_in(batch, found)
            row = compacted(some, row) if compacts else written(life, some, row)
        return row

    def resynced(changes: list[KeyChange], row: int | None) -> int | None:
        return write([one for one in changes if one.when is When.NOW], row, fates(changes))

    def drawn(since: int) -> int:
        return data.draw(st.sampled_from([edge for edge in life.edges if edge >= since]))

    first = {table: drawn(0) for table in TABLES}
    at = drawn(max(first.values()))
    second = {table: drawn(first[table]) for table in TABLES}

    def phase(one: KeyChange) -> When:
        return When((one.order >= first[one.table]) + (one.order >= second[one.table]))

    row = write([one for one in life.changes if phase(one) is When.AHEAD], life.first)
    row = resynced([replace(one, when=phase(one)) for one in life.changes if one.order < at], row)
    row = write([one for one in life.changes if at <= one.order < second[one.table]], row)
    since = min(second.values())
    again = [replace(one, when=When(one.order >= second[one.table])) for one in life.changes if one.order >= since]
    assert resynced(again, row) == life.last, (first, at, second)


class _RefusedError(Exception):
    """The target has a row of the key already."""


@dataclass
class RefusingTarget:
    """A target that refuses a second row of the key. `row`: whose row it has, and the change that wrote it."""

    row: tuple[TableName, int] | None

    def batch(self, changes: list[KeyChange]) -> None:
        """Apply a batch: changes are compacted by table, and DELETEs come first."""
        by_table: dict[TableName, list[KeyChange]] = {}
        for one in changes:
            by_table.setdefault(one.table, []).append(one)
        for its in by_table.values():
            if not its[0].inserts and not its[-1].lives:
                self.row = None
        for table, its in sorted(by_table.items(), key=lambda item: item[1][-1].order):
            if its[-1].lives and its[0].inserts:
                if self.row is not None:
                    raise _RefusedError
                self.row = (table, its[-1].order)
            elif its[-1].lives and self.row is not None:
                self.row = (self.row[0], its[-1].order)


def batches(
    draw: st.DataObject, life: Life, changes: list[KeyChange], ddl: Collection[int] = ()
) -> list[list[KeyChange]]:
    """Cut changes into batches of whole transactions, none of which goes over a DDL."""
    edges = sorted(draw.draw(st.sets(st.sampled_from(life.edges))).union(ddl))
    cut: list[list[KeyChange]] = [[] for _ in range(len(edges) + 1)]
    for one in changes:
        cut[bisect_right(edges, one.order)].append(one)
    return cut


@settings(max_examples=1000)
@given(lives(), st.data())
def test_a_target_that_refuses_a_second_row_takes_all_if_it_took_what_did_not_wait(
    life: Life, data: st.DataObject
) -> None:
    first = {table: data.draw(st.sampled_from(life.edges)) for table in TABLES}
    at = data.draw(st.sampled_from([edge for edge in life.edges if edge >= max(first.values())]))
    target = RefusingTarget((life.owner, -1) if life.owner is not None else None)
    due = [
        replace(one, when=When.AHEAD if one.order < first[one.table] else When.NOW)
        for one in life.changes
        if one.order < at
    ]
    try:
        for end in life.edges[1:]:
            begin = max([edge for edge in life.edges if edge < end], default=0)
            target.batch([one for one in due if one.when is When.AHEAD and begin <= one.order < end])
    except _RefusedError:
        return  # a row that waits, and one that has moved and does not wait: SHARD-035
    found = fates(due)
    for some in batches(data, life, [one for one in due if one.when is When.NOW]):
        target.batch(left_in(some, found))
    for some in batches(data, life, [one for one in life.changes if one.order >= at]):
        target.batch(some)
    last = None if life.last is None else (life.changes[life.last].table if life.last >= 0 else life.owner, life.last)
    assert target.row == last


def test_a_row_that_two_shards_keep_is_a_clash() -> None:
    assert fates([change(1, A, True, When.NOW), change(2, B, True, When.AHEAD)]) == {1: CLASH}


def test_one_that_is_deleted_behind_a_later_ddl_is_none() -> None:
    held = [change(1, A, True, When.NOW), change(3, A, False, When.LATER)]
    assert fates([*held, change(2, B, True, When.AHEAD)]) == {1: LEFT_OUT}


def test_the_delete_is_applied_with_the_insert_that_replaces_the_row() -> None:
    """Without it a compacted batch takes the row for one that lives, and writes it over the new one or behind it."""
    moved = [change(1, A, True, When.NOW), change(2, B, True, When.NOW), change(3, A, False, When.NOW)]
    behind = {3: Fate(MoveOutcome.LEFT_OUT, behind=2)}
    assert fates(moved) == behind
    assert fates([*moved, change(4, B, False, When.NOW)]) == behind


def test_the_delete_is_left_out_where_the_target_has_the_new_row_already() -> None:
    moved = [change(2, B, True, When.AHEAD), change(3, A, False, When.NOW)]
    assert fates([change(1, B, True, When.NOW, inserts=False), *moved]) == {3: LEFT_OUT}
    assert fates([*moved, change(4, B, True, When.NOW, inserts=False)]) == {3: LEFT_OUT}


def test_a_late_update_of_the_old_row_does_not_make_it_the_row_that_is_there() -> None:
    """The row moves from B to A and, in the next transaction, to another key; C's changes have waited."""
    waited = [change(0, C, True, When.NOW), change(1, C, False, When.NOW), change(6, A, False, When.NOW)]
    moved = [change(2, B, True, When.AHEAD), change(3, A, True, When.AHEAD)]
    late = [change(4, B, True, When.AHEAD, inserts=False), change(5, B, False, When.AHEAD)]
    assert fates([*waited, *moved, *late]) == {0: LEFT_OUT, 1: LEFT_OUT}
