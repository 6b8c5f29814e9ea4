"""One source's relay, shared by its subtasks: one writer, and a reader for each of them.

| what happens | then |
|---|---|
| a subtask begins | its reader joins; the relay is started where it doesn't run |
| it needs files from before those that are there | they are fetched beside (`relay.backfill`); nobody else waits |
| it ends | its reader leaves; with the last one the relay stops, unless it is to run on |
| another server answers | the readers get RELAY-008, one by one, and join the relay of the new server |
| its file names another `relay-dir` | readers read on in the present folder; after the last one the new one counts |
| the relay is paused | readers that have come to its end wait |
| an error stops it | its readers get the error, and leave; the first to come back begins it anew, at its own position |

A reader stays with the relay of the server with which it began: the rest of it can be read to its end, and names of two
servers never meet.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Lock, RLock

from unshard.api.status import Stage
from unshard.config.source import SourceConfig
from unshard.errors import RelayError, UnshardError, Where
from unshard.log import logger
from unshard.model.position import Location, Position
from unshard.mysql.connection import session
from unshard.mysql.endpoint import to_endpoint
from unshard.mysql.flavour import identify
from unshard.relay.backfill import Backfill
from unshard.relay.log import EarlierLog, RelayLog
from unshard.relay.start import file_with_gtids
from unshard.relay.unit import RelayUnit, RelayUnitStatus
from unshard.source.upstream import Upstream
from unshard.worker.auto_resume import Resumption, makes_sense, utc_now


@dataclass(slots=True)
class SharedRelay:
    """The relay of one source, shared by its subtasks. All methods may be called by any thread.

    `folder` is that of the unit that runs, or else of the next one. `purging` is locked while files are deleted.
    """

    source: SourceConfig
    folder: Path
    unit: RelayUnit | None = None
    wanted: Stage = Stage.STOPPED
    resumption: Resumption = field(default_factory=Resumption)
    purging: Lock = field(default_factory=Lock)
    _backfill: Backfill | None = None
    _readers: list[RelayReader] = field(default_factory=list)
    _lock: RLock = field(default_factory=RLock)

    @classmethod
    def of(cls, source: SourceConfig) -> SharedRelay:
        """Return the relay of that source, in its folder under the directory in its file."""
        return cls(source, _folder_of(source))

    def reader(self, start: Location | None, upstream: str) -> RelayReader:
        """Return a reader that begins at `start` of the server `upstream`; None: at the source's present end."""
        return RelayReader(self, start, upstream)

    def keep(self, wanted: Stage) -> None:
        """Set the wanted stage. Idempotent.

        Running: go on also without readers. Stopped: only for readers. Paused: not even for them.
        """
        with self._lock:
            if wanted is self.wanted:
                return
            if wanted is Stage.RUNNING and self.unit is None:
                self._begin(None, None)
            self.wanted = wanted
            if wanted is Stage.RUNNING or (wanted is Stage.STOPPED and self._readers):
                self._start()
            elif self.unit is not None:
                self.unit.stop()

    def tick(self) -> None:
        """Start the relay that is to be kept again, once its wait after an error is over. Called every half second.

        One that is there for its readers is started again by them.
        """
        with self._lock:
            status = self.reading()
            if status is None or self.wanted is not Stage.RUNNING:
                return
            now, checker, trouble = utc_now(), self.source.checker, trouble_of(status)
            if status.stage == "Running":
                self.resumption = self.resumption.ran(now, checker)
            elif self.resumption.is_due(now, checker):
                self.resumption = self.resumption.resumed()
                logger("relay", source=self.source.source_id).info("dispatch auto resume")
                self._start()
            elif self.resumption.due is None and checker.check_enable and (trouble is None or makes_sense(trouble)):
                self.resumption = self.resumption.failed(now, checker)

    def resume(self) -> None:
        """Go on at once after an error, where it is to run.

        Without readers it begins anew, from what the source still has: nobody waits for what lies between.
        """
        with self._lock:
            if trouble_of(self.reading()) is None or self.wanted is Stage.PAUSED:
                return
            if self._readers or self.wanted is Stage.RUNNING:
                self.resumption = Resumption()
                if not self._readers:
                    self._begin(None, None)
                self._start()

    def close(self) -> None:
        """Stop for good; what was received is durable when this returns. Idempotent."""
        with self._lock:
            self.wanted = Stage.STOPPED
            if self._backfill is not None:
                self._backfill.stop()
            if self.unit is not None:
                self.unit.stop()

    def renew(self, source: SourceConfig) -> None:
        """Use another source file from now on; readers go on reading, by its login from the next connection on.

        Another `relay-dir` counts from the next beginning of the relay on: at once without readers, else when the last
        of them has left. What is in the present folder stays there.

        Raises ConfigError where a secret of it can't be read; the file before stays in use.
        """
        with self._lock:
            endpoint = to_endpoint(source.database)
            self.source, wanted = source, self.wanted
            if self._backfill is not None:
                self._backfill.renew(endpoint)
            if self._readers and self.unit is not None:
                self.unit.renew(source, endpoint)
            else:
                self._end()
                self.keep(wanted)

    def reading(self) -> RelayUnitStatus | None:
        """Return the relay's own figures; None before its first start."""
        return self.unit.status() if self.unit is not None else None

    @property
    def stage(self) -> Stage:
        """Stage of the relay; `Pausing` while a pause waits for the end of what is being received."""
        status = self.reading()
        if self.wanted is Stage.PAUSED:
            return Stage.PAUSING if status is not None and status.stage == "Running" else Stage.PAUSED
        return Stage(status.stage) if status is not None else Stage.STOPPED

    def join(self, reader: RelayReader, upstream: str, start: Location | None) -> RelayUnit:
        """Return the unit that follows `upstream`, for a reader."""
        with self._lock:
            unit = self.unit
            ended = not self._readers and trouble_of(self.reading()) is not None  # perhaps where it is no use to go on
            if unit is None or unit.expected != upstream or ended:
                unit = self._begin(start, upstream)
            if reader not in self._readers:
                self._readers.append(reader)
            if self.wanted is not Stage.PAUSED:
                self._start()
            return unit

    def leave(self, reader: RelayReader) -> None:
        """Remove a reader; the relay stops after the last one, unless it is wanted without readers."""
        with self._lock:
            if reader in self._readers:
                self._readers.remove(reader)
            if self._readers or self.unit is None:
                return
            if self.folder != _folder_of(self.source):
                wanted = self.wanted
                self._end()
                self.keep(wanted)
            elif self.wanted is not Stage.RUNNING:
                self.unit.stop()

    def fetch(self, log: RelayLog, file: str) -> Backfill:
        """Get the files from `file` on that stand before those of `log`, in a thread; returns at once."""
        with self._lock:
            if self._backfill is None or self._backfill.log.folder != log.folder:
                if self._backfill is not None:
                    self._backfill.stop()
                self._backfill = Backfill(self.source.source_id, to_endpoint(self.source.database), log)
            self._backfill.want(file)
            return self._backfill

    def _end(self) -> None:
        """Stop the unit and forget it; the next one begins anew, in the folder of the present source file."""
        if self.unit is not None:
            self.unit.stop()
            self.unit, self.wanted = None, Stage.STOPPED
        self.folder = _folder_of(self.source)

    def _begin(self, start: Location | None, upstream: str | None) -> RelayUnit:
        """Start a unit in place of the one before. The earlier files stay, and their readers keep their positions."""
        if self.unit is not None:
            self.unit.stop()
        self.folder = _folder_of(self.source)
        endpoint = to_endpoint(self.source.database)
        gapless = self.wanted is Stage.RUNNING
        self.unit = RelayUnit(self.source, endpoint, self.folder, start, upstream=upstream, gapless=gapless)
        return self.unit

    def _start(self) -> None:
        if self.unit is not None:
            try:
                self.unit.start()
            except RelayError as error:  # another process holds the folder
                if not self._readers:
                    logger("relay", source=self.source.source_id).error("relay not started", error=str(error))
                else:
                    raise


