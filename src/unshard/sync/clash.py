"""A duplicate key in a merged table: whether it may be that of a row whose changes wait for a sharding DDL.

A row that leaves a held shard and comes to one that is free under the same key is deleted later than it is inserted.
Neither can be put right here: the new row is of the old structure, which the target loses before the old row may go.
"""

from __future__ import annotations

from unshard.errors import ShardError, UnshardError
from unshard.shard.lock_keeper import lock_id
from unshard.sync.batch import BatchPlan
from unshard.sync.journal import Journal
from unshard.target.shard_groups import held_tables

DUPLICATE = "SYNC-003"


def held_clash(error: UnshardError, plan: BatchPlan, journal: Journal) -> ShardError | None:
    """SHARD-035 in the place of the error that stopped the batch, where changes of its target table are held."""
    if error.code != DUPLICATE:
        return None
    target = next(one.name for one in plan.targets().values() if str(one.name) == error.where.table)
    held = journal.on_target(lambda c: held_tables(c, journal.meta, target))
    if not held:
        return None
    names = ", ".join(f"{table} of {source}" for source, table in held)
    values = {**error.values, "id": lock_id(journal.meta.task, target), "held": names}
    return ShardError("SHARD-035", error.where, error.cause, values)
