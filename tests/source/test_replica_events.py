"""The stream's own events, as bytes on a socket: heartbeats of both kinds, announced files, places behind 4 GiB."""

from __future__ import annotations

import socket
import zlib
from collections.abc import Iterator
from struct import pack
from typing import Any

import pytest

from unshard.errors import RelayError
from unshard.model.position import Position
from unshard.mysql.connection import Endpoint
from unshard.mysql.flavour import Flavour, Server
from unshard.source import replica
from unshard.source.replica import Begin, FormatCopy, Idle, Piece, ReplicaEvents, ReplicaStream
from unshard.source.replica_protocol import ReplicaRequest

ROTATE, FORMAT, QUERY, STOP, HEARTBEAT, HEARTBEAT_V2 = 4, 15, 2, 3, 27, 41
ARTIFICIAL = 0x20
SERVER = Server(Flavour.MYSQL, (9, 7, 0), "9.7.0", 1, "11111111-1111-1111-1111-111111111111")
GIB = 1 << 30
FIRST = b"mysql-bin.000001"


class Logged:
    """A connection that is logged in and asks nothing: what is sent to `_sock` comes from the test."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock

    def cursor(self) -> Logged:
        return self

    def __enter__(self) -> Logged:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def execute(self, statement: str) -> None:
        pass

    def _execute_command(self, *_: object) -> None:
        pass

    def _read_ok_packet(self) -> None:
        pass

    def _force_close(self) -> None:
        self._sock.close()


class Wire:
    """The server's end of a stream: `send` puts an event on it in a packet of its own."""

    def __init__(self, stream: ReplicaStream, sock: socket.socket) -> None:
        self.stream, self._sock = stream, sock
        self._pieces = stream.pieces(0.05)
        self._number = 0

    def send(self, kind: int, body: bytes = b"", *, end: int = 0, flags: int = 0, checksum: bool = True) -> bytes:
        size = 19 + len(body) + 4 * checksum
        event = pack("<IBIIIH", 1_700_000_000, kind, 1, size, end % (1 << 32), flags) + body
        if checksum:
            event += pack("<I", zlib.crc32(event))
        self._sock.sendall((len(event) + 1).to_bytes(3, "little") + bytes([self._number % 256]) + b"\0" + event)
        self._number += 1
        return event

    def announce(self, file: bytes, offset: int) -> None:
        self.send(ROTATE, pack("<Q", offset) + file, flags=ARTIFICIAL)

    def format(self, end: int = 0) -> bytes:
        body = pack("<H50sIB", 4, b"9.7.0", 0, 19) + bytes(40) + b"\1"
        return self.send(FORMAT, body, end=end)

    def take(self) -> Piece:
        """The next piece; the bytes of events are copied out."""
        piece = next(self._pieces)
        return (
            ReplicaEvents(piece.position, memoryview(bytes(piece.data))) if isinstance(piece, ReplicaEvents) else piece
        )


@pytest.fixture
def wire(monkeypatch: pytest.MonkeyPatch) -> Iterator[Wire]:
    ours, theirs = socket.socketpair()
    connection: Any = Logged(ours)
    monkeypatch.setattr(replica, "_connect", lambda endpoint: connection)
    monkeypatch.setattr(replica, "identify", lambda found: SERVER)
    stream = ReplicaStream(Endpoint("h", 1, "u"), SERVER, ReplicaRequest(Position("mysql-bin.000001"), 5, SERVER.uuid))
    yield Wire(stream, theirs)
    stream.close()
    theirs.close()


def test_files_are_announced_at_connect_and_between_two(wire: Wire) -> None:
    wire.announce(FIRST, 4)
    assert wire.take() == Begin(Position("mysql-bin.000001", 4))
    size = len(wire.format(end=125))
    piece = wire.take()
    assert isinstance(piece, ReplicaEvents)
    assert piece.position.offset == 4
    assert len(piece.data) == size
    at = 4 + size
    real = wire.send(ROTATE, pack("<Q", 4) + b"mysql-bin.000002", end=at + 19 + 8 + 16 + 4)
    piece = wire.take()
    assert isinstance(piece, ReplicaEvents)
    assert bytes(piece.data) == real
    wire.announce(b"mysql-bin.000002", 4)
    assert wire.take() == Begin(Position("mysql-bin.000002", 4))
    assert wire.stream.position == Position("mysql-bin.000002", 4)


