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
from functools import partial
from threading import Event, Thread
from typing import Protocol

from unshard.crash_point import reach
from unshard.ddl.in_snapshot import DdlInSnapshot
from unshard.dump.unit import DumpUnit
from unshard.errors import EngineError, RelayError, UnshardError
from unshard.load.unit import LoadUnit
from unshard.log import logger
from unshard.model.position import Location
from unshard.model.progress import TableProgress
from unshard.relay.unit import ANOTHER_SERVER, LONGEST_WAIT_SECONDS, RelayUnitStatus
from unshard.retry import pauses
from unshard.sync.source_log.reader import Relay
from unshard.sync.status import Sighting
from unshard.sync.unit import SyncUnit
from unshard.target.checkpoint import Checkpoint
from unshard.validation.on_demand import OnDemandValidator
from unshard.worker.start import StartPoint
from unshard.worker.status import SubtaskStatus, TargetWatch, UpstreamWatch


class SubtaskRelay(Relay, Protocol):
    """The relay as a subtask has it: a unit of its own, or one that it shares."""

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


@dataclass(slots=True)
class Subtask:
    """The chain of units for one source. `run` is called by one thread, `status` by one other.

    Units that the mode doesn't have are None. `worked` is the last unit that it came to, "" before the first.
    `copies` once it has entered the dump or the load: the dump is on this worker's disk. While `alone` it doesn't claim
    the source again, whoever has it by now.
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
    unit: str = "starting"
    worked: str = ""
    copies: bool = False
    broken_off: bool = False
    alone: bool = False
    since: float = field(default_factory=time.monotonic)
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

    def status(self) -> SubtaskStatus:
        """Return the status of the unit that runs, also after its end, whether stopped or failed.

        The source goes on meanwhile.
        """
        return replace(self._reading(), copied=self.copied)

    def _reading(self) -> SubtaskStatus:
        seconds = time.monotonic() - self.since
        if self.unit == "dump" and self.dump is not None:
            return SubtaskStatus(self.source, "dump", seconds, progress=self.dump.progress())
        if self.unit == "load" and self.load is not None:
            return self._loading(self.load, seconds)
        if self.sync is not None and self.sync.meter.location is not None:
            return self._following(self.sync, seconds)
        return SubtaskStatus(self.source, self.unit, seconds, note=self._note())

    def tables(self) -> tuple[TableProgress, ...]:
        """Return each table's progress in the copy, also after its end. Raises TargetError, soon, while it loads."""
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
            self.sync.announce()
        if self.relay is not None:
            self._enter("relay")
            self.relay.start()
        start = self._copy(stop) if checkpoint is None else None
        if self.sync is not None and not stop.is_set():
            self._enter("sync")
            self.sync.begin(start)
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

    def _loading(self, load: LoadUnit, seconds: float) -> SubtaskStatus:
        try:
            return SubtaskStatus(self.source, "load", seconds, progress=load.progress())
        except UnshardError:  # the load meets the same trouble, and decides
            return SubtaskStatus(self.source, "load", seconds, note="the target does not answer")

    def _following(self, sync: SyncUnit, seconds: float) -> SubtaskStatus:
        upstream = self.watch.look() if self.watch is not None else None
        sighting = None
        if upstream is not None:
            sighting = Sighting(upstream.location.position, upstream.time, upstream.seen)
        reading = sync.meter.read(time.monotonic(), sighting)
        backlog = None
        if upstream is not None and reading.location is not None:
            backlog = upstream.backlog_bytes(reading.location.position)
        return SubtaskStatus(
            self.source,
            self.unit,
            seconds,
            sync=reading,
            backlog_bytes=backlog,
            upstream=upstream,
            note=self._note(),
            validation=self.validation.reading() if self.validation is not None else None,
        )

    def _note(self) -> str:
        return self._target_note() or self._relay_note()

    def _target_note(self) -> str:
        """Return the reason why the current step waits in the target; "" for none."""
        if self.sync is None or self.unit != "sync" or self.sync.meter.doing == "stopped":
            return ""
        begun = max(self.since, self.sync.meter.step_since)
        return self.sync.store.waits or (self.target_watch.note(begun) if self.target_watch is not None else "")

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
            return self.beginning.from_meta(self.relay, stop)
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
        reading, self.copied_tables = self._reading(), self._last_tables()
        self.copied += (reading,)
        counts = {} if (done := reading.progress) is None else {"rows": done.rows_done, "tables": done.tables_done}
        seconds = round(reading.unit_seconds, 1)
        logger("subtask", source=self.source).info("unit is over", unit=reading.unit, seconds=seconds, **counts)

    def _last_tables(self) -> tuple[TableProgress, ...]:
        try:
            return self.tables()
        except UnshardError:  # as in `_loading`; the copy itself is over
            return ()

    def _enter(self, unit: str) -> None:
        self.unit, self.since = unit, time.monotonic()
        if unit in ("dump", "load", "sync"):
            self.worked, self.copies = unit, unit != "sync"
