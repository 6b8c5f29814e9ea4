"""The socket of a driver's connection, for commands of the protocol that the driver does not have.

A command and its whole answer are exchanged while the driver waits for nothing, so that it finds its connection as it
left it. That is done with MariaDB's client library and without encryption only; other connections have no such socket.
Packets: "Protocol Basics" in https://dev.mysql.com/doc/dev/mysql-server/latest/.
"""

from __future__ import annotations

import os
import select
import socket
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

import MySQLdb

from unshard.mysql.connection import traits_of

LOST, MALFORMED = 2013, 2027  # the C driver's own numbers
LOST_TEXT = "Lost connection to server during query"
_sockets: WeakKeyDictionary[Any, int | None] = WeakKeyDictionary()
_STATE = b"#"
_STATE_LENGTH = 6
_LONGEST_PACKET = (1 << 24) - 1
_READ = 1 << 16


def plain_socket(connection: Any) -> int | None:
    """Return the descriptor of a connection's socket; None where its bytes can't be read, or `connect` did not make it.

    Asks the server at the first call for a connection, as a client library may encrypt what it was not told to. Raises
    MySQLdb.Error.
    """
    if connection not in _sockets:
        _sockets[connection] = connection.fileno() if _is_readable(connection) else None
    return _sockets[connection]


def _is_readable(connection: Any) -> bool:
    traits = traits_of(connection)
    if traits is None or traits.encrypted or not MySQLdb.get_client_info().startswith("3."):
        return False
    with connection.cursor() as cursor:
        cursor.execute("SHOW STATUS LIKE 'Ssl_cipher'")
        found = cursor.fetchall()
    return all(not value for _, value in found)


def told(payload: bytes) -> tuple[int, str]:
    """Return the number and the text of an ERR packet: a byte, the number, maybe a state, the text."""
    number, text = int.from_bytes(payload[1:3], "little"), payload[3:]
    if text.startswith(_STATE):
        text = text[_STATE_LENGTH:]
    return number, text.decode("utf-8", "replace")


class Exchange:
    """One command and the packets of its answer.

    An exception in the block shuts the connection down: the driver would take what is left of the answer for that of
    its next command.
    """

    def __init__(self, connection: Any) -> None:
        descriptor, traits = plain_socket(connection), traits_of(connection)
        assert descriptor is not None, "asked of an encrypted connection"
        assert traits is not None, "asked of a connection that is not ours"
        self._socket = socket.socket(fileno=os.dup(descriptor))
        self._seconds = traits.patience_seconds
        self._poll = select.poll()
        self._read = bytearray()

    def __enter__(self) -> Exchange:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            with suppress(OSError):  # it is lost already
                self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def send(self, command: bytes) -> None:
        """Send a command, in as many packets as it needs. Raises MySQLdb.OperationalError 2013."""
        packets = []
        for number, begin in enumerate(range(0, len(command) + 1, _LONGEST_PACKET)):
            part = command[begin : begin + _LONGEST_PACKET]
            packets += [len(part).to_bytes(3, "little") + bytes([number & 0xFF]), part]
        left = memoryview(b"".join(packets))
        while left:
            left = left[self._when(select.POLLOUT, partial(self._socket.send, left, socket.MSG_DONTWAIT)) :]

    def packet(self) -> bytes:
        """Return the payload of the next packet, which is shorter than 16 MiB. Raises MySQLdb.OperationalError 2013."""
        head = self._take(4)
        return self._take(int.from_bytes(head[:3], "little"))

    def _take(self, size: int) -> bytes:
        while len(self._read) < size:
            found = self._when(select.POLLIN, partial(self._socket.recv, _READ, socket.MSG_DONTWAIT))
            if not found:
                raise MySQLdb.OperationalError(LOST, LOST_TEXT)
            self._read += found
        taken = bytes(self._read[:size])
        del self._read[:size]
        return taken

    def _when(self, ready: int, act: Callable[[], Any]) -> Any:
        """Return what `act` does as soon as the socket is ready for it."""
        while True:
            try:
                return act()
            except BlockingIOError:
                self._poll.register(self._socket, ready)
                if not self._poll.poll(self._seconds * 1000):
                    text = f"{LOST_TEXT}: the server was silent for {self._seconds} s"
                    raise MySQLdb.OperationalError(LOST, text) from None
            except OSError as error:
                raise MySQLdb.OperationalError(LOST, f"{LOST_TEXT}: {error}") from error
