"""Decides for each change of a key, if several shards have changed the key, whether the target gets it. Pure.

The target gets the changes that waited for a DDL after changes of other shards that come later in the log. Keys of
shards are distinct, so this matters only where a row has moved to another shard under its key: the target then has the
row of the shard to which it moved.

| a change of a shard that is applied now | the target has the row of another shard | otherwise |
|---|---|---|
| DELETE | left out: it is for the shard's own row, which the target no longer has (but see below) | applied |
| INSERT, where the shard deletes the row later, and the other shard keeps it | left out: it moved there | |
| INSERT, later in the log than the other shard's row | applied: the row has moved here | applied |
| INSERT, earlier, and the shard deletes the row later | left out | |
| INSERT, earlier, and the shard keeps the row | a clash: both shards have the row | |
| UPDATE, where the shard deletes the row later | left out: the target no longer has the row | applied |
| UPDATE, where the shard keeps the row | a clash: both shards have the row | applied |

The log may have the INSERT of a move first, or its DELETE. An UPDATE of the key is a DELETE and an INSERT.

If one batch has the INSERT of a move and, behind it, the DELETE (`Fate.behind`), the DELETE is applied. A target that
refuses a second row of a key accepts the INSERT only with it: a batch runs DELETEs first. And where the INSERT replaces
the row (safe mode), the batch must know that the shard has lost the row: its earlier changes would be written over the
new row. In a later batch the DELETE would delete the row that has moved.
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
class Fate:
    """The decision about a change that is not applied in any case.

    `behind`: the order of the INSERT that has replaced the row of this DELETE. A batch that has both applies both.
    """

    outcome: MoveOutcome
    behind: int | None = None


LEFT_OUT, CLASH = Fate(MoveOutcome.LEFT_OUT), Fate(MoveOutcome.CLASH)


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


def fates(changes: Iterable[KeyChange]) -> dict[int, Fate]:
    """Return the fate of those changes of one key that are due now and not applied in any case, by their order."""
    known = sorted(changes, key=lambda change: (change.when, change.order))
    gone = {change.table: change.order for change in sorted(known, key=_order) if not change.lives}
    found: dict[int, Fate] = {}
    lacking: set[TableName] = set()  # shards whose INSERT was left out: their later changes of that row are, too
    there: KeyChange | None = None  # the change by which the target got the row that is there
    for change in known:
        if change.when is When.LATER:
            break
        goes = gone.get(change.table, -1) > change.order
        fate: Fate | None = None
        if change.inserts:
            lacking.discard(change.table)
        if change.table in lacking:
            fate = LEFT_OUT
            if not change.lives:
                lacking.discard(change.table)
        elif there is None or there.table == change.table:
            there = None if not change.lives else change if there is None or change.inserts else there
        elif not change.lives:
            fate = Fate(MoveOutcome.LEFT_OUT, there.order) if there.when is When.NOW else LEFT_OUT
        elif not change.inserts:
            fate = LEFT_OUT if goes else CLASH
        elif goes and gone.get(there.table, -1) < there.order:
            fate = LEFT_OUT
        elif change.when is When.NOW and change.order < there.order:
            fate = LEFT_OUT if goes else CLASH
        else:
            there = change
        if fate is not None and change.when is When.NOW:
            found[change.order] = fate
            if change.inserts:
                lacking.add(change.table)
    return found


def _order(change: KeyChange) -> int:
    return change.order
