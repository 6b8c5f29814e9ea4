"""Reads the replica stream, which a server sends to a replica, as runs of checked binlog events.

PyMySQL connects and logs in. From the dump command on, this module reads the socket itself into one buffer, and
`kernels/packets` strips and checks the events in place. Called by the relay's only thread.

The server opens the stream with an artificial ROTATE event, which names the file and the offset. The file's format
event follows: the real one if the file is requested from its start, otherwise a copy with `log_pos` 0. Each further
file is announced the same way.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

import pymysql

from unshard.errors import RelayError, UnshardError, Where
from unshard.kernels import packets
from unshard.kernels.packets import EventChain
from unshard.model.position import Position
from unshard.mysql.connection import Endpoint, login_error, server_error
from unshard.mysql.flavour import Server, identify
from unshard.source.replica_protocol import (
    HEADER_LENGTH,
    ReplicaRequest,
    dump_command,
    format_has_checksum,
    refusal,
    register_command,
    rotate_target,
    session_statements,
)

BUFFER_BYTES = 2 << 20
LARGE_BYTES = 256 << 10  # longer packets are gathered outside the buffer

_ROTATE, _FORMAT, _HEARTBEAT, _HEARTBEAT_V2, _GTID_LIST = 4, 15, 27, 41, 163
_CONNECT_TIMEOUT_SECONDS = 10
_FAULTS = {packets.BAD_LENGTH: "RELAY-003", packets.BAD_POSITION: "RELAY-004", packets.BAD_CHECKSUM: "RELAY-005"}


@dataclass(frozen=True, slots=True)
class Begin:
    """Stream item: the server continues with this file from this offset (an artificial ROTATE)."""

    position: Position


@dataclass(frozen=True, slots=True)
class FormatCopy:
    """Stream item: a copy of a file's format event, sent when the stream begins in the middle of the file.

    The event must not be written to the relay log.
    """

    event: bytes


@dataclass(frozen=True, slots=True)
class ReplicaEvents:
    """Stream item: whole events, byte for byte as in the file at `position`.

    `data` is valid until the next item is read.
    """

    position: Position
    data: memoryview


@dataclass(frozen=True, slots=True)
class Idle:
    """Stream item: there are no events, because the timeout passed or a heartbeat came.

    `at_end`: it was a heartbeat, which says that the server's log ends where the stream is.
    """

    at_end: bool = False


Piece = Begin | FormatCopy | ReplicaEvents | Idle


class ReplicaStream:
    """A connection that streams binlog events from `request.start` on.

    `chain` has the events of that file before it: so a transaction that is open there ends in the stream. With None it
    is not known whether one is open.

    The constructor connects, checks that the server is the expected one, registers and requests the stream. It raises
    RelayError and SourceError 001 to 003; the error's `retryable` tells whether a new connection may help. Not
    thread-safe, except for `interrupt`.
    """

    def __init__(
        self, endpoint: Endpoint, server: Server, request: ReplicaRequest, chain: EventChain | None = None
    ) -> None:
        self._endpoint = endpoint
        self._liveness_seconds = 2 * request.heartbeat_seconds
        self._buffer = bytearray(BUFFER_BYTES)
        self._view = memoryview(self._buffer)
        self._from = self._to = 0
        self._file, self._asked = "", request.start
        self._interrupted = False
        self._goes_on = chain is not None
        self.chain = EventChain() if chain is None else chain
        self._connection = _connect(endpoint)
        try:
            self._start(server, request)
        except pymysql.MySQLError as error:
            self.close()
            raise _driver_error(error, endpoint) from error
        except UnshardError:
            self.close()
            raise
        self._socket: socket.socket = self._connection._sock
        self._timeout: float | None = None
        self._heard = time.monotonic()

    @property
    def position(self) -> Position:
        """The end of the last event that was returned. Its file is "" until the server has named one."""
        return Position(self._file, self.chain.position)

    def pieces(self, idle_seconds: float) -> Iterator[Piece]:
        """Yield the stream's pieces, without end. Yields `Idle` at least every `idle_seconds` while nothing comes.

        Raises RelayError: 001 (connection lost, or silent for two heartbeats; retryable), 003 to 005 (damaged event, a
        gap, a bad checksum), or the server's refusal.
        """
        while True:
            if self._receive(idle_seconds):
                yield from self._unpack()
            else:
                yield Idle()

    def interrupt(self) -> None:
        """Make a blocked read return by shutting the socket down; any thread may call it."""
        self._interrupted = True
        with contextlib.suppress(OSError):
            self._connection._sock.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Drop the connection; idempotent."""
        self._connection._force_close()

    def _start(self, server: Server, request: ReplicaRequest) -> None:
        with self._connection.cursor() as cursor:
            found = identify(self._connection)
            if found.uuid != server.uuid:
                raise RelayError("RELAY-008", values={"expected": server.uuid, "found": found.uuid})
            for statement in session_statements(server, request):
                cursor.execute(statement)
        register = register_command(request)
        self._connection._execute_command(register[0], register[1:])
        self._connection._read_ok_packet()
        command = dump_command(server, request)
        self._connection._execute_command(command[0], command[1:])

    def _receive(self, timeout: float) -> bool:
        """Fill the rest of the buffer with the bytes that the socket has. Returns False if none came in time."""
        left = self._to - self._from
        if left and self._from:
            self._view[:left] = bytes(self._view[self._from : self._to])
        self._from, self._to = 0, left
        got = self._receive_into(self._view[left:], timeout)
        self._to += got
        return got > 0

    def _receive_into(self, view: memoryview, timeout: float) -> int:
        timeout = min(timeout, self._liveness_seconds)
        if timeout != self._timeout:
            self._socket.settimeout(timeout)
            self._timeout = timeout
        try:
            got = self._socket.recv_into(view)
        except TimeoutError:
            if time.monotonic() - self._heard >= self._liveness_seconds:
                raise self._error("RELAY-001", f"no heartbeat for {self._liveness_seconds:g} s") from None
            return 0
        except OSError as error:
            raise self._error("RELAY-001", str(error)) from error
        if got == 0:
            raise self._error("RELAY-001", "interrupted" if self._interrupted else "the server closed the connection")
        self._heard = time.monotonic()
        return got

    def _unpack(self) -> Iterator[Piece]:
        while True:
            begin, at = self._from, Position(self._file, self.chain.position)
            stop, taken, made = self.chain.unpack(self._buffer, self._view, begin, self._to, LARGE_BYTES)
            self._from = taken
            if made > begin:
                yield ReplicaEvents(at, self._view[begin:made])
            if stop == packets.MORE:
                return
            if stop in _FAULTS:
                self._fault(stop)
            if stop == packets.LARGE:
                yield self._gather()
                continue
            length = int.from_bytes(self._buffer[taken : taken + 3], "little")
            payload = bytes(self._view[taken + 4 : taken + 4 + length])
            self._from = taken + 4 + length
            yield from self._special(payload)

    def _special(self, payload: bytes) -> Iterator[Piece]:
        if payload[:1] == b"\xff":
            raise refusal(payload, Where(position=str(self.position if self._file else self._asked)))
        if payload[:1] == b"\xfe":
            raise self._error("RELAY-001", "the server ended the stream")
        event = payload[1:]
        if payload[:1] != b"\0" or len(event) < HEADER_LENGTH:
            self._fault(packets.BAD_LENGTH)
        kind, artificial = event[4], event[17] & 0x20 or event[13:17] == b"\0\0\0\0"
        if kind in (_HEARTBEAT, _HEARTBEAT_V2):
            yield Idle(self._ends_here(event))
        elif kind == _ROTATE and artificial:
            file, offset = rotate_target(event)
            if not (self._goes_on and offset == self.chain.position):
                self.chain.begin(offset)
            self._file, self._goes_on = file, False
            yield Begin(self.position)
        elif kind == _FORMAT and artificial:
            self.chain.checksum = format_has_checksum(event)
            yield FormatCopy(event)
        elif not artificial:
            yield self._append(event)
        elif kind != _GTID_LIST:
            raise self._error("RELAY-006", f"event type {kind}")

    def _ends_here(self, heartbeat: bytes) -> bool:
        """Return whether a heartbeat is of this place: MariaDB writes one behind 4 GiB before the file's name."""
        here = self.chain.position
        written = int.from_bytes(heartbeat[13:17], "little"), int.from_bytes(heartbeat[19:27], "little")
        return bool(written[0] == here & 0xFFFFFFFF or written[1] == here)

    def _append(self, event: bytes) -> ReplicaEvents:
        at, kind = self.position, event[4]
        if kind == _FORMAT:
            self.chain.checksum = True  # a format event ends in a CRC32 even where the file's other events don't
        verdict = self.chain.append(event)
        if verdict:
            self._fault(verdict)
        if kind == _FORMAT:
            self.chain.checksum = format_has_checksum(event)
        return ReplicaEvents(at, memoryview(event))

    def _gather(self) -> ReplicaEvents:
        """Return one event that is too long for the buffer, joined from packets of at most 16 MiB."""
        header = self._take(4 + 1 + HEADER_LENGTH)
        length = int.from_bytes(header[:3], "little")
        size = int.from_bytes(header[14:18], "little")
        if header[4] != 0 or size < length - 1:
            self._fault(packets.BAD_LENGTH)
        event = bytearray(size)
        event[:HEADER_LENGTH] = header[5:]
        filled, wanted = HEADER_LENGTH, length - 1
        while True:
            if wanted > size:
                self._fault(packets.BAD_LENGTH)
            self._take_into(memoryview(event)[filled:wanted])
            filled = wanted
            if length < 0xFFFFFF:
                break
            length = int.from_bytes(self._take(4)[:3], "little")
            wanted = filled + length
        at = self.position
        verdict = self.chain.append(event) if filled == size else packets.BAD_LENGTH
        if verdict:
            self._fault(verdict)
        return ReplicaEvents(at, memoryview(event))

    def _take(self, count: int) -> bytes:
        taken = bytearray(count)
        self._take_into(memoryview(taken))
        return bytes(taken)

    def _take_into(self, target: memoryview) -> None:
        """Fill `target` with the next bytes: those in the buffer first, then straight from the socket."""
        count = min(len(target), self._to - self._from)
        target[:count] = self._view[self._from : self._from + count]
        self._from += count
        while count < len(target):
            count += self._receive_into(target[count:], self._liveness_seconds)

    def _fault(self, verdict: int) -> NoReturn:
        raise self._error(_FAULTS[verdict], "")

    def _error(self, code: str, cause: str) -> RelayError:
        return RelayError(code, Where(position=str(self.position)), cause)


