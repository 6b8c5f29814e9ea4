"""Decides for each change of a key, if several shards have changed the key, whether the target gets it. Pure.

The target gets the changes that waited for a DDL after changes of other shards that come later in the log. Keys of
shards are distinct, so this matters only where a row has moved to another shard under its key: the target then has the
row of the shard to which it moved.

| a change of a shard that is applied now | the target has the row of another shard | otherwise |
|---|---|---|
| DELETE | left out: it is for the shard's own row, which the target no longer has (but see below) | applied |
| INSERT, UPDATE, where the shard deletes the row later, and the other shard keeps it | left out: it moved there | |
| INSERT, UPDATE, later in the log than the other shard's row | applied: the row has moved here | applied |
| INSERT, UPDATE, earlier, and the shard deletes the row later | left out | |
| INSERT, UPDATE, earlier, and the shard keeps the row | a clash: both shards have the row | |

Where the target replaces a row of an equal key (safe mode), an UPDATE of the shard that has lost the row is left out
too, if the INSERT that takes the row over is applied by the same re-sync: a compacted batch runs INSERTs before
UPDATEs, so it would write the old row over the new one.

The log may have the INSERT of a move first, or its DELETE. An UPDATE of the key is a DELETE and an INSERT.

A target that refuses a second row of a key (`refuses`) accepts the INSERT only in a batch that deletes the first row.
So the DELETE is applied there if this re-sync has the other shard's INSERT, and the target has got the row that the
DELETE is for. Where the INSERT replaces the row (safe mode), the DELETE would delete the row that has moved.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum

from unshard.model.table import TableName


class When(IntEnum):
    """The time at which the target gets a change: it has it already, gets it in this re-sync, or after a later DDL."""

    AHEAD = 0
    NOW = 1
    LATER = 2


class MoveOutcome(IntEnum):
    """The outcome of a change that is not applied: it is left out, or it is a clash that stops the source."""

    LEFT_OUT = 0
    CLASH = 1


@dataclass(frozen=True, slots=True)
class KeyChange:
    """A change of one key by one shard.

    `order`: its number in the log. `table`: the shard. `inserts`: the shard has no row of the key before the change,
    and has one after it. `lives`: the shard has a row after it. `when`: when the target gets the change.
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
    updates: list[KeyChange] = []  # those of the row that is there which are applied now
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
            updates = updates if there is not None and change.lives else []
            updates += [change] * (change.when is When.NOW and not change.inserts and change.lives)
            there = change if change.lives else None
        elif not change.lives and refuses and there.when is When.NOW:
            pass  # the batch deletes the shard's own row before it inserts the other's
        elif not change.lives or (goes and gone.get(there.table, -1) < there.order):
            if change.when is When.NOW:
                found[change.order] = MoveOutcome.LEFT_OUT
        elif change.when is When.NOW and change.order < there.order:
            found[change.order] = MoveOutcome.LEFT_OUT if goes else MoveOutcome.CLASH
        else:
            if not refuses and change.when is When.NOW:
                found |= {one.order: MoveOutcome.LEFT_OUT for one in updates}
            there, updates = change, []
        if change.inserts and change.order in found:
            lacking.add(change.table)
    return found


def _order(change: KeyChange) -> int:
    return change.order
