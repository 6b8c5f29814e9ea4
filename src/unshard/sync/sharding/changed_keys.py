"""Reads the target keys that changes of the log have, and decides about those of a key that several shards have had.

For `sync/sharding/moved_rows.py`; nothing is written. The keys that more than one table has changed are found by their
hashes, in bounded memory.

The target gets the changes that waited for a DDL after changes of other shards that come later in the log. Keys of
shards are distinct, so this matters only where a row has moved to another shard under its key: the target then has the
row of the shard to which it moved (`fates`, pure).

| a change of a shard that is applied now | the target has the row of another shard | otherwise |
|---|---|---|
| DELETE | left out: it is for the shard's own row, which the target no longer has (but see below) | applied |
| INSERT, UPDATE, where the shard deletes the row later, and the other shard keeps it | left out: it moved there | |
| INSERT, UPDATE, later in the log than the other shard's row | applied: the row has moved here | applied |
| INSERT, UPDATE, earlier, and the shard deletes the row later | left out | |
| INSERT, UPDATE, earlier, and the shard keeps the row | a clash: both shards have the row | |

The log may have the INSERT of a move first, or its DELETE. An UPDATE of the key is a DELETE and an INSERT.

A target that refuses a second row of a key (`refuses`) takes the INSERT only in a batch that deletes the first row. So
the DELETE is applied there where this re-sync has the other shard's INSERT, and the target has got the row that the
DELETE is for. Where the INSERT replaces the row (safe mode), the DELETE would delete the row that has moved.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from unshard.binlog.images import PartialImages
from unshard.model.change import Op
from unshard.model.table import Table, TableName
from unshard.sync.batch.plan import BatchPlan, Range, TablePlan
from unshard.sync.changes.decode import decode
from unshard.sync.changes.encode import keys_of
from unshard.sync.changes.filter import filter_rows
from unshard.sync.changes.map import batch_of, map_columns, with_keys


@dataclass(frozen=True, slots=True)
class ChangedKeys:
    """The keys that one table changes in one range of the log, `piece`. An UPDATE of a key is two changes.

    All arrays have one entry a change. `key`: the encoded key. `inserts`: the row exists after the change and not
    before it. `lives`: it exists after the change. `half`: it is one of the two changes of such an UPDATE. `seq`: the
    row image's number in the log. `event`: the offset of its row event. `number`: which change of that event it is.
    """

    table: TableName
    piece: Range
    key: pa.Array
    inserts: np.ndarray
    lives: np.ndarray
    half: np.ndarray
    seq: np.ndarray
    event: np.ndarray
    number: np.ndarray


@dataclass(frozen=True, slots=True)
class OwnKey:
    """The columns of a source table that are the target's key.

    `names`: the target's column by the source's column. `sure`: equal values mean the same row. It is False where a DDL
    that waits renames key columns or adds some: keys that differ then are different rows, equal keys may be one row or
    two.
    """

    names: Mapping[str, str]
    sure: bool


def own_key(table: Table, identity: Sequence[str], key: Sequence[str]) -> OwnKey:
    """Find the columns of a source table for a target that finds rows by `key`.

    A target column that the table lacks is matched with the column at its place in the table's own key, `identity`.
    """
    there = {column.name.lower(): column.name for column in table.columns}
    names = {there[name.lower()]: name for name in key if name.lower() in there}
    if len(names) == len(key):
        return OwnKey(names, sure=True)
    if len(identity) == len(key):
        names |= {own: name for own, name in zip(identity, key, strict=True) if name not in names.values()}
    return OwnKey(names, sure=False)


def changed_keys(plan: BatchPlan, keys: Mapping[TableName, OwnKey]) -> list[ChangedKeys]:
    """Return the changed keys of all tables of the plan, in no order.

    Raises as decoding does; SyncError SYNC-030 for row images without key columns.
    """
    found = []
    for piece in plan.ranges:
        for table, images in decode(plan, piece, offsets=True)[0]:
            if len(batch_of(images)):
                found += _of_images(plan, piece, table, images, keys[table.table.name].names)
    return found


def numbered(images: pa.RecordBatch) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return, for each row image, its number in the log, its event's offset, and which change of that event it is."""
    seq = images.column(1).to_numpy(zero_copy_only=False)
    offset = images.column(images.num_columns - 1).to_numpy(zero_copy_only=False)
    change = np.cumsum(np.diff(seq, prepend=-1) != 0)
    _, first, event = np.unique(offset, return_index=True, return_inverse=True)
    return seq, offset, change - change[first][event]


