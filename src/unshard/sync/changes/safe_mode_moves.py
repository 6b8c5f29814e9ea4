"""Puts, in safe mode, the removal of rows that other shards may have replaced before the rows that replace them.

In safe mode an INSERT is a REPLACE. So when a row moves from one merged table to another under its key, INSERT first,
the REPLACE has removed the old row by the time the DELETE comes, and the DELETE would remove the new one. Therefore a
key that a table no longer has in the end is deleted before the first row that another table has then. What the table
does to the key later is left out. Rows that have a key in the end are written as they come:

| changes, by source table | applied in safe mode |
|---|---|
| INSERT of B, DELETE of A | DELETE, REPLACE |
| INSERT of B, UPDATE of A that gives up the key | DELETE and REPLACE, REPLACE under the other key |
| INSERT of B, UPDATE of A that keeps the key, DELETE of A | DELETE, REPLACE |
| INSERT of B, UPDATE of A to this key from another one, DELETE of A | DELETE, REPLACE, DELETE of the other key |
| INSERT of B, INSERT of C, DELETE of A, DELETE of B | REPLACE, DELETE, DELETE, REPLACE |
| INSERT of B, DELETE of B, DELETE of A | REPLACE, DELETE, DELETE |

This holds whether the keys of A and B are equal for the target or not, so keys are compared by their texts only with
those of their own table: one that the target takes for another text's (case, accents, trailing blanks, a number written
otherwise) has moved as well. A DELETE that belongs to another change is in that change's `old_key`.

Outside of safe mode the target refuses that INSERT. Compacted changes don't need this (`sync.changes.compact`).
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from unshard.model.change import Op

_NEVER = np.iinfo(np.int64).max


def without_taken_over(changes: pa.Table) -> pa.Table:
    """Return changes, given in the order of `seq`, so that no row of a table removes one that another table has. Pure.

    `old_key` of a change may have the texts of several keys then, also that of an INSERT: all of them are deleted
    before the row is written.
    """
    table = changes.column("table").to_numpy()
    if len(changes) < 2 or (table == table[0]).all():
        return changes
    key, old_key = changes.column("key"), changes.column("old_key")
    op = changes.column("op").to_numpy()
    gives = np.flatnonzero(pc.not_equal(old_key, key).fill_null(False).to_numpy(zero_copy_only=False))
    count = len(changes)
    place = np.concatenate([np.arange(count), gives])
    removes = np.concatenate([op == Op.DELETE, np.ones(len(gives), dtype=bool)])
    numbers = (
        pa.chunked_array([*key.chunks, *old_key.take(pa.array(gives)).chunks]).combine_chunks().dictionary_encode()
    )
    keys = numbers.indices.to_numpy(zero_copy_only=False)
    row, since = _rows_that_end(keys, changes.column("target").to_numpy()[place], table[place], place, removes)
    lost = place > since
    if not lost.any():
        return changes
    kept = ~lost[:count]
    moved = np.full(count, _NEVER)
    deletes = np.flatnonzero(lost[:count] & (op == Op.DELETE))
    ended, first = np.unique(row[deletes], return_index=True)
    moved[deletes[first]] = since[deletes[first]]
    kept[deletes[first]] = True
    stays = np.zeros(count, dtype=bool)
    stays[gives[lost[count:]]] = True
    only_gives = np.zeros(count, dtype=bool)
    only_gives[gives[lost[gives] & ~lost[count:]]] = True
    if only_gives.any():
        kept |= only_gives
        changes = _as_deletes(changes, pa.array(only_gives))
    if (stays & kept).any():
        changes = _with(changes, "old_key", pc.if_else(pa.array(stays & kept), key, changes.column("old_key")))
    rest, first = np.unique(row[lost & ~np.isin(row, ended)], return_index=True)
    if len(rest):
        chosen = np.flatnonzero(lost & ~np.isin(row, ended))[first]
        changes = _deleting(changes, since[chosen], numbers.dictionary.take(pa.array(keys[chosen])))
    position = np.where(moved < _NEVER, 2 * np.minimum(moved, count) - 1, 2 * np.arange(count))
    order = np.argsort(position, kind="stable")
    return changes.take(pa.array(order[kept[order]]))


def _rows_that_end(
    key: np.ndarray, target: np.ndarray, table: np.ndarray, place: np.ndarray, removes: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the number of each change's row, and from which place on the row must not be touched.

    A row is a key of a table. The place is that of the first change by which another table of the target gets a row
    that it has in the end; there is none for a row that its own table has in the end.
    """
    order = np.lexsort((place, key, table))
    key, target, table, place, removes = (one[order] for one in (key, target, table, place, removes))
    new_row = np.append(True, (key[1:] != key[:-1]) | (table[1:] != table[:-1]))
    number = np.cumsum(new_row) - 1
    born = new_row | np.append(False, removes[:-1])
    last = np.flatnonzero(np.append(new_row[1:], True))
    birth = np.maximum.accumulate(np.where(born, np.arange(len(order)), 0))[last]
    lives = ~removes[last]
    tables, begin, own = np.unique(table[last], return_index=True, return_inverse=True)
    targets = target[last][begin]
    first = np.full(len(tables), _NEVER)
    np.minimum.at(first, own[lives], place[birth[lives]])
    others = (targets[:, None] == targets) & ~np.eye(len(tables), dtype=bool)
    since = np.where(others, first, _NEVER).min(axis=1)
    row, until = np.empty(len(order), dtype=np.int64), np.empty(len(order), dtype=np.int64)
    row[order] = number
    until[order] = np.where(lives, _NEVER, since[own])[number]
    return row, until


def _deleting(changes: pa.Table, place: np.ndarray, keys: pa.Array) -> pa.Table:
    """Add keys to those that the changes at these places delete."""
    order = np.argsort(place, kind="stable")
    at, begin = np.unique(place[order], return_index=True)
    lists = pa.ListArray.from_arrays(pa.array([*begin, len(order)], pa.int32()), keys.take(pa.array(order)))
    texts = pc.binary_join(lists, b"")
    index, there = np.zeros(len(changes), dtype=np.int64), np.zeros(len(changes), dtype=bool)
    index[at], there[at] = np.arange(len(at)), True
    old_key = pc.fill_null(changes.column("old_key"), b"")
    joined = pc.binary_join_element_wise(old_key, texts.take(pa.array(index)), b"")
    return _with(changes, "old_key", pc.if_else(pa.array(there), joined, changes.column("old_key")))


def _as_deletes(changes: pa.Table, chosen: pa.Array) -> pa.Table:
    """Replace those UPDATEs by DELETEs of the rows whose key they change."""
    nothing = pa.nulls(len(changes), pa.binary())
    changes = _with(changes, "op", pc.if_else(chosen, pa.scalar(int(Op.DELETE), pa.int8()), changes.column("op")))
    changes = _with(changes, "key", pc.if_else(chosen, changes.column("old_key"), changes.column("key")))
    changes = _with(changes, "old_key", pc.if_else(chosen, nothing, changes.column("old_key")))
    return _with(changes, "row", pc.if_else(chosen, nothing, changes.column("row")))


def _with(changes: pa.Table, name: str, column: pa.ChunkedArray) -> pa.Table:
    return changes.set_column(changes.schema.get_field_index(name), changes.schema.field(name), column)
