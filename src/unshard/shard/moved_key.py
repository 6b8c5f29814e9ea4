"""A key of a target table that several shards have had while a sharding DDL waited: which changes are still for it.

What waits is applied later than changes of other shards that lie behind it in the log. Keys of shards are apart, so
that matters where a row has moved under its key: the target has the row of the shard to which it went.

| a change that is applied now, of a shard | the target has the row of another shard | else |
|---|---|---|
| DELETE | left out: it is for the shard's own row, which is gone | applied |
| INSERT, UPDATE that the shard deletes later on, while the other one keeps the row | left out: it has gone there | |
| INSERT, UPDATE, later in the log than that row | applied: the row has come here | applied |
| INSERT, UPDATE, earlier, and the shard deletes it later on | left out | |
| INSERT, UPDATE, earlier, and the shard keeps it | a clash: both shards have the row | |

A move may begin with its INSERT or with its DELETE. A change of the key is a DELETE and an INSERT.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum

from unshard.model.table import TableName


class When(IntEnum):
    """When the target gets a change: it has it, it gets it with this re-sync, or with one behind a later DDL."""

    AHEAD = 0
    NOW = 1
    LATER = 2


class MoveOutcome(IntEnum):
    """What becomes of a change that is not applied."""

    LEFT_OUT = 0
    CLASH = 1


@dataclass(frozen=True, slots=True)
class KeyChange:
    """A change of one key: its `order` in the log, its shard, and whether that has a row of the key behind it."""

    order: int
    table: TableName
    lives: bool
    when: When


def fates(changes: Iterable[KeyChange]) -> dict[int, MoveOutcome]:
    """By order, the changes of one key that are due now and not applied."""
    known = sorted(changes, key=lambda change: (change.when, change.order))
    gone = {change.table: change.order for change in sorted(known, key=_order) if not change.lives}
    found: dict[int, MoveOutcome] = {}
    there: KeyChange | None = None
    for change in known:
        if change.when is When.LATER:
            break
        goes = gone.get(change.table, -1) > change.order
        if there is None or there.table == change.table:
            there = change if change.lives else None
        elif not change.lives or (goes and gone.get(there.table, -1) < there.order):
            if change.when is When.NOW:
                found[change.order] = MoveOutcome.LEFT_OUT
        elif change.when is When.NOW and change.order < there.order:
            found[change.order] = MoveOutcome.LEFT_OUT if goes else MoveOutcome.CLASH
        else:
            there = change
    return found


def _order(change: KeyChange) -> int:
    return change.order
