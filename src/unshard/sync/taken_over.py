"""What safe mode leaves out of changes that are applied one after the other: rows that another shard has taken over.

An INSERT there is a REPLACE, so a row that moves from one merged table to another under its key, INSERT first, has
replaced its old self when the DELETE comes, which would remove the new one:

| changes of one key, by source table | applied in safe mode |
|---|---|
| INSERT of B, DELETE of A | REPLACE |
| INSERT of B, UPDATE of A that gives the key away | REPLACE, REPLACE under the other key |
| INSERT of B, UPDATE of A that keeps the key, DELETE of A | REPLACE |
| INSERT of B, DELETE of B | REPLACE, DELETE |

Outside of safe mode the target refuses that INSERT. What is compacted has no need of this (`sync.compact`).
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from unshard.model.change import Op


def without_taken_over(changes: pa.Table) -> pa.Table:
    """Changes in the order of `seq`, without what a table does to its rows that another's have replaced. Pure."""
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
    kept[gives] = True
    stays = np.zeros(count, dtype=bool)
    stays[place[lost & (np.arange(len(place)) >= count)]] = True
    if stays.any():
        column = pc.if_else(pa.array(stays), key, old_key)
        changes = changes.set_column(changes.schema.get_field_index("old_key"), "old_key", column)
    return changes if kept.all() else changes.filter(pa.array(kept))


def _replaced(
    key: np.ndarray, target: np.ndarray, table: np.ndarray, place: np.ndarray, removes: np.ndarray
) -> np.ndarray:
    """Which are of a table's run that ends with a removal and meets a row of its key that another table has written."""
    order = np.lexsort((~removes, place, key, target))
    before, after = order[:-1], order[1:]
    same = (key[before] == key[after]) & (target[before] == target[after])
    other = same & (table[before] != table[after])
    begins = np.concatenate([[0], np.flatnonzero(~same | other) + 1])
    ends = np.append(begins[1:], len(order)) - 1
    meets = np.concatenate([[False], other & ~removes[before]])
    found = np.zeros(len(key), dtype=bool)
    found[order] = np.repeat(meets[begins] & removes[order[ends]], ends - begins + 1)
    return found
