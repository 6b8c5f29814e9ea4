"""The changes of moved rows that a re-sync leaves out, by their row events.

`moved_rows` finds in the log which changes of a key several tables have, and `move_outcomes` decides on each. A change
whose outcome depends on the batch is decided here, when the plan of the batch is known.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from unshard.errors import ShardError, Where
from unshard.model.position import Position
from unshard.model.table import TableName
from unshard.sync.batch.excluded_changes import OPERATOR, runs, seqs_for, within
from unshard.sync.batch.plan import BatchPlan, Range
from unshard.sync.changes.decode import decode
from unshard.sync.changes.map import batch_of
from unshard.sync.planning.operators import without_moved
from unshard.sync.sharding.changed_keys import numbered
from unshard.sync.sharding.move_outcomes import Fate, KeyChange, MoveOutcome, When, fates

Event = tuple[TableName, str, int]
"""A table, and the file and offset of a row event that has rows of it."""


@dataclass(frozen=True, slots=True)
class SharedChange:
    """A change of a key that two tables have changed, with its row event.

    `number`: its number among the event's changes. `half`: it is one of the two changes of an UPDATE of the key.
    """

    change: KeyChange
    event: Event
    number: int
    half: bool


@dataclass(frozen=True, slots=True)
class LeftOutChange:
    """A change that is not applied in any case: its fate, or those of an UPDATE of the key (`half`).

    Each fate has the row event of the INSERT that `Fate.behind` names, or None.
    """

    fates: tuple[tuple[Fate, Event | None], ...]
    half: bool

    def outcome(self, plan: BatchPlan) -> MoveOutcome | None:
        """Return the outcome in that batch; None: it is applied. An UPDATE is left out only if both halves are."""
        left = [fate.outcome for fate, behind in self.fates if behind is None or not _has(plan, behind)]
        if not left:
            return None
        return MoveOutcome.LEFT_OUT if left == [MoveOutcome.LEFT_OUT] * (1 + self.half) else MoveOutcome.CLASH


LeftOutChanges = Mapping[Event, Mapping[int, LeftOutChange]]
"""By row event and the change's number in it."""


def decided(keys: Iterable[list[SharedChange]]) -> LeftOutChanges:
    """Return the changes that are not applied in any case. `keys` has the changes of each key. Pure."""
    found: dict[tuple[Event, int], LeftOutChange] = {}
    for changes in keys:
        events = {one.change.order: one.event for one in changes}
        known = fates(one.change for one in changes)
        for one in changes:
            if (fate := known.get(one.change.order)) is not None:
                behind = events[fate.behind] if fate.behind is not None else None
                before = found.get((one.event, one.number))
                others = before.fates if before is not None else ()
                found[one.event, one.number] = LeftOutChange((*others, (fate, behind)), one.half)
    by_event: dict[Event, dict[int, LeftOutChange]] = {}
    for (event, number), left in found.items():
        by_event.setdefault(event, {})[number] = left
    return by_event


@dataclass(frozen=True, slots=True)
class UnsureChange:
    """A change of `key` that may remove the row that another shard has under `other`, for the target an equal key."""

    change: SharedChange
    key: bytes
    other: bytes


def unsure(changes: Collection[tuple[bytes, SharedChange]]) -> Iterator[UnsureChange]:
    """Yield the changes that are due now and may remove a row that has moved to an equal key of another shard. Pure.

    `changes` are those of keys that have different texts and may be equal for the target (`sync.sharding.equal_keys`),
    each with its key, in the order of the log. A change is yielded if its shard has no row of its key in the end, and
    another shard has inserted a row of another text that stays, and that the target has by then.
    """
    last = {(one.change.table, key): one.change.lives for key, one in changes}
    born: dict[tuple[TableName, bytes], KeyChange] = {}
    for key, one in changes:
        if one.change.inserts and last[one.change.table, key]:
            born[one.change.table, key] = one.change
    for key, one in changes:
        change = one.change
        if change.when is not When.NOW or last[change.table, key]:
            continue
        for (table, other), insert in born.items():
            ahead = insert.when is When.AHEAD or (insert.when is When.NOW and insert.order < change.order)
            if table != change.table and other != key and ahead:
                yield UnsureChange(one, key, other)
                break


def without(plan: BatchPlan, changes: LeftOutChanges) -> BatchPlan:
    """Return the batch of a re-sync without the changes that the target must not get any more.

    Raises ShardError SHARD-031 for a change that can't be left out, because two shards have the row.
    """
    names = {table.table.name for table in plan.tables}
    files = {piece.file for piece in plan.ranges}
    if not any(table in names and file in files for table, file, _ in changes):
        return plan
    return without_moved(plan, runs([seq for piece in plan.ranges for seq in _left_out(plan, piece, changes)]))


def _left_out(plan: BatchPlan, piece: Range, changes: LeftOutChanges) -> Iterator[int]:
    """Yield the numbers of a range's row images that are left out."""
    skipped = seqs_for(OPERATOR, plan.filters)
    for table, images in decode(plan, piece, offsets=True)[0]:
        seqs, offsets, numbers = numbered(batch_of(images))
        for offset in np.unique(offsets):
            known = changes.get((table.table.name, piece.file, int(offset)), {})
            there = {number: left.outcome(plan) for number, left in known.items()}
            outcomes = {number: outcome for number, outcome in there.items() if outcome is not None}
            places = np.flatnonzero((offsets == offset) & np.isin(numbers, list(outcomes)))
            for place in places[~within(seqs[places], skipped)]:
                if outcomes[int(numbers[place])] is MoveOutcome.CLASH or piece.part is not None:
                    where = Where(plan.source, str(table.table.name), str(Position(piece.file, int(offset))))
                    raise ShardError("SHARD-031", where, values={"target": str(table.target.name)})
                yield int(seqs[place])


def _has(plan: BatchPlan, event: Event) -> bool:
    """Return whether a batch has the row event. Of the table's window all in the batch's ranges is applied."""
    _, file, offset = event
    return any(piece.file == file and piece.start <= offset < piece.end for piece in plan.ranges)
