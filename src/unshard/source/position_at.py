"""The position of the first transaction at or after a point in time, where a task with `start-time` begins."""

from __future__ import annotations

import random
import struct
import uuid
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from unshard.binlog.groups import BEGINS, QUERY, XID
from unshard.binlog.headers import CHECKSUM_LENGTH
from unshard.binlog.query import Damaged, read_query
from unshard.binlog.query_kind import QueryKind, classify
from unshard.errors import RelayError, Where
from unshard.model.position import Position
from unshard.mysql.connection import Endpoint
from unshard.mysql.flavour import Server, binary_logs, current_location
from unshard.source.replica import Idle, ReplicaEvents, ReplicaStream
from unshard.source.replica_protocol import HEADER_LENGTH, ReplicaRequest

_HEADER = struct.Struct("<IBII")  # timestamp, type, server id, length
_IDLE_SECONDS = 1.0


@dataclass(slots=True)
class _Groups:
    """Tells which events of one file begin a transaction or a statement. It is asked for each event, in order.

    A server writes GTID events to all of a file or to none of it. MySQL before 5.7 writes none while `gtid_mode` is
    off: there a QUERY event begins what no other has begun.
    """

    numbered: bool = False
    inside: bool = False

    def begins(self, kind: int, body: memoryview) -> bool:
        if kind in BEGINS:
            self.numbered = True
            return True
        if kind == XID:
            self.inside = False
        if kind != QUERY or self.numbered:
            return False
        try:
            query = classify(read_query(bytes(body)).sql)
        except Damaged:
            return False
        begins = not self.inside
        self.inside = query is QueryKind.BEGIN if begins else query not in (QueryKind.COMMIT, QueryKind.ROLLBACK)
        return begins


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
    reached, reading, groups = Position(file), file, _Groups()
    with closing(_stream(endpoint, server, file)) as stream:
        for piece in stream.pieces(_IDLE_SECONDS):
            if not isinstance(piece, Idle):
                reached = stream.position
            elif reached >= newest:
                return None
            if isinstance(piece, ReplicaEvents):
                offset, data = 0, piece.data
                if piece.position.file != reading:
                    reading, groups = piece.position.file, _Groups()
                while offset + HEADER_LENGTH <= len(data):
                    timestamp, kind, _, length = _HEADER.unpack_from(data, offset)
                    end = offset + length - CHECKSUM_LENGTH * stream.chain.checksum
                    if groups.begins(kind, data[offset + HEADER_LENGTH : end]) and timestamp >= moment:
                        return Position(piece.position.file, piece.position.offset + offset)
                    offset += length
    raise AssertionError("the stream has no end")


def _stream(endpoint: Endpoint, server: Server, file: str) -> ReplicaStream:
    request = ReplicaRequest(Position(file), random.randint(1 << 20, (1 << 32) - 1), str(uuid.uuid4()))
    return ReplicaStream(endpoint, server, request)
