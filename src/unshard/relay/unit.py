"""The relay unit: one thread that keeps a source's binlog on disk, byte for byte, until it is stopped.

| what happens | then |
|---|---|
| the connection is cut, the source restarts, no heartbeat for two periods | connect again, with backoff, without end |
| the same replica id is used elsewhere | a new id, connect again |
| access denied, binlog purged, a hole, a bad checksum, disk full | stop; `check` raises the error |
| another server answers | the same; where that may be a fail-over, the relay does not report it as an error yet |
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal
from uuid import uuid4

from unshard.config.source import SourceConfig
from unshard.errors import RelayError, UnshardError, Where
from unshard.log import logger
from unshard.metrics.events import count_relay_exit
from unshard.model.position import FIRST_OFFSET, Location, Position
from unshard.mysql.connection import Endpoint, session
from unshard.mysql.flavour import BinaryLog, Server, identify
from unshard.relay.folder_lock import FolderLock
from unshard.relay.gtids import GtidTracker
from unshard.relay.log import EarlierLog, RelayLog, earlier_log
from unshard.relay.meta import SubDirectory
from unshard.relay.start import RelayStart, find_beginning
from unshard.relay.writer import RelayWriter
from unshard.retry import pauses
from unshard.source.replica import Begin, FormatCopy, Idle, ReplicaEvents, ReplicaStream
from unshard.source.replica_protocol import ReplicaRequest, same_format
from unshard.source.requirements import check_requirements
from unshard.source.upstream import StreamSightings, Upstream, read_upstream

Stage = Literal["New", "Running", "Paused", "Stopped"]

ANOTHER_SERVER = "RELAY-008"
HEARTBEAT_SECONDS = 5.0
SYNC_SECONDS = 1.0
LONGEST_WAIT_SECONDS = 30.0
_LARGEST_OFFSET = 0xFFFFFFFF  # the protocol can't ask for more
_LOWEST_RANDOM_ID = 0xFFFFFFFF // 10


@dataclass(frozen=True, slots=True)
class RelayUnitStatus:
    """The answer of `RelayUnit.status`.

    Args:
        stage: `Paused` after an error, `Stopped` after `stop`.
        location: the log's end.
        last_event_timestamp: seconds since 1970; 0 before the first event.
        received_bytes, reconnects: counted since the unit was made.
        reconnecting_since: since when the relay tries to connect again; None while it is connected.
        trouble: the error on which it stopped, at `stopped_at`, or after which it connects again.
    """

    stage: Stage
    sub_directory: str
    location: Location | None
    last_event_timestamp: int
    received_bytes: int
    reconnects: int
    reconnecting_since: datetime | None
    trouble: UnshardError | None
    stopped_at: datetime | None = None


class RelayUnit:
    """The relay of one source: it appends the source's binlog to the files in `directory` while it runs.

    All methods may be called by any thread.

    Args:
        start: where readers will begin; None: wherever the log is, or the source's newest file in an empty folder.
        upstream: the uuid of the one server to follow; None: the first server that answers.
        gapless: go on where the log of an earlier server ended, if that can be had; always so without `upstream`.
        heartbeat_seconds: how often an idle source has to send a heartbeat.
    """

    def __init__(
        self,
        source: SourceConfig,
        endpoint: Endpoint,
        directory: Path,
        start: Location | None,
        *,
        heartbeat_seconds: float = HEARTBEAT_SECONDS,
        upstream: str | None = None,
        gapless: bool = False,
    ) -> None:
        self._source, self._endpoint, self._directory = source, endpoint, directory
        self._start, self._expected, self._gapless = start, upstream, gapless or upstream is None
        self._heartbeat_seconds = heartbeat_seconds
        self._lock = FolderLock(directory)
        self._log = logger("relay", source=source.source_id)
        self._changed = threading.Condition()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._stream: ReplicaStream | None = None
        self._uuid = str(uuid4())
        self._server_id = source.server_id or _random_id()
        self._stage: Stage = "New"
        self._trouble: UnshardError | None = None
        self._reconnecting_since: datetime | None = None
        self._stopped_at: datetime | None = None
        self._reconnects = 0
        self._written: Position | None = None
        self._sub_directory: SubDirectory | None = None
        self._server: Server | None = None
        self._writer: RelayWriter | None = None
        self._gtids: GtidTracker | None = None
        self._received_bytes = 0
        self._timestamp = 0
        self._sightings = StreamSightings()

    def start(self) -> None:
        """Begin in a thread and return at once; no-op while it runs. After an error or a stop it goes on.

        Raises RelayError 021 while another process writes to the folder, 014 where there can be no such folder; the
        status tells it too.
        """
        if self._thread is not None and self._thread.is_alive():
            return
        try:
            self._lock.take()
        except RelayError as error:
            self._stage, self._trouble, self._stopped_at = "Paused", error, datetime.now(UTC)
            raise
        self._stopping.clear()
        self._stage, self._trouble = "Running", None
        self._server = None  # it may have been replaced: it is identified anew
        self._thread = threading.Thread(target=self._run, name=f"relay {self._source.source_id}", daemon=True)
        self._thread.start()

    def begin_at(self, start: Location | None, upstream: str) -> None:
        """Follow another server from the next `start` on: the state of the previous server is dropped.

        Called while the relay is stopped; `start` and `upstream` as in the constructor.
        """
        self._start, self._expected = start, upstream
        self._written = self._sub_directory = self._gtids = None
        self._sightings = StreamSightings()

    def renew(self, source: SourceConfig, endpoint: Endpoint) -> None:
        """Use another configuration of the same source; with another login a running relay connects anew at once."""
        with self._changed:
            anew, self._source, self._endpoint = endpoint != self._endpoint, source, endpoint
            if anew and self._stream is not None:
                self._stream.interrupt()

    def stop(self) -> None:
        """End the thread; what was received is durable when this returns. Idempotent."""
        self._stopping.set()
        with self._changed:
            if self._stream is not None:
                self._stream.interrupt()
        if self._thread is not None:
            self._thread.join()
        self._lock.release()
        if self._stage == "Running":
            self._stage = "Stopped"

    def check(self) -> None:
        """Raise the error that stopped the relay, if one did."""
        if self._stage == "Paused" and self._trouble is not None:
            raise self._trouble

    @property
    def written(self) -> Position:
        """The end of what readers may read, always at an event's end. Raises RelayError 019 before it is known."""
        if self._written is None:
            self.check()
            raise RelayError("RELAY-019", Where(source=self._source.source_id))
        return self._written

    @property
    def log(self) -> RelayLog:
        """The files that this unit writes to. Raises RelayError 019 before they are known."""
        if self._sub_directory is None:
            self.check()
            raise RelayError("RELAY-019", Where(source=self._source.source_id))
        return RelayLog(self._directory, self._sub_directory)

    @property
    def upstream(self) -> str:
        """The uuid of the server whose files `log` has. Raises RelayError 019 before it is known."""
        return self.log.sub_directory.uuid

    @property
    def expected(self) -> str | None:
        """The uuid of the server that it has to follow; None where it follows the first that answers."""
        return self._expected

    def earlier(self, uuid: str, needed: Iterable[Position]) -> EarlierLog:
        """Return the remaining files of another server. Raises RelayError 031 where they don't hold `needed`."""
        return earlier_log(self._directory, uuid, needed)

    def wait_for(self, position: Position, timeout: float) -> bool:
        """Block until all before `position` can be read, the timeout (seconds) passes or the relay stops.

        Returns whether it can be read. Doesn't raise the relay's error: `check` does.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._reaches(position) or self._stage != "Running", timeout)
            return self._reaches(position)

    def status(self) -> RelayUnitStatus:
        """Return the present state; cheap."""
        location = None
        if self._written is not None:
            location = Location(self._written, self._gtid_text())
        return RelayUnitStatus(
            self._stage,
            str(self._sub_directory or ""),
            location,
            self._timestamp,
            self._received_bytes,
            self._reconnects,
            self._reconnecting_since,
            self._trouble,
            self._stopped_at,
        )

    def sighting(self) -> Upstream | None:
        """Return the end of the source's log as the stream shows it; None before it does. Asks no server.

        It is of some time ago where the relay has to catch up, or has no connection: `Upstream.seen` tells.
        """
        found, sub_directory = self._sightings.newest, self._sub_directory
        if found is None or found.logs or sub_directory is None:
            return found
        log = RelayLog(self._directory, sub_directory)
        try:
            logs = tuple(BinaryLog(name, log.size(name)) for name in log.files())
        except RelayError:  # a purge is at work
            return None
        return replace(found, logs=logs)

    def _gtid_text(self) -> str:
        return self._gtids.text if self._gtids else ""

    def _reaches(self, position: Position) -> bool:
        return self._written is not None and self._written >= position

    def _run(self) -> None:
        waits = pauses(LONGEST_WAIT_SECONDS)
        while not self._stopping.is_set():
            received = self._received_bytes
            try:
                self._relay()
            except UnshardError as error:
                if not error.retryable:
                    self._pause(error.at(source=self._source.source_id))
                    return
                if self._stopping.is_set():
                    return
                if self._received_bytes > received:
                    waits = pauses(LONGEST_WAIT_SECONDS)
                self._reconnect(error, next(waits))
            except BaseException as fault:
                self._pause(RelayError("RELAY-019", Where(source=self._source.source_id), repr(fault)))
                raise

    def _pause(self, error: UnshardError) -> None:
        self._lock.release()
        if error.code == ANOTHER_SERVER and self._source.enable_gtid and self._expected is not None:
            # the caller that made it follow that server goes over to the other one, or fails by an error that says why
            # not
            self._log.warning("relay stopped: another server answers", **error.values)
        else:
            self._log.error("relay stopped", error=str(error))
            count_relay_exit(self._source.source_id, error)
        with self._changed:
            self._stage, self._trouble, self._reconnecting_since = "Paused", error, None
            self._stopped_at = datetime.now(UTC)
            self._changed.notify_all()

    def _reconnect(self, error: UnshardError, wait_seconds: float) -> None:
        self._log.warning("relay connects again", error=str(error), wait_seconds=round(wait_seconds, 2), sampled=True)
        if error.code == "RELAY-011":
            self._server_id = _random_id()
        self._trouble = error.at(source=self._source.source_id)
        self._reconnecting_since = self._reconnecting_since or datetime.now(UTC)
        self._reconnects += 1
        self._stopping.wait(wait_seconds)

    def _relay(self) -> None:
        """Serve one connection: look at the files on disk, open the stream, write until it ends or fails."""
        try:
            writer, beginning = self._prepare()
            self._follow(writer, beginning)
        finally:
            self._end_connection()

    def _prepare(self) -> tuple[RelayWriter, RelayStart]:
        with session(self._endpoint, "source") as connection:
            server = identify(connection)
            expected = self._server.uuid if self._server is not None else self._expected
            if expected is not None and server.uuid != expected:
                raise RelayError(ANOTHER_SERVER, values={"expected": expected, "found": server.uuid})
            if self._server is None:
                check_requirements(connection, server, self._source.source_id)
            # once it has written, readers count on what follows, whatever start was asked for
            start = self._start if self._written is None else Location(self._written, self._gtid_text())
            if start is not None and self._sub_directory is not None and self._sub_directory.uuid != server.uuid:
                start = None  # its names are those of another server, and the relay is by itself
            folder, gapless = self._directory, self._gapless
            beginning = find_beginning(folder, connection, server, self._source, start, gapless=gapless)
            self._sightings.connected(read_upstream(connection, server))
        self._server, self._gtids, self._sub_directory = server, beginning.gtids, beginning.sub_directory
        self._writer = RelayWriter(self._directory / str(beginning.sub_directory), beginning.file, beginning.end)
        self._publish(self._writer.end)
        return self._writer, beginning

    def _follow(self, writer: RelayWriter, beginning: RelayStart) -> None:
        assert self._server is not None
        # events beyond the protocol's largest offset are asked for from the file's start, and compared
        asked = writer.end if writer.end.offset <= _LARGEST_OFFSET else Position(writer.file, FIRST_OFFSET)
        request = ReplicaRequest(asked, self._server_id, self._uuid, self._heartbeat_seconds)
        stream = ReplicaStream(self._endpoint, self._server, request, beginning.chain)
        with self._changed:
            self._stream = stream
        synced, synced_at = writer.end, time.monotonic()
        for piece in stream.pieces(SYNC_SECONDS):
            if self._stopping.is_set():
                return
            if isinstance(piece, ReplicaEvents):
                writer.write(piece.position.offset, piece.data)
                beginning.gtids.wrote(stream.chain.take_gtids())  # not of what is received and never written
                self._received_bytes += len(piece.data)
                self._timestamp = stream.chain.timestamp or self._timestamp
                self._publish(writer.end)
                self._sightings.event(Location(writer.end), stream.chain.timestamp)
            elif isinstance(piece, Idle):
                if piece.at_end:
                    self._sightings.at_end(Location(writer.end, self._gtid_text()))
            elif isinstance(piece, Begin):
                self._begin(writer, piece.position)
            elif isinstance(piece, FormatCopy):
                self._compare_format(writer, piece.event)
            if self._reconnecting_since is not None:
                self._trouble = self._reconnecting_since = None
            if writer.end != synced and time.monotonic() - synced_at >= SYNC_SECONDS:
                self._sync(writer)
                synced, synced_at = writer.end, time.monotonic()

    def _begin(self, writer: RelayWriter, at: Position) -> None:
        """Handle the file name with which the source goes on: the current file, or the next one."""
        if at.file == writer.file:
            return
        ours, theirs = Position(writer.file).number, at.number
        if theirs != ours + 1 or at.offset != FIRST_OFFSET:
            raise RelayError("RELAY-004", Where(position=str(at), file=str(writer.path)))
        self._settle_gtids(writer)
        writer.rotate(at.file, self._gtid_text())
        self._publish(writer.end)

    def _compare_format(self, writer: RelayWriter, event: bytes) -> None:
        if not same_format(writer.head(len(event)), event):
            raise RelayError("RELAY-015", Where(position=f"{writer.file}:{FIRST_OFFSET}", file=str(writer.path)))

    def _settle_gtids(self, writer: RelayWriter) -> None:
        assert self._gtids is not None
        self._gtids.settle(writer.head)

    def _sync(self, writer: RelayWriter) -> None:
        self._settle_gtids(writer)
        writer.sync(self._gtid_text())

    def _publish(self, end: Position) -> None:
        with self._changed:
            self._written = end
            self._changed.notify_all()

    def _end_connection(self) -> None:
        """Close both ends; make what was written durable first, as far as the disk allows."""
        with self._changed:
            stream, self._stream = self._stream, None
        writer, self._writer = self._writer, None
        if stream is not None:
            stream.close()
        if writer is not None:
            try:
                if stream is not None:
                    self._sync(writer)
            finally:
                writer.close()


def _random_id() -> int:
    """Return a replica id as DM draws it, from a range in which servers' own ids rarely are."""
    return random.randint(_LOWEST_RANDOM_ID, 0xFFFFFFFF)
