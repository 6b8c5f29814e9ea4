"""The position of a source's binlog: its newest location, and the first transaction at or after a point in time.

The newest location, from which lag is computed, is read on a separate connection, at most every few seconds, where
somebody asks for it. `StreamSightings` takes it from the replica stream, which costs the source nothing.
`start-time` begins at the first transaction of a time.
"""

from __future__ import annotations

import random
import struct
import time
import uuid
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from unshard.errors import RelayError, Where
from unshard.model.position import Location, Position
from unshard.mysql.connection import Endpoint, rows
from unshard.mysql.flavour import BinaryLog, Server, binary_logs, current_location, executed_gtids
from unshard.source.replica import Idle, ReplicaEvents, ReplicaStream
from unshard.source.replica_protocol import HEADER_LENGTH, ReplicaRequest


@dataclass(frozen=True, slots=True)
class Upstream:
    """The source's newest position and its binlog files.

    Args:
        location: the newest position. Its GTID set was read just after the position and may contain a little more.
        logs: the binlog files with their sizes in bytes; those of the relay log where its stream tells the position.
        time: the server's clock just before, in Unix seconds.
        seen: our monotonic clock at that moment.
    """

    location: Location
    logs: tuple[BinaryLog, ...]
    time: float
    seen: float

    def backlog_bytes(self, at: Position) -> int:
        """Return the bytes of binlog from `at` to the newest position; 0 if `at` is there or beyond."""
        end = self.location.position
        total = 0
        for log in self.logs:
            number = Position(log.name).number
            if at.number <= number <= end.number:
                total += end.offset if number == end.number else log.size
                total -= at.offset if number == at.number else 0
        return max(total, 0)


def read_upstream(connection: Any, server: Server) -> Upstream | None:
    """Return the source's current state; None if its binlog is off.

    Driver errors are not translated (see `session`).
    """
    seen = time.monotonic()
    ((clock,),) = rows(connection, "SELECT UNIX_TIMESTAMP(NOW(6))")
    logs = binary_logs(connection)
    if not logs:
        return None
    newest = Location(Position(logs[-1].name, logs[-1].size), executed_gtids(connection, server))
    return Upstream(newest, logs, float(clock), seen)


class StreamSightings:
    """The end of a source's log as its replica stream shows it. Written by one thread, read by any.

    Two things in a stream tell it. A heartbeat says that the log ends here, now. An event says that at its own time
    nothing behind it was committed: so the relay of a source that writes all the time knows its end too, and one that
    has to catch up knows that it does not. Both need the source's clock, which is read when the relay connects.
    """

    def __init__(self) -> None:
        self._clock: float | None = None
        self.newest: Upstream | None = None

    def connected(self, upstream: Upstream | None) -> None:
        """Take what the source says while the relay connects."""
        if upstream is not None:
            self._clock, self.newest = upstream.time - time.monotonic(), upstream

    def at_end(self, location: Location) -> None:
        """Note that the log ends here now."""
        if self._clock is not None:
            self._see(location, self._clock + time.monotonic())

    def event(self, location: Location, timestamp: float) -> None:
        """Note that the event before `location` has this time (unix seconds; 0: none) of the source's clock."""
        if self._clock is not None and timestamp:
            self._see(location, min(timestamp, self._clock + time.monotonic()))

    def _see(self, location: Location, at: float) -> None:
        """Note that when the source's clock said `at`, nothing behind `location` was committed.

        An earlier sighting of less says the same of its own, later time.
        """
        assert self._clock is not None
        known = self.newest
        if known is not None and known.location.position > location.position:
            return
        at = max(at, known.time) if known is not None else at
        self.newest = Upstream(location, (), at, at - self._clock)


_GTIDS = frozenset({33, 34, 42, 162})
"""GTID, anonymous GTID and tagged GTID of MySQL, GTID of MariaDB: each begins a transaction or a statement."""
_HEADER = struct.Struct("<IBII")  # timestamp, type, server id, length
_IDLE_SECONDS = 1.0


def position_at(endpoint: Endpoint, connection: Any, server: Server, moment: float) -> Position | None:
    """Return the position of the first transaction whose timestamp is `moment` or later; None if there is none.

    `moment` is Unix time; binlogs have whole seconds. A binary search reads the first event of a few files, then one
    file is read through. Raises RelayError RELAY-010 if files that may hold the transaction are purged, and the errors
    of the stream: SourceError, RelayError.
    """
    files, newest = [log.name for log in binary_logs(connection)], current_location(connection, server)
    if not files or newest is None:
        return None
    low, high = 0, len(files)  # `low` becomes the last file that began before the moment, or the first
    while high - low > 1:
        middle = (low + high) // 2
        if _began(endpoint, server, files[middle]) < moment:
            low = middle
        else:
            high = middle
    first = Position(files[0])
    if low == 0 and first.number > 1 and _began(endpoint, server, files[0]) > moment:
        raise RelayError("RELAY-010", Where(position=str(first)), "the time is before the oldest binlog file")
    return _first_from(endpoint, server, files[low], moment, newest.position)


def _began(endpoint: Endpoint, server: Server, file: str) -> int:
    with closing(_stream(endpoint, server, file)) as stream:
        for piece in stream.pieces(_IDLE_SECONDS):
            if isinstance(piece, ReplicaEvents):
                return int(_HEADER.unpack_from(piece.data)[0])
    raise AssertionError("the stream has no end")


def _first_from(endpoint: Endpoint, server: Server, file: str, moment: float, newest: Position) -> Position | None:
    """Return the position as `position_at`, starting at `file`.

    Returns None only after everything before `newest` has been read, however long the source is silent meanwhile.
    """
    reached = Position(file)
    with closing(_stream(endpoint, server, file)) as stream:
        for piece in stream.pieces(_IDLE_SECONDS):
            if not isinstance(piece, Idle):
                reached = stream.position
            elif reached >= newest:
                return None
            if isinstance(piece, ReplicaEvents):
                offset, data = 0, piece.data
                while offset + HEADER_LENGTH <= len(data):
                    timestamp, kind, _, length = _HEADER.unpack_from(data, offset)
                    if kind in _GTIDS and timestamp >= moment:
                        return Position(piece.position.file, piece.position.offset + offset)
                    offset += length
    raise AssertionError("the stream has no end")


def _stream(endpoint: Endpoint, server: Server, file: str) -> ReplicaStream:
    request = ReplicaRequest(Position(file), random.randint(1 << 20, (1 << 32) - 1), str(uuid.uuid4()))
    return ReplicaStream(endpoint, server, request)