def _connect(endpoint: Endpoint) -> Any:
    """Return a logged-in PyMySQL connection. The endpoint's session variables are not set on it.

    Without `endpoint.tls` the connection is not encrypted, as in DM. With it, the certificate is checked against `ca`
    if that is given; the host's name is not checked (VERIFY_CA).
    """
    encryption: dict[str, Any] = {"ssl_disabled": True}
    try:
        if endpoint.tls is not None:
            encryption = {"ssl": endpoint.tls.context()}
        return pymysql.connect(
            host=endpoint.host,
            port=endpoint.port,
            user=endpoint.user,
            password=endpoint.password,
            charset="utf8mb4",
            autocommit=True,
            connect_timeout=_CONNECT_TIMEOUT_SECONDS,
            read_timeout=_CONNECT_TIMEOUT_SECONDS,
            **encryption,
        )
    except pymysql.MySQLError as error:
        if (fault := _tls_error(error)) is not None:
            raise _driver_error(pymysql.OperationalError(2026, str(fault)), endpoint) from error
        raise _driver_error(login_error(error, endpoint), endpoint) from error
    except OSError as error:  # TLS files
        raise _driver_error(pymysql.OperationalError(2026, str(error)), endpoint) from error


def _tls_error(error: BaseException | None) -> ssl.SSLError | None:
    """Return the TLS failure that PyMySQL reports as "can't connect", or as "gone away" if it comes with the login."""
    while error is not None and not isinstance(error, ssl.SSLError):
        error = getattr(error, "original_exception", None) or error.__cause__ or error.__context__
    return error


def _driver_error(error: pymysql.MySQLError, endpoint: Endpoint) -> UnshardError:
    if isinstance(error, pymysql.InternalError):  # PyMySQL raises it for packets out of order
        return RelayError("RELAY-001", cause=str(error))
    return server_error(error, endpoint, "source", "the start of the replica stream")
