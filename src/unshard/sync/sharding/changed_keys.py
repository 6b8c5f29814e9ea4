"""The keys of a target that changes of the log are about, read for `sync.moved`, which writes none of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from unshard.binlog.partial import PartialImages
from unshard.errors import SyncError
from unshard.model.change import IMAGE_FIELDS, Op
from unshard.model.table import Table, TableName
from unshard.sync.batch.plan import BatchPlan, Range, TablePlan
from unshard.sync.steps.decode import Images, decode
from unshard.sync.steps.encode import keys_of
from unshard.sync.steps.filter import filter_rows
from unshard.sync.steps.map import map_columns, where_of


@dataclass(frozen=True, slots=True)
class ChangedKeys:
    """The changes of keys that one table has in one range of the log; an UPDATE of a key is two, each a half.

    `number` tells which of its event's changes it is, the offset of which is `event`.
    """

    table: TableName
    piece: Range
    key: pa.Array
    lives: np.ndarray
    half: np.ndarray
    seq: np.ndarray
    event: np.ndarray
    number: np.ndarray


@dataclass(frozen=True, slots=True)
class OwnKey:
    """What a structure has of a target's key: by its own column the target's, and whether that surely is the key.

    It is not where a DDL that waits gives the key another name or more columns: keys that differ then are different
    rows, those that don't may be one.
    """

    names: Mapping[str, str]
    sure: bool


def own_key(table: Table, identity: Sequence[str], key: Sequence[str]) -> OwnKey:
    """For rows of that structure and a target that finds rows by `key`; a column that it lacks is taken for the one of
    its own key in that place."""
    there = {column.name.lower(): column.name for column in table.columns}
    names = {there[name.lower()]: name for name in key if name.lower() in there}
    if len(names) == len(key):
        return OwnKey(names, sure=True)
    if len(identity) == len(key):
        names |= {own: name for own, name in zip(identity, key, strict=True) if name not in names.values()}
    return OwnKey(names, sure=False)


def changed_keys(plan: BatchPlan, keys: Mapping[TableName, OwnKey]) -> list[ChangedKeys]:
    """Of all tables of the plan, in no order. Raises as decoding does, SyncError SYNC-030 for images without key."""
    found = []
    for piece in plan.ranges:
        for table, images in decode(plan, piece, offsets=True)[0]:
            if len(batch_of(images)):
                found += _of_images(plan, piece, table, images, keys[table.table.name].names)
    return found


def batch_of(images: pa.RecordBatch | PartialImages) -> pa.RecordBatch:
    """All rows of them, with what images lack as NULL."""
    return images.batch if isinstance(images, PartialImages) else images


def numbered(images: pa.RecordBatch) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of images with offsets: by image its number in the log, its event's offset, and which change of that it is."""
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
    for mapped, batch in (_with_keys(plan, one, names) for one in map_columns(plan, kept)):
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
        event, number = events[places][index], numbers[places][index]
        chosen = key.take(pa.array(index))
        found.append(ChangedKeys(table.table.name, piece, chosen, lives, half[index], seq[index], event, number))
    return found


def _with_keys(plan: BatchPlan, mapped: Images, names: Mapping[str, str]) -> tuple[TablePlan, pa.RecordBatch]:
    """Images whose columns of the key have the target's names, and values that an UPDATE leaves alone."""
    table, images = mapped
    columns, batch = table.table.columns, batch_of(images)
    if isinstance(images, PartialImages):
        columns = images.columns
        for name in names:
            batch = _filled(plan, images, batch, name)
    named = tuple(replace(column, name=names.get(column.name, column.name)) for column in columns)
    return replace(table, table=replace(table.table, columns=named)), batch


def _filled(plan: BatchPlan, images: PartialImages, batch: pa.RecordBatch, name: str) -> pa.RecordBatch:
    number = next(place for place, column in enumerate(images.table.columns) if column.name == name)
    before, after = images.present
    if number not in (before if before is not None else after or ()):
        values = {"target": str(images.table.name), "missing": name}
        raise SyncError("SYNC-030", where_of(plan, images), values=values)
    if after is None or number in after:
        return batch
    place = len(IMAGE_FIELDS) + images.columns.index(images.table.columns[number])
    rows = np.arange(len(batch))
    rows -= batch.column(0).to_numpy(zero_copy_only=False) == Op.UPDATE_AFTER
    return batch.set_column(place, batch.schema.field(place), batch.column(place).take(pa.array(rows)))


# Which keys more than one table has changed, told from hashes of many, in bounded memory.


MOST_KEYS = 24_000_000
"""What is held at a time, of 10 bytes each; sorting takes as much again."""


KEPT_PART = 4
"""The share of that which may stay until it is needed again."""


@dataclass(slots=True)
class SharedKeys:
    """The hashes that more than one table has. Where they are too many, the caller goes through all of them again.

    Each time it is for one share of the hashes, by their lowest bits: `begin` says whether there is one left, `add`
    takes what is found, also what belongs to another share.
    """

    most: int = MOST_KEYS
    _shares: int = 1
    _share: int = -1
    _hashes: list[np.ndarray] = field(default_factory=list)
    _tables: list[np.ndarray] = field(default_factory=list)
    _held: int = 0
    _found: list[np.ndarray] = field(default_factory=list)

    def begin(self) -> bool:
        """Be at the next share; False behind the last one."""
        if self._share >= 0:
            hashes, tables = self._distinct()
            self._found.append(np.unique(hashes[1:][hashes[1:] == hashes[:-1]]))
            self._hashes, self._tables, self._held = [hashes], [tables], len(hashes)
        if self._share < 0 or self._shares > 1:
            self._hashes, self._tables, self._held = [], [], 0
        self._share += 1
        return self._share < self._shares

    def more(self) -> None:
        """Behind the last share: what is added next belongs to what is held. Not where `whole` is false."""
        self._share, self._found = 0, []

    @property
    def whole(self) -> bool:
        """Whether all hashes are held, and few enough to be kept."""
        return self._shares == 1 and self._held <= self.most // KEPT_PART

    def add(self, hashes: np.ndarray, table: int) -> None:
        """Keys of that table, as uint64."""
        mine = np.unique(self._of_share(hashes))
        self._hashes.append(mine)
        self._tables.append(np.full(len(mine), table, dtype=np.uint16))
        self._held += len(mine)
        if self._held > self.most:
            self._fold()

    @property
    def found(self) -> np.ndarray:
        """Sorted."""
        return np.unique(np.concatenate([np.zeros(0, dtype=np.uint64), *self._found]))

    def _fold(self) -> None:
        hashes, tables = self._distinct()
        while self._share == 0 and len(hashes) > self.most // 2:
            self._shares *= 2
            kept = hashes % np.uint64(self._shares) == 0
            hashes, tables = hashes[kept], tables[kept]
        self._hashes, self._tables, self._held = [hashes], [tables], len(hashes)

    def _of_share(self, hashes: np.ndarray) -> np.ndarray:
        return hashes[hashes % np.uint64(self._shares) == self._share] if self._shares > 1 else hashes

    def _distinct(self) -> tuple[np.ndarray, np.ndarray]:
        """What is held, by hash and table, each once."""
        hashes = np.concatenate([np.zeros(0, dtype=np.uint64), *self._hashes])
        tables = np.concatenate([np.zeros(0, dtype=np.uint16), *self._tables])
        order = np.lexsort((tables, hashes))
        hashes, tables = hashes[order], tables[order]
        new = np.ones(len(hashes), dtype=bool)
        new[1:] = (hashes[1:] != hashes[:-1]) | (tables[1:] != tables[:-1])
        return hashes[new], tables[new]
