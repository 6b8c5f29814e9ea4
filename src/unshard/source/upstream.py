"""The newest position of a source's binlog, from which lag is computed.

It is read on a separate connection, at most every few seconds, where somebody asks for it. `StreamSightings` takes it
from the replica stream, which costs the source nothing.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from unshard.model.position import Location, Position
from unshard.mysql.connection import rows
from unshard.mysql.flavour import BinaryLog, Server, binary_logs, executed_gtids


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

    Two kinds of messages show it. A heartbeat says that the log ends here, now. An event says that at the event's own
    time nothing after it was committed. So the end is known even for a source that writes all the time, and a relay
    that has to catch up knows that it lags. Both need the source's clock, which is read when the relay connects.
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
