"""Spark task: the first comparison of keys that a source table has changed, to find those whose rows differ.

Most keys are right by then, so only hashes of their rows are compared; keys that differ are compared again (`look.py`).
The source is read first: a row that proves equal was right in the target when it was read there.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa

from unshard.compare.executor.keys import Key, shard_condition, target_condition
from unshard.compare.executor.rows import (
    SideConnections,
    asked_again,
    key_literals,
    row_hashes,
    shard_batches,
    target_batches,
)
from unshard.compare.tables import ComparedTable
from unshard.errors import enclose

LACKS, DIFFERS, EXCEEDS = 0, 1, 2
"""Kinds of a key that differs: the target has no row, another row than the source, or a row that the source lacks."""


@dataclass(frozen=True, slots=True)
class ChangedOrder:
    """The keys of one table that a Spark task is to look at, `at_once` in a query.

    The table has only the one source table that has changed them.
    """

    table: ComparedTable
    keys: tuple[Key, ...]
    at_once: int


def look_first(payload: bytes) -> bytes:
    """Spark task: look at the keys of a pickled tuple of ChangedOrder, of one source. Safe to run again.

    The outcome has for each a list of [LACKS, DIFFERS or EXCEEDS, key], with keys as the target or else the source
    spells them.
    """
    orders: tuple[ChangedOrder, ...] = pickle.loads(payload)
    return enclose(lambda: asked_again(partial(_looked, orders)))


def _looked(orders: Sequence[ChangedOrder]) -> list[list[list[object]]]:
    with SideConnections() as connections:
        return [_of_table(order, connections) for order in orders]


def _of_table(order: ChangedOrder, connections: SideConnections) -> list[list[object]]:
    table = order.table
    (shard,) = table.shards
    found: list[list[object]] = []
    connections.get(shard.endpoint, "source")
    for start in range(0, len(order.keys), order.at_once):
        keys = order.keys[start : start + order.at_once]
        condition = shard_condition(table, shard, keys)
        here = list(shard_batches(connections, table, shard, (condition,))) if condition else []
        there = list(target_batches(connections, table, (target_condition(table, keys),)))
        ours, theirs = _unlike(table, here, there), _unlike(table, there, here)
        found += [[DIFFERS if key in ours else EXCEEDS, list(key)] for key in theirs]
        found += [[LACKS, list(key)] for key in ours if key not in theirs]
    return found


def _unlike(table: ComparedTable, here: Sequence[pa.RecordBatch], there: Sequence[pa.RecordBatch]) -> dict[Key, None]:
    """Return the keys of the rows that one side has and the other lacks."""
    others = np.concatenate([np.zeros(0, dtype=np.uint64), *(row_hashes(batch) for batch in there)])
    keys: dict[Key, None] = {}
    for batch in here:
        unlike = ~np.isin(row_hashes(batch), others)
        if unlike.any():
            keys.update(dict.fromkeys(key_literals(batch.filter(pa.array(unlike)), table)))
    return keys
