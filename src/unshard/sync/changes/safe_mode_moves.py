"""Leaves out, in safe mode, ordered changes of rows that another shard has replaced.

In safe mode an INSERT is a REPLACE. So when a row moves from one merged table to another under its key, INSERT first,
the REPLACE has removed the old row by the time the DELETE comes, and the DELETE would remove the new one. Therefore, of
each key that several tables change, one table keeps it: the table that has a row of it in the end; if several have, the
one that changed it last. What others do to the key after that row was inserted is left out:

| changes of one key, by source table | applied in safe mode |
|---|---|
| INSERT of B, DELETE of A | REPLACE |
| INSERT of B, UPDATE of A that gives up the key | REPLACE, REPLACE under the other key |
| INSERT of B, UPDATE of A that keeps the key, DELETE of A | REPLACE |
| INSERT of B, UPDATE of A to this key from another one, DELETE of A | REPLACE, DELETE of the other key |
| INSERT of B, INSERT of C, DELETE of A, DELETE of B | REPLACE, REPLACE |
| INSERT of B, DELETE of B, DELETE of A | REPLACE, DELETE, DELETE |

Outside of safe mode the target refuses that INSERT. Compacted changes don't need this (`sync.changes.compact`).
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from unshard.model.change import Op


def without_taken_over(changes: pa.Table) -> pa.Table:
    """Return changes in the order of `seq`, without those of a table's rows that another's have replaced. Pure."""
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
    lost = _replaced(keys, changes.column("target").to_numpy()[place], table[place], place, removes)
    kept = ~lost[:count]
    stays = np.zeros(count, dtype=bool)
    stays[gives[lost[count:]]] = True
    only_gives = np.zeros(count, dtype=bool)
    only_gives[gives[lost[gives] & ~lost[count:]]] = True
    if only_gives.any():
        kept |= only_gives
        changes = _as_deletes(changes, pa.array(only_gives))
    if (stays & kept).any():
        changes = _with(changes, "old_key", pc.if_else(pa.array(stays & kept), key, changes.column("old_key")))
    return changes if kept.all() else changes.filter(pa.array(kept))


def _replaced(
    key: np.ndarray, target: np.ndarray, table: np.ndarray, place: np.ndarray, removes: np.ndarray
) -> np.ndarray:
    """Return which changes are of a table that loses the key, and come after the INSERT of the keeper's row."""
    order = np.lexsort((place, table, key, target))
    key, target, table, place, removes = (one[order] for one in (key, target, table, place, removes))
    new_key = np.append(True, (key[1:] != key[:-1]) | (target[1:] != target[:-1]))
    new_table = np.append(True, new_key[1:] | (table[1:] != table[:-1]))
    born = new_table | np.append(False, removes[:-1])
    last = np.flatnonzero(np.append(new_table[1:], True))
    birth = np.maximum.accumulate(np.where(born, np.arange(len(order)), 0))[last]
    number = np.cumsum(new_key) - 1
    lives = ~removes[last]
    by_key = np.lexsort((place[last], lives, number[last]))
    keeper = by_key[np.append(np.diff(number[last][by_key]) != 0, True)]
    since = np.where(lives[keeper], place[birth[keeper]], np.iinfo(np.int64).max)
    found = np.zeros(len(order), dtype=bool)
    found[order] = (table != table[last][keeper][number]) & (place > since[number])
    return found


def _as_deletes(changes: pa.Table, chosen: pa.Array) -> pa.Table:
    """Replace those UPDATEs by DELETEs of the rows whose key they change."""
    nothing = pa.nulls(len(changes), pa.binary())
    changes = _with(changes, "op", pc.if_else(chosen, pa.scalar(int(Op.DELETE), pa.int8()), changes.column("op")))
    changes = _with(changes, "key", pc.if_else(chosen, changes.column("old_key"), changes.column("key")))
    changes = _with(changes, "old_key", pc.if_else(chosen, nothing, changes.column("old_key")))
    return _with(changes, "row", pc.if_else(chosen, nothing, changes.column("row")))


def _with(changes: pa.Table, name: str, column: pa.ChunkedArray) -> pa.Table:
    return changes.set_column(changes.schema.get_field_index(name), changes.schema.field(name), column)
