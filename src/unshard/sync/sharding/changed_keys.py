"""Reads the target keys of row changes from the log. For `sync/sharding/moved_rows.py`; nothing is written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from unshard.binlog.images import PartialImages
from unshard.kernels.literals import hash_of
from unshard.model.change import Op
from unshard.model.table import Column, Table, TableName
from unshard.sync.batch.plan import BatchPlan, Range, TablePlan
from unshard.sync.changes.decode import decode
from unshard.sync.changes.encode import keys_of
from unshard.sync.changes.filter import filter_rows
from unshard.sync.changes.map import batch_of, map_columns, with_keys
from unshard.sync.sharding.equal_keys import coarse_hashes


@dataclass(frozen=True, slots=True)
class ChangedKeys:
    """The keys that one table changes in one range of the log, `piece`. An UPDATE of a key is two changes.

    All arrays have one entry a change. `key`: the encoded key. `inserts`: the row exists after the change and not
    before it. `lives`: the row exists after the change. `half`: the change is one of the two of such an UPDATE. `seq`:
    the row image's number in the log. `event`: the offset of its row event. `number`: its number among the event's
    changes. `coarse`: a hash of the key that is the same for all keys that the target may take for this one.
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
    coarse: np.ndarray


@dataclass(frozen=True, slots=True)
class OwnKey:
    """The columns of a source table that form the target's key.

    `names`: the target's column by the source's column. `sure`: equal values mean the same row. It is False where a DDL
    that waits renames or adds key columns: different keys are then different rows, but equal keys may be one row or
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


def changed_keys(plan: BatchPlan, keys: Mapping[TableName, OwnKey], there: Sequence[Column] = ()) -> list[ChangedKeys]:
    """Return the changed keys of all tables of the plan, in no order.

    `there` are the columns of the target's key, if keys are to be compared as the target does; without them
    `ChangedKeys.coarse` is the hash of the key's text. Raises as decoding does; SyncError SYNC-030 for row images
    without key columns.
    """
    found = []
    for piece in plan.ranges:
        for table, images in decode(plan, piece, offsets=True)[0]:
            if len(batch_of(images)):
                found += _of_images(plan, piece, table, images, keys[table.table.name].names, there)
    return found


def numbered(images: pa.RecordBatch) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return, for each row image, its number in the log, its event's offset, and which change of that event it is."""
    seq = images.column(1).to_numpy(zero_copy_only=False)
    offset = images.column(images.num_columns - 1).to_numpy(zero_copy_only=False)
    change = np.cumsum(np.diff(seq, prepend=-1) != 0)
    _, first, event = np.unique(offset, return_index=True, return_inverse=True)
    return seq, offset, change - change[first][event]


def _of_images(
    plan: BatchPlan,
    piece: Range,
    table: TablePlan,
    images: pa.RecordBatch | PartialImages,
    names: Mapping[str, str],
    there: Sequence[Column],
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
        coarse = coarse_hashes(mapped, batch, there)[index] if there else hash_of(chosen)
        name = table.table.name
        found.append(ChangedKeys(name, piece, chosen, inserts, lives, half[index], seq[index], event, number, coarse))
    return found