def _of_images(
    plan: BatchPlan, piece: Range, table: TablePlan, images: pa.RecordBatch | PartialImages, names: Mapping[str, str]
) -> list[ChangedKeys]:
    whole = batch_of(images)
    seqs, events, numbers = numbered(whole)
    columns = pa.RecordBatch.from_arrays(whole.columns[:-1], schema=pa.schema(list(whole.schema)[:-1]))
    own = replace(images, batch=columns) if isinstance(images, PartialImages) else columns
    kept, _ = filter_rows([(table, own)])
    found = []
    for mapped, batch in (with_keys(plan, one, names) for one in map_columns(plan, kept)):
        op, seq = (batch.column(place).to_numpy(zero_copy_only=False) for place in (0, 1))
        key = keys_of(mapped, batch)
        before = np.flatnonzero(op == Op.UPDATE_BEFORE)
        same = pc.equal(key.take(pa.array(before)), key.take(pa.array(before + 1))).to_numpy(zero_copy_only=False)
        half = np.isin(op, (Op.UPDATE_BEFORE, Op.UPDATE_AFTER))
        half[before[same]] = half[before[same] + 1] = False
        counts = np.ones(len(op), dtype=bool)
        counts[before[same]] = False
        places = np.searchsorted(seqs, seq)
        index = np.flatnonzero(counts)
        lives = np.isin(op, (Op.INSERT, Op.UPDATE_AFTER))[index]
        inserts = ((op == Op.INSERT) | ((op == Op.UPDATE_AFTER) & half))[index]
        event, number = events[places][index], numbers[places][index]
        chosen = key.take(pa.array(index))
        name = table.table.name
        found.append(ChangedKeys(name, piece, chosen, inserts, lives, half[index], seq[index], event, number))
    return found


MOST_KEYS = 24_000_000
"""The most hashes in memory at a time, 10 bytes each; sorting takes as much again."""


KEPT_PART = 4
"""One part in so many of MOST_KEYS may stay in memory until the next look."""