def test_a_file_that_a_shutdown_ends_is_followed_by_the_next(wire: Wire) -> None:
    wire.announce(FIRST, 500)
    wire.format()
    stop = wire.send(STOP, end=523)
    wire.announce(b"mysql-bin.000002", 4)
    assert wire.take() == Begin(Position("mysql-bin.000001", 500))
    assert isinstance(wire.take(), FormatCopy)
    piece = wire.take()
    assert isinstance(piece, ReplicaEvents)
    assert bytes(piece.data) == stop
    assert wire.take() == Begin(Position("mysql-bin.000002", 4))


@pytest.mark.parametrize("offset", [500, 4 * GIB - 10, 4 * GIB, 4 * GIB + 700, 9 * GIB])
@pytest.mark.parametrize("kind", [HEARTBEAT, HEARTBEAT_V2])
def test_heartbeats_move_nothing(wire: Wire, kind: int, offset: int) -> None:
    wire.announce(FIRST, offset)
    wire.format()
    assert wire.take() == Begin(Position("mysql-bin.000001", offset))
    assert isinstance(wire.take(), FormatCopy)
    # MySQL's V2 has fields of (type, length, value): 1 is the file, 2 the place as a packed number; 0 ends them
    place = b"\xfe" + pack("<Q", offset)
    fields = b"\1" + bytes([len(FIRST)]) + FIRST + b"\2" + bytes([len(place)]) + place + b"\0"
    # MariaDB puts 8 bytes before the file's name where the place has no room in the header
    names = [FIRST] if offset < 4 * GIB else [FIRST, pack("<Q", offset) + FIRST]
    for body in names if kind == HEARTBEAT else [fields]:
        wire.send(kind, body, end=offset, flags=ARTIFICIAL)
        assert wire.take() == Idle(at_end=True)
        wire.send(kind, body, end=offset)
        assert wire.take() == Idle(at_end=True)
    assert wire.stream.position == Position("mysql-bin.000001", offset)
    query = wire.send(QUERY, bytes(30), end=offset + 53)
    piece = wire.take()
    assert isinstance(piece, ReplicaEvents)
    assert bytes(piece.data) == query
    assert wire.stream.position == Position("mysql-bin.000001", offset + 53)


@pytest.mark.parametrize("offset", [500, 9 * GIB])
def test_a_heartbeat_of_another_place_does_not_tell_the_end(wire: Wire, offset: int) -> None:
    wire.announce(FIRST, offset)
    wire.format()
    wire.send(HEARTBEAT, pack("<Q", offset - 40) + FIRST, end=offset - 40, flags=ARTIFICIAL)
    wire.send(HEARTBEAT, pack("<Q", offset) + FIRST, flags=ARTIFICIAL)
    assert [wire.take() for _ in range(4)][2:] == [Idle(at_end=False), Idle(at_end=True)]


def test_a_heartbeat_among_events_of_one_packet_burst(wire: Wire) -> None:
    wire.announce(FIRST, 100)
    wire.format()
    first = wire.send(QUERY, bytes(10), end=133)
    wire.send(HEARTBEAT_V2, b"\0", end=133)
    second = wire.send(QUERY, bytes(11), end=167)
    pieces = [wire.take() for _ in range(5)]
    assert [type(piece) for piece in pieces] == [Begin, FormatCopy, ReplicaEvents, Idle, ReplicaEvents]
    taken = [bytes(piece.data) for piece in pieces if isinstance(piece, ReplicaEvents)]
    assert taken == [first, second]


def test_an_event_behind_4_gib_that_leaves_a_hole_is_found(wire: Wire) -> None:
    wire.announce(FIRST, 5 * GIB)
    wire.format()
    wire.send(QUERY, bytes(30), end=5 * GIB + 54)
    assert isinstance(wire.take(), Begin)
    assert isinstance(wire.take(), FormatCopy)
    with pytest.raises(RelayError, match="RELAY-004") as raised:
        wire.take()
    assert raised.value.where.position == f"mysql-bin.000001:{5 * GIB}"
