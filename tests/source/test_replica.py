"""The replica stream itself: by position and by GTID, and what refusals mean."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

import pytest

from unshard.errors import Where
from unshard.model.position import Position
from unshard.mysql.connection import session
from unshard.mysql.flavour import Server, gtid_before, identify
from unshard.source.replica import Begin, FormatCopy, ReplicaEvents, ReplicaStream
from unshard.source.replica_protocol import HEADER_LENGTH, ReplicaRequest, refusal, same_format
from unshard.testing.mariadb_server import MariadbServer


@pytest.fixture(scope="module")
def server() -> Iterator[MariadbServer]:
    with MariadbServer() as running:
        running.run("CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY AUTO_INCREMENT)")
        running.run("FLUSH BINARY LOGS", *["INSERT INTO d.t VALUES ()"] * 5, "FLUSH BINARY LOGS")
        yield running


def identity(server: MariadbServer) -> Server:
    with session(server.endpoint, "source") as connection:
        return identify(connection)


def read_file(server: MariadbServer, start: Position | str, file: str) -> tuple[bytes, bytes]:
    """The events of `file` that the stream sends, and the copied format event of a file that was resumed."""
    stream = ReplicaStream(server.endpoint, identity(server), ReplicaRequest(start, 4_000_000_000, str(uuid4())))
    got, copy = b"", b""
    try:
        for piece in stream.pieces(5):
            if isinstance(piece, ReplicaEvents):
                assert piece.position.file == file
                got += bytes(piece.data)
            elif isinstance(piece, FormatCopy):
                copy = piece.event
            elif isinstance(piece, Begin) and piece.position.file != file:
                break
    finally:
        stream.close()
    return got, copy


@pytest.mark.server
def test_a_file_by_position(server: MariadbServer) -> None:
    path = server.binlog_files()[1]
    assert read_file(server, Position(path.name), path.name) == (path.read_bytes()[4:], b"")


@pytest.mark.server
def test_a_file_from_its_middle(server: MariadbServer) -> None:
    path = server.binlog_files()[1]
    data = path.read_bytes()
    length = int.from_bytes(data[13:17], "little")

    got, copy = read_file(server, Position(path.name, 4 + length), path.name)

    assert got == data[4 + length :]
    assert copy != data[4 : 4 + length]
    assert same_format(copy, data[4 : 4 + length])


@pytest.mark.server
def test_a_file_by_gtid(server: MariadbServer) -> None:
    path = server.binlog_files()[1]
    with session(server.endpoint, "source") as connection:
        before = str(gtid_before(connection, identify(connection), path.name))
    data = path.read_bytes()
    length = int.from_bytes(data[13:17], "little")

    got, copy = read_file(server, before, path.name)

    if copy:  # MariaDB 11.4 and newer has an index of GTIDs, and begins behind the head of the file
        assert same_format(copy, data[4 : 4 + length])
        assert got
        assert data.endswith(got)
        assert len(data) - len(got) == _behind_gtid_list(data, 4 + length)
    else:
        assert got[length:] == data[4 + length :]
        assert same_format(got[:length], data[4 : 4 + length])


def _behind_gtid_list(data: bytes, offset: int) -> int:
    return offset + int.from_bytes(data[offset + 9 : offset + 13], "little")


@pytest.mark.parametrize(
    ("number", "message", "code"),
    [
        (1236, "Could not find first log file name in binary log index file", "RELAY-010"),
        (1236, "The slave is connecting using CHANGE MASTER TO MASTER_AUTO_POSITION = 1, but the master has purged "
         "binary logs containing GTIDs that the slave requires.", "RELAY-010"),
        (1236, "Client requested master to start replication from position > file size", "RELAY-009"),
        (1236, "A slave with the same server_uuid/server_id as this slave has connected to the master", "RELAY-011"),
        (4052, "A slave with the same server_uuid/server_id is already connected", "RELAY-011"),
        (1236, "log event entry exceeded max_allowed_packet", "RELAY-007"),
        (1053, "Server shutdown in progress", "RELAY-001"),
        (1927, "Connection was killed", "RELAY-001"),
        (1227, "Access denied; you need (at least one of) the REPLICATION SLAVE privilege(s)", "RELAY-012"),
        (9999, "whatever", "RELAY-007"),
    ],
)  # fmt: skip
def test_refusals(number: int, message: str, code: str) -> None:
    error = refusal(b"\xff" + number.to_bytes(2, "little") + b"#HY000" + message.encode(), Where(position="f.1:4"))
    assert error.code == code
    assert error.cause == f"{number}: {message}"
    assert error.retryable == (code in ("RELAY-001", "RELAY-011"))


def test_format_events_are_told_apart_by_time() -> None:
    event = bytes(range(100)) + bytes(200)
    changed = bytearray(event)
    changed[HEADER_LENGTH + 52 : HEADER_LENGTH + 56] = b"\xff\xff\xff\xff"
    changed[13:19] = bytes(6)
    assert same_format(event, bytes(changed))
    changed[0] ^= 1
    assert not same_format(event, bytes(changed))
