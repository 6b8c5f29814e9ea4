"""Safe mode: when it is on, and why. No I/O; times are seconds of a monotonic clock.

| found when sync begins | `exactly-once` | `at-least-once` |
|---|---|---|
| `safe-mode: true` | on throughout | on throughout |
| an exit point that is the checkpoint itself | off | off |
| an exit point elsewhere | on until it is passed | on until it is passed |
| the same, and `safe-mode-duration: 0s` | SYNC-045, DM's 36071 | SYNC-045 |
| none, and a checkpoint that isn't exact | on until the source's current end is passed | on for the duration |
| none, and a new task | off | on for the duration |

A checkpoint is exact if the target has no change after it, except those up to the exit point. DM and `at-least-once`
write checkpoints that are not exact.

With exactly-once delivery a change is applied again only if it has no receipt: after a dump without a lock, after
copies that overwrote one another's rows (`read_together`), and after a checkpoint that isn't exact. In the last case DM
keeps safe mode on for two checkpoint intervals. Time does not show whether the log has passed all changes that were
applied before. The end of the source's binlog does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from unshard.errors import SyncError, Where
from unshard.model.position import Location, Position
from unshard.model.table import TableName
from unshard.sync.batch.plan import TablePlan
from unshard.target.checkpoint import Checkpoint, ExitPoint

DUMP, TAKEOVER, ERROR = "dump", "takeover", "error"
_CAUSES = {
    DUMP: "the dump was taken without a lock",
    TAKEOVER: "the checkpoint may be behind the target",
    ERROR: "the task ended with an error",
}


@dataclass(frozen=True, slots=True)
class Delivery:
    """The delivery options of the task file: `delivery`, `safe-mode`, `safe-mode-duration` in seconds."""

    exactly_once: bool = True
    safe_mode: bool = False
    duration: float = 60.0


@dataclass(frozen=True, slots=True)
class SafeMode:
    """The reasons for which safe mode is on.

    Args:
        manual: the task file turns it on.
        exit_point: the location at which it may end.
        seconds: its duration, counted from the first change.
        ends: the time when the duration is over; None before the first change.
    """

    manual: bool = False
    exit_point: ExitPoint | None = None
    seconds: float = 0.0
    ends: float | None = None

    def reasons(self, at: Position, now: float) -> tuple[str, ...]:
        """Return why safe mode is on for a change that begins at `at`; empty: it is off."""
        found = []
        if self.manual:
            found.append("safe-mode: true")
        if self.exit_point is not None and at < self.exit_point.location.position:
            why = _CAUSES.get(self.exit_point.cause, "safemode_exit_point")
            found.append(f"{why}, until {self.exit_point.location.position}")
        if self.timed(now):
            found.append("safe-mode-duration after the start")
        return tuple(found)

    def timed(self, now: float) -> bool:
        """Return whether the duration after the start is running, or has not begun."""
        return self.seconds > 0 if self.ends is None else now < self.ends

    def first_change(self, now: float) -> SafeMode:
        """Start the clock with the first change that there is to apply."""
        return replace(self, ends=now + self.seconds) if self.ends is None else self

    def passed(self, at: Position) -> SafeMode:
        """Return the state after `at`: an exit point that is reached is forgotten."""
        done = self.exit_point is not None and at >= self.exit_point.location.position
        return replace(self, exit_point=None) if done else self

    def after_dump(self, at: Position) -> bool:
        """Return whether `at` lies in the time of a dump that was taken without a lock."""
        known = self.exit_point
        return known is not None and known.cause == DUMP and at < known.location.position

    def beyond(self, end: Location, cause: str) -> SafeMode:
        """Return the state with an exit point at `end` or later."""
        known = self.exit_point
        if known is not None and known.location.position >= end.position:
            return self
        return replace(self, exit_point=ExitPoint(end, cause))


def needs_bound(delivery: Delivery, checkpoint: Checkpoint) -> bool:
    """Return whether the source's present end must be the exit point: nothing else shows how far the target may be."""
    return delivery.exactly_once and not checkpoint.exact and checkpoint.exit_point is None


def read_together(copied: Checkpoint, route: Callable[[TableName], TableName]) -> Checkpoint:
    """Return the start with tables that merge into one read from its location, in safe mode to their last snapshot.

    This is for a load that overwrote rows: a row that moved from a table that was copied to one that was not yet is in
    both copies, and in the target once. If each table were read from its own snapshot on, the first would have a DELETE
    of the row, and the second no INSERT.
    """
    counts = Counter(route(name) for name in copied.tables)
    later = {
        name: state.location
        for name, state in copied.tables.items()
        if counts[route(name)] > 1
        and not (state.table is not None and state.table.is_absent)
        and state.location is not None
        and state.location.position > copied.location.position
    }
    if not later:
        return copied
    tables = {
        name: replace(state, location=copied.location) if name in later else state
        for name, state in copied.tables.items()
    }
    last = max(later.values(), key=lambda location: location.position)
    return replace(copied, tables=tables, exit_point=ExitPoint(last, DUMP))


def begin(delivery: Delivery, checkpoint: Checkpoint, source: str) -> SafeMode:
    """Return the state of safe mode at the start, by the module's table. Raises SyncError SYNC-045."""
    mode = SafeMode(manual=delivery.safe_mode)
    exit_point, at = checkpoint.exit_point, checkpoint.location.position
    if exit_point is not None and exit_point.location.position > at:
        if not delivery.duration:
            values = {"exit": str(exit_point.location.position)}
            raise SyncError("SYNC-045", Where(source=source, position=str(at)), values=values)
        return replace(mode, exit_point=exit_point)
    if delivery.exactly_once or (exit_point is not None and exit_point.location.position == at):
        return mode
    return replace(mode, seconds=delivery.duration)


def check_repeatable(tables: Iterable[TablePlan], delivery: Delivery, where: Where, *, safe: bool) -> None:
    """Refuse tables whose changes can't be applied again without harm. Raises SyncError SYNC-043 (no key).

    With at-least-once delivery a table without a key is refused at all times: after a kill its rows would be doubled
    unnoticed. Row images that lack columns are refused in step *encode* (SYNC-044).
    """
    keyless = sorted(str(plan.table.name) for plan in tables if plan.target.keyless)
    if keyless and (safe or not delivery.exactly_once):
        raise SyncError("SYNC-043", Where(where.source, keyless[0], where.position))
