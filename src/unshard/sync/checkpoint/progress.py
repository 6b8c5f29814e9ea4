"""Where a source stands: what is read and applied, how much of it is durable, and whether that may be in doubt."""

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
    """The place of one source's sync, in memory and in the target. Used by the sync unit's thread.

    `at` is how far the log is read and applied, `saved` the checkpoint. `in_hand` is the end of a batch without
    receipts that is being applied. `take_changes` gives what the checkpoint has to record of tables, once.
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
        """Be at a checkpoint. Raises SyncError SYNC-045."""
        self.turn(safe_mode.begin(self.delivery, checkpoint, self.source))
        self.in_hand = None
        self.at = self.saved = checkpoint.location
        self._saved_time = time.monotonic()
        self._tell()

    def arrive(self, end: Location) -> None:
        """All before `end` is done with; the checkpoint follows when its interval is over, or safe mode ends."""
        self.at = end
        if (safe := self.safe.passed(end.position)) != self.safe:
            self.turn(safe)
            self.move(end)  # now: after a crash the exit point would else be taken for good, and what follows for new
        self._tell()
        self.save_in_time()

    def idle(self) -> None:
        """Nothing lies behind this place for now: the clock goes on."""
        self._tell()
        self.save_in_time()

    def arrived_durably(self, end: Location) -> None:
        """The same where the transaction that finished it has moved the checkpoint."""
        self.saved = end
        self.arrive(end)

    def close(self, end: Location, account: Account, xid: str = "", also: Also = nothing) -> None:
        """Move the checkpoint to the end of the open batch, with what became of it."""
        self.turn(self.safe.passed(end.position))
        self.store.close(end, self.take_changes(end.position), account, xid, also=also)
        self._saved_at(end)

    def move(self, to: Location, also: Also = nothing) -> None:
        """Move the checkpoint, now."""
        self.store.move(to, self.take_changes(to.position), also=also)
        self._saved_at(to)

    def save(self) -> None:
        """Make a move without receipts durable; at most so much is read again after a crash."""
        if self.saved != self.at:
            self.move(self.at)
        self._saved_time = time.monotonic()

    def save_in_time(self) -> None:
        if time.monotonic() - self._saved_time > self.flush_seconds:
            self.save()

    def cross_xa(self, end: Location, prepared: PreparedXa | None = None, xid: str = "") -> None:
        """Move the checkpoint, at once, over a place where an XA transaction is prepared or ends."""
        self.store.move(end, self.take_changes(end.position), prepared, xid)
        self._saved_at(end)
        self.arrive(end)

    def turn(self, safe: SafeMode) -> None:
        self.safe = safe
        self.store.exit_point = safe.exit_point

    def apply_in_doubt(self, begin: Position, end: Location) -> None:
        """Changes from `begin` to `end` are applied now, and nothing but the next checkpoint will tell that they are.

        Behind the exit point safe mode is off, also after a crash: so it must not lie inside of them.
        """
        exit_point = self.safe.exit_point
        if exit_point is not None and begin < exit_point.location.position < end.position:
            self.turn(self.safe.beyond(end, exit_point.cause))
            self.move(self.at)
        self.in_hand = end

    def leave(self) -> None:
        """The end in good order: at least once, an exit point at the checkpoint says that nothing lies behind it."""
        if not self.delivery.exactly_once and not self.safe.timed(time.monotonic()):
            self.turn(self.safe.beyond(self.at, ""))
            self.move(self.at)
        self.save()

    def leave_by(self, error: UnshardError) -> None:
        """The end by an error: at least once, the exit point tells how far the target may be.

        Without it, for the target may be out of reach or another process own the source, the next start counts on
        the clock.
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
        # the place at last: who sees it takes all else that is told for that of this place
        self.meter.safe_mode = "; ".join(self.safe.reasons(self.at.position, time.monotonic()))
        self.meter.location = self.at

    def _saved_at(self, place: Location) -> None:
        self.saved, self._saved_time = place, time.monotonic()
        self.meter.saved(self._saved_time)
