"""The progress of one source: its read, applied and durable positions, and a batch that may be applied in part."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from unshard.errors import UnshardError
from unshard.log import logger
from unshard.model.position import Location, Position
from unshard.model.table import TableName
from unshard.sync.batch.row_counts import Account
from unshard.sync.checkpoint import safe_mode
from unshard.sync.checkpoint.safe_mode import Delivery, SafeMode
from unshard.sync.checkpoint.store import Also, CheckpointStore, nothing
from unshard.sync.status import Meter
from unshard.target.checkpoint import Checkpoint, TableCheckpoint
from unshard.target.prepared_xa import PreparedXa


@dataclass(slots=True)
class SyncProgress:
    """The progress of one source's sync, in memory and in the target. Used by the sync unit's thread.

    Args:
        take_changes: returns, once, the changes of tables that the checkpoint must record.
        flush_seconds: the interval between two checkpoints.
        safe: the state of safe mode.
        in_hand: the end of a batch without receipts that is being applied.
        at: the location up to which the log is read and applied.
        saved: the location of the checkpoint.
    """

    source: str
    store: CheckpointStore
    take_changes: Callable[[Position], Mapping[TableName, TableCheckpoint]]
    flush_seconds: float
    delivery: Delivery
    meter: Meter
    safe: SafeMode = field(default_factory=SafeMode)
    in_hand: Location | None = None
    at: Location = field(init=False)
    saved: Location = field(init=False)
    _saved_time: float = 0.0

    def restore(self, checkpoint: Checkpoint) -> None:
        """Go to a checkpoint. Raises SyncError SYNC-045."""
        self.turn(safe_mode.begin(self.delivery, checkpoint, self.source))
        self.in_hand = None
        self.at = self.saved = checkpoint.location
        self._saved_time = time.monotonic()
        self._tell()

    def arrive(self, end: Location) -> None:
        """Mark all before `end` as applied. The checkpoint follows when its interval is over or safe mode ends."""
        self.at = end
        if (safe := self.safe.passed(end.position)) != self.safe:
            self.turn(safe)
            # at once: after a crash the exit point on record would say that what follows was not applied before
            self.move(end)
        self._tell()
        self.save_in_time()

    def idle(self) -> None:
        """Mark that nothing comes after this location for now. The checkpoint follows when its interval is over."""
        self._tell()
        self.save_in_time()

    def arrived_durably(self, end: Location) -> None:
        """Do as `arrive` where the transaction that finished the work has moved the checkpoint."""
        self.saved = end
        self.arrive(end)

    def close(self, end: Location, account: Account, xid: str = "", also: Also = nothing) -> None:
        """Move the checkpoint to the end of the open batch, with the batch's row counts."""
        self.turn(self.safe.passed(end.position))
        self.store.close(end, self.take_changes(end.position), account, xid, also=also)
        self._saved_at(end)

    def move(self, to: Location, also: Also = nothing) -> None:
        """Move the checkpoint at once."""
        self.store.move(to, self.take_changes(to.position), also=also)
        self._saved_at(to)

    def save(self) -> None:
        """Move the checkpoint to `at`. It bounds what is read again after a crash."""
        if self.saved != self.at:
            self.move(self.at)
        self._saved_time = time.monotonic()

    def save_in_time(self) -> None:
        """Save if the checkpoint's interval is over."""
        if time.monotonic() - self._saved_time > self.flush_seconds:
            self.save()

    def cross_xa(self, end: Location, prepared: PreparedXa | None = None, xid: str = "") -> None:
        """Move the checkpoint at once over the position where an XA transaction is prepared or ends."""
        self.store.move(end, self.take_changes(end.position), prepared, xid)
        self._saved_at(end)
        self.arrive(end)

    def turn(self, safe: SafeMode) -> None:
        """Set the state of safe mode, and the exit point that the next checkpoint records."""
        self.safe = safe
        self.store.exit_point = safe.exit_point

    def apply_in_doubt(self, begin: Position, end: Location) -> None:
        """Note that changes from `begin` to `end` are being applied, and that only the next checkpoint will have it.

        After the exit point safe mode is off, also after a crash, so the exit point must not lie between `begin` and
        `end`.
        """
        exit_point = self.safe.exit_point
        if exit_point is not None and begin < exit_point.location.position < end.position:
            self.turn(self.safe.beyond(end, exit_point.cause))
            self.move(self.at)
        self.in_hand = end

    def leave(self) -> None:
        """End in good order.

        With at-least-once delivery, an exit point at the checkpoint records that nothing after the checkpoint is
        applied.
        """
        if not self.delivery.exactly_once and not self.safe.timed(time.monotonic()):
            self.turn(self.safe.beyond(self.at, ""))
            self.move(self.at)
        self.save()

    def leave_by(self, error: UnshardError) -> None:
        """End by an error. With at-least-once delivery, record an exit point up to which the target may be.

        If that fails, because the target is out of reach or another process owns the source, the next start uses the
        clock.
        """
        if self.delivery.exactly_once:
            return
        if not self.safe.timed(time.monotonic()):
            self.turn(self.safe.beyond(self.in_hand or self.at, safe_mode.ERROR))
        try:
            self.move(self.at)
        except UnshardError as failure:
            log = logger("sync", source=self.source)
            log.warning("no exit point recorded", error=str(failure), after=str(error))

    def _tell(self) -> None:
        # the location comes last: a reader who sees it takes the other values as of this location
        self.meter.safe_mode = "; ".join(self.safe.reasons(self.at.position, time.monotonic()))
        self.meter.location = self.at

    def _saved_at(self, place: Location) -> None:
        self.saved, self._saved_time = place, time.monotonic()
        self.meter.saved(self._saved_time)
