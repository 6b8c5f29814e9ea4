"""The messages of the replica protocol: requests to the server, and its refusals. Pure."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from uuid import UUID

from unshard.errors import RelayError, UnshardError, Where
from unshard.model.gtid import MysqlGtidSet
from unshard.model.position import Position
from unshard.mysql.flavour import Flavour, Server

HEADER_LENGTH = 19

_REGISTER_SLAVE = 0x15
_BINLOG_DUMP = 0x12
_BINLOG_DUMP_GTID = 0x1E
_SEND_ANNOTATE_ROWS = 2  # MariaDB leaves these events out unless asked: a hole in the file
_THROUGH_GTID = 4
_LARGEST_OFFSET = 0xFFFFFFFF
_TAGGED_FORM = 1

_FATAL_READING_BINLOG = 1236
_KILLED = frozenset({1053, 1077, 1078, 1079, 1317, 1927, 3169, 4031})
_SAME_ID = 4052
_ACCESS_DENIED = frozenset({1044, 1045, 1142, 1227})


@dataclass(frozen=True, slots=True)
class ReplicaRequest:
    """A request for a replica stream.

    Args:
        start: a binlog position, or the text of a GTID set. The set must be one with which a binlog file begins: the
            server omits events that the set holds, and the stream reports such an omission at a file's beginning as a
            gap.
        server_id, uuid: the identity of this replica.
        heartbeat_seconds: how often the server sends a heartbeat while it has no events.
    """

    start: Position | str
    server_id: int
    uuid: str
    heartbeat_seconds: float = 5.0


def session_statements(server: Server, request: ReplicaRequest) -> list[str]:
    """Return the SET statements to run before the dump command, in order."""
    nanoseconds = int(request.heartbeat_seconds * 1_000_000_000)
    statements = [
        f"SET @master_heartbeat_period = {nanoseconds}, @source_heartbeat_period = {nanoseconds}",
        # the server refuses a replica that doesn't say it knows checksums
        "SET @master_binlog_checksum = @@global.binlog_checksum, @source_binlog_checksum = @@global.binlog_checksum",
        f"SET @slave_uuid = '{request.uuid}', @replica_uuid = '{request.uuid}'",
    ]
    if server.flavour is Flavour.MARIADB:
        statements.append("SET @mariadb_slave_capability = 4")  # GTID events are sent unchanged
        if isinstance(request.start, str):
            gtids = str(server.gtid_set(request.start))
            statements.append(f"SET @slave_connect_state = '{gtids}', @slave_gtid_strict_mode = 1")
            statements.append("SET @slave_gtid_ignore_duplicates = 0")
    return statements


def register_command(request: ReplicaRequest) -> bytes:
    """Return COM_REGISTER_SLAVE, which names this replica for SHOW REPLICAS. It shows no host, user or password."""
    return struct.pack("<BIBBBHII", _REGISTER_SLAVE, request.server_id, 0, 0, 0, 0, 0, 0)


def dump_command(server: Server, request: ReplicaRequest) -> bytes:
    """Return COM_BINLOG_DUMP, or COM_BINLOG_DUMP_GTID for a GTID set on MySQL."""
    flags = _SEND_ANNOTATE_ROWS if server.flavour is Flavour.MARIADB else 0
    if isinstance(request.start, Position):
        if request.start.offset > _LARGEST_OFFSET:
            raise ValueError(f"the protocol can't ask for an offset beyond 4 GiB: {request.start}")
        head = struct.pack("<BIHI", _BINLOG_DUMP, request.start.offset, flags, request.server_id)
        return head + request.start.file.encode()
    if server.flavour is Flavour.MARIADB:
        return struct.pack("<BIHI", _BINLOG_DUMP, 4, flags, request.server_id)
    data = _gtid_data(MysqlGtidSet.parse(request.start))
    return struct.pack("<BHIIQI", _BINLOG_DUMP_GTID, _THROUGH_GTID, request.server_id, 0, 4, len(data)) + data


def _gtid_data(gtids: MysqlGtidSet) -> bytes:
    """Return the set in the server's encoding.

    A set with a tag has the tagged form, which PREVIOUS_GTIDS then has too.
    """
    tagged = any(":" in origin for origin, _ in gtids.origins)
    count = len(gtids.origins)
    data = [struct.pack("<Q", _TAGGED_FORM << 56 | count << 8 | _TAGGED_FORM if tagged else count)]
    for origin, intervals in gtids.origins:
        uuid, _, tag = origin.partition(":")
        data.append(UUID(uuid).bytes)
        if tagged:
            data.append(bytes([len(tag) << 1]) + tag.encode())
        data.append(struct.pack("<Q", len(intervals)))
        data.extend(struct.pack("<QQ", first, last + 1) for first, last in intervals)
    return b"".join(data)


def rotate_target(event: bytes) -> tuple[str, int]:
    """Return the file and the offset that a ROTATE event names.

    An artificial ROTATE may end in a CRC32 even if the file's events have none.
    """
    end = len(event)
    if zlib.crc32(event[:-4]) == int.from_bytes(event[-4:], "little"):
        end -= 4
    return event[HEADER_LENGTH + 8 : end].decode(), int.from_bytes(event[HEADER_LENGTH : HEADER_LENGTH + 8], "little")


def format_has_checksum(event: bytes) -> bool:
    """Return whether the events after this format event end in a CRC32.

    It is the last byte before the format event's own CRC32.
    """
    return event[-5] == 1


def same_format(one: bytes, other: bytes) -> bool:
    """Return whether two format events belong to the same file.

    `log_pos`, the flags, `created` and the CRC32 are not compared: the server changes those four in the copy that it
    sends for a resumed file. The time in the header is compared, as it is the file's own.
    """
    created = HEADER_LENGTH + 2 + 50
    return (
        one[:13] == other[:13]
        and one[HEADER_LENGTH:created] == other[HEADER_LENGTH:created]
        and one[created + 4 : -4] == other[created + 4 : -4]
    )


def refusal(payload: bytes, where: Where) -> UnshardError:
    """Return the error that an ERR packet reports."""
    number = int.from_bytes(payload[1:3], "little")
    text = payload[9:] if payload[3:4] == b"#" else payload[3:]
    message = text.decode("utf-8", "replace")
    cause = f"{number}: {message}"
    if number in _KILLED:
        return RelayError("RELAY-001", where, cause)
    if number in _ACCESS_DENIED:
        return RelayError("RELAY-012", where, cause)
    if number == _SAME_ID:
        return RelayError("RELAY-011", where, cause)
    if number == _FATAL_READING_BINLOG:
        return RelayError(_fatal_code(message.lower()), where, cause)
    return RelayError("RELAY-007", where, cause)


def _fatal_code(message: str) -> str:
    """Return our code for error 1236, which has many causes that only its text distinguishes."""
    if "same server" in message:
        return "RELAY-011"
    if "could not find first log file" in message or "purged" in message or "not in the master's binlog" in message:
        return "RELAY-010"
    if "> file size" in message or "impossible position" in message:
        return "RELAY-009"
    return "RELAY-007"