@dataclass(slots=True)
class SharedKeys:
    """Finds the hashes that more than one table has, with at most `most` hashes in memory.

    Where there are more, the caller reads its keys several times. Each pass is for one share of the hashes, given by
    their lowest bits. `begin` starts a pass, and returns False after the last one; `add` takes the hashes of a table,
    and ignores those of other shares.
    """

    most: int = MOST_KEYS
    _shares: int = 1
    _share: int = -1
    _hashes: list[np.ndarray] = field(default_factory=list)
    _tables: list[np.ndarray] = field(default_factory=list)
    _held: int = 0
    _found: list[np.ndarray] = field(default_factory=list)

    def begin(self) -> bool:
        """Start the pass for the next share of the hashes. Return False after the last one."""
        if self._share >= 0:
            hashes, tables = self._distinct()
            self._found.append(np.unique(hashes[1:][hashes[1:] == hashes[:-1]]))
            self._hashes, self._tables, self._held = [hashes], [tables], len(hashes)
        if self._share < 0 or self._shares > 1:
            self._hashes, self._tables, self._held = [], [], 0
        self._share += 1
        return self._share < self._shares

    def more(self) -> None:
        """Go on after the last share: what is added next joins the hashes in memory. Only where `whole` is true."""
        self._share, self._found = 0, []

    @property
    def whole(self) -> bool:
        """True if all hashes are in memory, and few enough to stay there."""
        return self._shares == 1 and self._held <= self.most // KEPT_PART

    def add(self, hashes: np.ndarray, table: int) -> None:
        """Add the key hashes of a table, as uint64."""
        mine = np.unique(self._of_share(hashes))
        self._hashes.append(mine)
        self._tables.append(np.full(len(mine), table, dtype=np.uint16))
        self._held += len(mine)
        if self._held > self.most:
            self._fold()

    @property
    def found(self) -> np.ndarray:
        """The hashes that more than one table has, sorted."""
        return np.unique(np.concatenate([np.zeros(0, dtype=np.uint64), *self._found]))

    def _fold(self) -> None:
        hashes, tables = self._distinct()
        while self._share == 0 and len(hashes) > self.most // 2 and hashes[0] != hashes[-1]:  # one hash can't be split
            self._shares *= 2
            kept = hashes % np.uint64(self._shares) == 0
            hashes, tables = hashes[kept], tables[kept]
        self._hashes, self._tables, self._held = [hashes], [tables], len(hashes)

    def _of_share(self, hashes: np.ndarray) -> np.ndarray:
        return hashes[hashes % np.uint64(self._shares) == self._share] if self._shares > 1 else hashes

    def _distinct(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the pairs of hash and table in memory, sorted, each once."""
        hashes = np.concatenate([np.zeros(0, dtype=np.uint64), *self._hashes])
        tables = np.concatenate([np.zeros(0, dtype=np.uint16), *self._tables])
        order = np.lexsort((tables, hashes))
        hashes, tables = hashes[order], tables[order]
        new = np.ones(len(hashes), dtype=bool)
        new[1:] = (hashes[1:] != hashes[:-1]) | (tables[1:] != tables[:-1])
        return hashes[new], tables[new]


class When(IntEnum):
    """The time at which the target gets a change: it has it already, with this re-sync, or after a later DDL."""

    AHEAD = 0
    NOW = 1
    LATER = 2


class MoveOutcome(IntEnum):
    """The outcome of a change that is not applied: left out, or a clash that stops the source."""

    LEFT_OUT = 0
    CLASH = 1


@dataclass(frozen=True, slots=True)
class KeyChange:
    """A change of one key.

    `order`: its number in the log. `table`: its shard. `inserts`: the shard has no row of the key before it, and one
    after it. `lives`: the shard has a row after it. `when`: when the target gets it.
    """

    order: int
    table: TableName
    inserts: bool
    lives: bool
    when: When


def fates(changes: Iterable[KeyChange], *, refuses: bool) -> dict[int, MoveOutcome]:
    """Return the outcome of those changes of one key that are due now and not applied, by their order.

    `refuses`: the target refuses a second row of a key; else an INSERT replaces it.
    """
    known = sorted(changes, key=lambda change: (change.when, change.order))
    gone = {change.table: change.order for change in sorted(known, key=_order) if not change.lives}
    found: dict[int, MoveOutcome] = {}
    lacking: set[TableName] = set()  # shards whose INSERT was left out: their later changes of that row are, too
    there: KeyChange | None = None
    for change in known:
        if change.when is When.LATER:
            break
        goes = gone.get(change.table, -1) > change.order
        if change.inserts:
            lacking.discard(change.table)
        if change.table in lacking:
            found[change.order] = MoveOutcome.LEFT_OUT
            if not change.lives:
                lacking.discard(change.table)
        elif there is None or there.table == change.table:
            there = change if change.lives else None
        elif not change.lives and refuses and there.when is When.NOW:
            pass  # the batch deletes the shard's own row before it inserts the other's
        elif not change.lives or (goes and gone.get(there.table, -1) < there.order):
            if change.when is When.NOW:
                found[change.order] = MoveOutcome.LEFT_OUT
        elif change.when is When.NOW and change.order < there.order:
            found[change.order] = MoveOutcome.LEFT_OUT if goes else MoveOutcome.CLASH
        else:
            there = change
        if change.inserts and change.order in found:
            lacking.add(change.table)
    return found


def _order(change: KeyChange) -> int:
    return change.order
