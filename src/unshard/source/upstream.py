"""How far the source is, for those who show lag. Asked on a connection of its own, at most every few seconds."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from unshard.model.position import Location, Position
from unshard.mysql.connection import rows
from unshard.mysql.flavour import BinaryLog, Server, binary_logs, executed_gtids


@dataclass(frozen=True, slots=True)
class Upstream:
    """The source's newest position, and the sizes of the binlog files it has.

    The GTID set of `location` was read just after the position and may hold a little more. `time` is what the
    server's clock said just before (unix seconds), while our monotonic clock said `seen`.
    """

    location: Location
    logs: tuple[BinaryLog, ...]
    time: float
    seen: float

    def backlog_bytes(self, at: Position) -> int:
        """Bytes of binlog from `at` to the newest position; 0 when `at` is there or beyond."""
        end = self.location.position
        total = 0
        for log in self.logs:
            number = Position(log.name).number
            if at.number <= number <= end.number:
                total += end.offset if number == end.number else log.size
                total -= at.offset if number == at.number else 0
        return max(total, 0)


def read_upstream(connection: Any, server: Server) -> Upstream | None:
    """The state of now, or None where the binlog is off. Driver errors come as they are (see `session`)."""
    seen = time.monotonic()
    ((clock,),) = rows(connection, "SELECT UNIX_TIMESTAMP(NOW(6))")
    logs = binary_logs(connection)
    if not logs:
        return None
    newest = Location(Position(logs[-1].name, logs[-1].size), executed_gtids(connection, server))
    return Upstream(newest, logs, float(clock), seen)