@dataclass(slots=True, eq=False)
class RelayReader:
    """A subtask's access to the shared relay, as a `SubtaskRelay`. Used by one thread, `status` by any."""

    shared: SharedRelay
    _begin: Location | None
    _upstream: str
    _unit: RelayUnit | None = None
    _held: bool = False
    _backfill: Backfill | None = None

    @property
    def expected(self) -> str | None:
        """Server that the reader follows."""
        return self._upstream

    def start(self) -> None:
        """Start the relay, if it does not run, and read from it."""
        with self.shared.purging:  # what was there before may be gone then, and is fetched again
            unit = self.shared.join(self, self._upstream, self._begin)
        if unit is not self._unit:
            self._unit, self._held, self._backfill = unit, False, None

    def stop(self) -> None:
        """Read no more for now. The relay stops if nobody else reads."""
        self.shared.leave(self)

    def begin_at(self, start: Location | None, upstream: str) -> None:
        """Let the next `start` begin at `start` of another server."""
        self._begin, self._upstream = start, upstream
        self._unit, self._held, self._backfill = None, False, None

    def check(self) -> None:
        """Raise what stopped the relay or the fetching of older files; RELAY-008 where it follows another server."""
        unit = self._following
        if self.shared.unit is not unit:
            found = self.shared.unit.expected if self.shared.unit is not None else None
            values = {"expected": self._upstream, "found": found or "another server"}
            raise RelayError("RELAY-008", Where(source=self.shared.source.source_id), values=values)
        unit.check()
        if self._backfill is not None:
            self._backfill.check()

    @property
    def log(self) -> RelayLog:
        """Relay log of the unit that is followed."""
        return self._following.log

    @property
    def written(self) -> Position:
        """Position up to which the relay has written."""
        return self._following.written

    @property
    def upstream(self) -> str:
        """Server of the unit that is followed."""
        return self._following.upstream

    def earlier(self, uuid: str, needed: Iterable[Position]) -> EarlierLog:
        """Return the files of an earlier server, from the oldest position that is needed."""
        return self._following.earlier(uuid, needed)

    def wait_for(self, position: Position, timeout: float) -> bool:
        """Return whether the log from the reader's beginning up to `position` can be read within `timeout` seconds."""
        unit, until = self._following, time.monotonic() + timeout
        if unit.wait_for(position, timeout) and self._has_beginning(unit):
            return True
        time.sleep(max(0.0, until - time.monotonic()))  # a relay that doesn't run answers at once
        return False

    def status(self) -> RelayUnitStatus | None:
        """As the unit's, but `Paused` without an error while a human has paused the relay.

        None before it has joined a relay, and while it changes over to that of another server.
        """
        unit = self._unit
        if unit is None:
            return None
        return replace(unit.status(), stage="Paused") if self.shared.wanted is Stage.PAUSED else unit.status()

    def sighting(self) -> Upstream | None:
        """As the unit's; None before it has joined a relay, and once that follows another server."""
        return self._unit.sighting() if self._unit is not None and self.shared.unit is self._unit else None

    @property
    def _following(self) -> RelayUnit:
        if self._unit is None:
            raise RelayError("RELAY-019", Where(source=self.shared.source.source_id))
        return self._unit

    def _has_beginning(self, unit: RelayUnit) -> bool:
        if self._held:
            return True
        file = self._begin.position.file if self._begin is not None else ""
        if not file and self._begin is not None:
            with session(to_endpoint(self.shared.source.database), "source") as connection:
                server = identify(connection)
                file = file_with_gtids(connection, server, self._begin.gtid, self.shared.source.source_id)
        files = unit.log.files()
        self._held = not file or not files or Position(file).number >= Position(files[0]).number
        self._backfill = None if self._held else self.shared.fetch(unit.log, file)
        return self._held


def _folder_of(source: SourceConfig) -> Path:
    return Path(source.relay_dir).absolute() / source.source_id


def trouble_of(status: RelayUnitStatus | None) -> UnshardError | None:
    """Return the error that has paused a relay; None where there is none."""
    return status.trouble if status is not None and status.stage == "Paused" else None
