"""One source's part of a task: relay, dump, load, sync, each resumable, in that order.

| mode | relay | dump, load | sync |
|---|---|---|---|
| full | | yes | |
| dump | | dump only | |
| load | | load only, of any tool's dump | |
| incremental | yes | | from `meta`, or the checkpoint |
| all | from before the dump | yes | from the dump's location, or the checkpoint |

The relay starts first, so an upstream that purges its binlogs during the copy breaks nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from threading import Event, Thread
from typing import Protocol

from unshard.crash_point import reach
from unshard.ddl.in_snapshot import DdlInSnapshot
from unshard.dump.unit import DumpUnit
from unshard.errors import EngineError, RelayError, SyncError, UnshardError, Where
from unshard.load.unit import LoadUnit
from unshard.log import logger
from unshard.model.position import Location
from unshard.model.progress import TableProgress
from unshard.relay.unit import ANOTHER_SERVER, LONGEST_WAIT_SECONDS, RelayUnitStatus
from unshard.retry import pauses
from unshard.source.upstream import Upstream
from unshard.sync.lag import FRESH_SECONDS, Sighting
from unshard.sync.source_log.reader import Relay
from unshard.sync.unit import SyncUnit
from unshard.target.checkpoint import Checkpoint
from unshard.validation.on_demand import OnDemandValidator
from unshard.worker.followed_mark import FollowedMark
from unshard.worker.start import StartPoint
from unshard.worker.status import SubtaskStatus
from unshard.worker.watch import TargetWatch, UpstreamWatch


class SubtaskRelay(Relay, Protocol):
    """The relay as a subtask uses it: a relay unit of its own, or a shared one."""

    @property
    def expected(self) -> str | None:
        """The uuid of the server that it is to follow."""

    def start(self) -> None:
        """Begin, and return at once; also again after `stop`."""

    def stop(self) -> None:
        """Read no more for this subtask for now. Idempotent."""

    def begin_at(self, start: Location | None, upstream: str) -> None:
        """Follow that server from there, from the next `start` on."""

    def status(self) -> RelayUnitStatus | None:
        """Return the present state; None where no server is followed yet. Takes little time."""

    def sighting(self) -> Upstream | None:
        """Return the end of the source's log as the relay's stream shows it, without asking a server."""


@dataclass(slots=True)
class Subtask:
    """The chain of units for one source. `run` is called by one thread, `status` by one other.

    Units that the mode doesn't have are None. `worked` is the last unit that was entered, "" before the first.
    `copies`: the dump or the load has been entered, so the dump is on this worker's disk. While `alone` it doesn't
    claim the source again, whoever has claimed it by now. `first` adds to the start of a task without a copy the
    structures with which it begins; None when stopped. `followed`: the target has had a checkpoint of this subtask,
    so one that lacks it has lost it, and an incremental task does not begin anew by itself. `mark` keeps that for later
    processes (`unshard run`). `since` (monotonic) and
    `entered` (UTC): when the present unit was entered.
    """

    source: str
    beginning: StartPoint
    relay: SubtaskRelay | None
    dump: DumpUnit | None
    load: LoadUnit | None
    sync: SyncUnit | None
    watch: UpstreamWatch | None = None
    interrupt: Callable[[], None] = lambda: None
    interrupt_sync: Callable[[], None] = lambda: None
    find_source: Callable[[], tuple[Location | None, str]] | None = None
    target_watch: TargetWatch | None = None
    validation: OnDemandValidator | None = None
    first: Callable[[Checkpoint, Event], Checkpoint | None] | None = None
    unit: str = "starting"
    worked: str = ""
    copies: bool = False
    broken_off: bool = False
    alone: bool = False
    followed: bool = False
    mark: FollowedMark | None = None
    since: float = field(default_factory=time.monotonic)
    entered: datetime = field(default_factory=lambda: datetime.now(UTC))
    copied: tuple[SubtaskStatus, ...] = ()
    copied_tables: tuple[TableProgress, ...] = ()

    def run(self, stop: Event) -> None:
        """Run every unit that is not finished; returns at the end of a full copy, or once `stop` is set.

        `broken_off` is set then if a batch was ended by `cancel_sync`: the next start finishes it.
        Raises the UnshardError that stopped a unit. May be called again, also in another process.
        """
        try:
            self._run_on_any(stop)
        except EngineError:
            if not stop.is_set():
                raise
            self.broken_off = self.unit == "sync"
        finally:
            if self.relay is not None:
                self.relay.stop()
        self._enter("stopped" if stop.is_set() else "finished")

    @property
    def claimed(self) -> bool:
        """True if it follows the binlog by a claim of the source that it has made."""
        return self.unit == "sync" and self.sync is not None and self.sync.meter.location is not None

    def cancel_copy(self) -> bool:
        """End a dump or load under way, once `stop` is set: both go on from their last durable piece another time.

        Whether there is one.
        """
        if self.unit in ("dump", "load"):
            self.interrupt()
            return True
        return False

    def cancel_sync(self) -> None:
        """End the batch under way, once `stop` is set and its time is over. It stays open with its receipts."""
        if self.unit == "sync":
            self.interrupt_sync()

    def status(self, *, asks: bool = True) -> SubtaskStatus:
        """Return the status of the unit that runs, also after its end, whether stopped or failed.

        The source goes on meanwhile. Unless it `asks`, no server is asked anything: what is known is told.
        """
        return replace(self._reading(asks=asks), copied=self.copied)

    def look_around(self) -> None:
        """Ask the target what holds up a step that takes long, if that is due, and wait for no answer."""
        if (begun := self._step_in_target()) and self.target_watch is not None:
            self.target_watch.begin(begun)

    def _reading(self, *, asks: bool) -> SubtaskStatus:
        seconds = time.monotonic() - self.since
        if self.unit == "dump" and self.dump is not None:
            return SubtaskStatus(self.source, "dump", seconds, progress=self.dump.progress())
        if self.unit == "load" and self.load is not None:
            return self._loading(self.load, seconds, asks=asks)
        if self.sync is not None and self.sync.meter.location is not None:
            return self._following(self.sync, seconds, asks=asks)
        return SubtaskStatus(self.source, self.unit, seconds, note=self._note(asks=asks))

    def tables(self) -> tuple[TableProgress, ...]:
        """Return each table's progress in the copy, also after its end, as it is known. No server is asked."""
        if self.unit == "dump" and self.dump is not None:
            return self.dump.tables()
        if self.unit == "load" and self.load is not None:
            return self.load.tables() or self.copied_tables
        return self.copied_tables

    def _run_on_any(self, stop: Event) -> None:
        """Run on, also where another server takes the source's place, as far as that may be (`find_source`)."""
        while True:
            try:
                return self._run(stop)
            except RelayError as error:
                if error.code != ANOTHER_SERVER or self.relay is None or self.find_source is None:
                    raise
                if error.values["expected"] != self.relay.expected:
                    raise  # it is the relay folder that is another server's
                logger("subtask", source=self.source).warning("another server answers", **error.values)
                self.relay.stop()
                if not self._begin_relay_anew(self.relay, self.find_source, stop):
                    return None

    def _begin_relay_anew(
        self, relay: SubtaskRelay, find_source: Callable[[], tuple[Location | None, str]], stop: Event
    ) -> bool:
        """Let the relay follow the server, from the start point; False: stopped while none could be asked."""
        for wait_seconds in pauses(LONGEST_WAIT_SECONDS):
            if stop.is_set():
                return False
            if self.alone:
                stop.wait(wait_seconds)
                continue
            try:
                relay.begin_at(*find_source())
                return True
            except UnshardError as error:
                if not error.retryable:
                    raise
            stop.wait(wait_seconds)
        return False

    def _run(self, stop: Event) -> None:
        checkpoint = self.beginning.checkpoint()
        if checkpoint is None and self.sync is not None:
            self._refuse_lost()
            self.sync.announce()
        if self.relay is not None:
            self._enter("relay")
            self.relay.start()
        start = self._copy(stop) if checkpoint is None else None
        if self.sync is not None and not stop.is_set():
            self._enter("sync")
            self.sync.begin(start)
            self.followed = True
            if self.mark is not None:
                self.mark.write()
            self._check_crossing(self.sync)
            forgetting = Thread(target=self.beginning.forget_dump, name=f"forget {self.source}")
            forgetting.start()  # it takes a minute for ten thousand tables
            try:
                if self.validation is not None:
                    self.validation.begin()
                self.sync.run(stop)
            finally:
                if self.validation is not None:
                    self.validation.end()
                forgetting.join()

    def _check_crossing(self, sync: SyncUnit) -> None:
        """Look once more, where another server answers, whether it has all that the target has. Raises RelayError 030.

        Until the claim an earlier process may have begun a batch that was not begun at the first look.
        """
        relay, find_source = self.relay, self.find_source
        if relay is not None and find_source is not None and sync.store.upstream() not in (None, relay.expected):
            find_source()

    def _refuse_lost(self) -> None:
        """Raise SyncError SYNC-080 where an incremental task would begin anew and leave out what came meanwhile.

        A task that copies may begin anew: its copy has everything. So may one of a new process whose file says where.
        """
        marked = self.mark is not None and self.beginning.meta_start is None and self.mark.is_written()
        if (self.followed or marked) and self.dump is None and self.load is None:
            meta = self.beginning.meta
            raise SyncError("SYNC-080", Where(self.source), values={"task": meta.task, "schema": meta.schema})

    def _loading(self, load: LoadUnit, seconds: float, *, asks: bool) -> SubtaskStatus:
        try:
            return SubtaskStatus(self.source, "load", seconds, progress=load.progress(asks=asks), note=load.note)
        except UnshardError:  # the load meets the same trouble, and decides
            return SubtaskStatus(self.source, "load", seconds, note="the target does not answer")

    def _following(self, sync: SyncUnit, seconds: float, *, asks: bool) -> SubtaskStatus:
        if asks:
            upstream = self.watch.look() if self.watch is not None else None
        else:
            upstream = self.relay.sighting() if self.relay is not None else None
        now, sighting = time.monotonic(), None
        if upstream is not None:
            sighting = Sighting(upstream.location.position, upstream.time, upstream.seen)
        reading = sync.meter.read(now, sighting)
        backlog = None
        if upstream is not None and reading.location is not None:
            backlog = upstream.backlog_bytes(reading.location.position)
        return SubtaskStatus(
            self.source,
            self.unit,
            seconds,
            sync=reading,
            backlog_bytes=backlog,
            backlog_at_least=upstream is not None and now - upstream.seen > FRESH_SECONDS,
            upstream=upstream,
            note=self._note(asks=asks),
            validation=self.validation.reading() if self.validation is not None else None,
        )

    def _note(self, *, asks: bool) -> str:
        return self._target_note(asks=asks) or self._relay_note()

    def _target_note(self, *, asks: bool) -> str:
        """Return the reason why the current step waits in the target; "" for none."""
        begun = self._step_in_target()
        if not begun or self.sync is None:
            return ""
        note = self.target_watch.note(begun, asks=asks) if self.target_watch is not None else ""
        return self.sync.store.waits or note

    def _step_in_target(self) -> float:
        """Return when the current step of the sync has begun (monotonic); 0 where it does not run."""
        if self.sync is None or self.unit != "sync" or self.sync.meter.doing == "stopped":
            return 0.0
        return max(self.since, self.sync.meter.step_since)

    def _relay_note(self) -> str:
        """Return a note on an exceptional state of the relay, while its log is followed; "" for none."""
        relay = self.relay.status() if self.relay is not None else None
        if relay is None or self.unit not in ("relay", "sync"):
            return ""
        if relay.stage == "Paused" and relay.trouble is None:
            return f"the relay is paused, `unshard ctl resume-relay -s {self.source}` lets it go on"
        if relay.reconnecting_since is not None:
            return f"source out of reach since {relay.reconnecting_since:%H:%M:%S} UTC"
        return ""

    def _copy(self, stop: Event) -> Checkpoint | None:
        """Dump and load; gives where the sync is to begin."""
        if self.dump is None and self.load is None:
            assert self.relay is not None, "a task that copies nothing follows the binlog"
            start = self.beginning.from_meta(self.relay, stop)
            return self.first(start, stop) if start is not None and self.first is not None else start
        if self.load is not None and self.beginning.is_copied():
            return self.beginning.after_load() if self.sync is not None else None
        if self.dump is not None:
            if self.load is not None:
                self.worked = "load"  # whose error it is; it is not entered yet
                self.beginning.check_dump()
            self._enter("dump")
            sync = self.sync
            if sync is None or self.load is None:
                self.dump.run()
            elif self.dump.run_apart_from(lambda copy: sync.crossed(copy.begin, copy.tables, stop)) is None:
                return None
            self._over()
        if self.load is None or stop.is_set():
            return None
        self._enter("load")
        copied: DdlInSnapshot | None = None
        if self.dump is not None and self.sync is not None:
            copied = self.sync.copied(self.beginning.copied(), stop)
            if copied is None:
                return None
        self.load.run(copied, partial(self._end_join, copied))
        self._over()
        reach("subtask-loaded")
        if self.sync is not None:
            return self.beginning.after_load()
        if self.dump is not None:
            self.beginning.forget_dump()
        return None

    def _end_join(self, copied: DdlInSnapshot | None) -> None:
        """Note that the target has the tables that the copy is loaded into."""
        if copied is not None and self.sync is not None and self.sync.groups is not None:
            self.sync.groups.end_join(copied.joined)
            self.sync.store.drop()

    def _over(self) -> None:
        """Keep what the copying unit has come to, and log it."""
        reading, self.copied_tables = self._reading(asks=True), self.tables()
        self.copied += (reading,)
        counts = {} if (done := reading.progress) is None else {"rows": done.rows_done, "tables": done.tables_done}
        seconds = round(reading.unit_seconds, 1)
        logger("subtask", source=self.source).info("unit is over", unit=reading.unit, seconds=seconds, **counts)

    def _enter(self, unit: str) -> None:
        self.unit, self.since, self.entered = unit, time.monotonic(), datetime.now(UTC)
        if unit in ("dump", "load", "sync"):
            self.worked, self.copies = unit, unit != "sync"
