"""A TCP proxy that misbehaves on demand: it cuts, stalls, truncates and damages the data that a server sends."""

from __future__ import annotations

import contextlib
import socket
import threading
from types import TracebackType

_CHUNK = 64 << 10


class FaultProxy:
    """A proxy that listens on a free loopback port, passes bytes to and from `host:port`, and injects faults on demand.

    Faults apply to the data that the server sends, over all connections together: `cut_after` and `flip_after` count
    bytes from the call on. A connection may be hit in the middle of a packet, which is intended.
    """

    def __init__(self, host: str, port: int) -> None:
        self._target = (host, port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self.accepted = 0
        self._lock = threading.Lock()
        self._flowing = threading.Event()
        self._flowing.set()
        self._refusing = False
        self._cut_in: int | None = None
        self._stall_in: int | None = None
        self._stall_behind_cut: int | None = None
        self._flip_in: int | None = None
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._cuts = 0
        threading.Thread(target=self._accept, daemon=True, name="fault proxy").start()

    def cut(self) -> None:
        """Cut every connection now, also those that are being made. New connections are accepted."""
        with self._lock:
            self._cuts += 1
            pairs, self._pairs = self._pairs, []
        for pair in pairs:
            _drop(*pair)

    def lead_to(self, host: str, port: int) -> None:
        """Pass new connections to another server, as when a name or a virtual address moves; cut the existing ones."""
        self._target = (host, port)
        self.cut()

    def refuse(self, refusing: bool = True) -> None:
        """Cut the existing connections and, until told otherwise, every new connection at once."""
        self._refusing = refusing
        if refusing:
            self.cut()

    def lets_in(self, port: int) -> bool:
        """Return whether a connection from that port is passed on; others are cut at once. For subclasses."""
        return port > 0

    def stall(self) -> None:
        """Pass on nothing more from the server until `flow`; the connections stay open."""
        self._flowing.clear()

    def has_stalled(self) -> bool:
        """Return whether nothing is passed on now."""
        return not self._flowing.is_set()

    def flow(self) -> None:
        """End a stall."""
        self._flowing.set()

    def cut_after(self, count: int, *, then_stall_after: int | None = None) -> None:
        """Pass `count` more bytes from the server, then cut the connection that would have carried the next one.

        With `then_stall_after` the proxy stalls, as by `stall`, that many bytes after the cut. A test's thread could
        not do that in time: the connection after the cut may be finished before the thread has seen the cut.
        """
        with self._lock:
            self._cut_in, self._stall_behind_cut = count, then_stall_after

    def has_cut(self) -> bool:
        """Return whether the cut requested by `cut_after` has happened."""
        return self._cut_in is None

    def flip_after(self, count: int) -> None:
        """Pass `count` more bytes from the server, then change one bit of the next byte, once."""
        with self._lock:
            self._flip_in = count

    def close(self) -> None:
        """Cut everything and stop listening. Idempotent."""
        self._refusing = True
        self._flowing.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()

    def __enter__(self) -> FaultProxy:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _accept(self) -> None:
        while True:
            try:
                client, (_, port) = self._listener.accept()
            except ConnectionAbortedError:
                continue
            except OSError:
                return
            self.accepted += 1
            cuts = self._cuts
            refused = self._refusing or not self.lets_in(port)
            try:
                server = None if refused else socket.create_connection(self._target, timeout=10)
            except OSError:
                server = None
            if server is None:
                client.close()
                continue
            server.settimeout(None)
            for end in (client, server):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self._lock:
                cut = self._cuts != cuts  # it was accepted before the cut
                if not cut:
                    self._pairs.append((client, server))
            if cut:
                _drop(client, server)
                continue
            threading.Thread(target=self._pump, args=(client, server, False), daemon=True).start()
            threading.Thread(target=self._pump, args=(server, client, True), daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket, from_server: bool) -> None:
        try:
            while data := source.recv(_CHUNK):
                cut = False
                if from_server:
                    self._flowing.wait()
                    passed, data = self._before_stall(data)
                    sink.sendall(passed)
                    self._flowing.wait()
                    data, cut = self._harm(data)
                sink.sendall(data)
                if cut:
                    break
        except OSError:
            pass  # the other end is gone, or a cut came from another thread: the connection ends here either way
        finally:
            _drop(source, sink)

    def _before_stall(self, data: bytes) -> tuple[bytes, bytes]:
        """Return the bytes before a stall that begins in this data, and the rest."""
        with self._lock:
            if self._stall_in is None:
                return b"", data
            if self._stall_in >= len(data):
                self._stall_in -= len(data)
                return b"", data
            passed, self._stall_in = self._stall_in, None
            self._flowing.clear()
            return data[:passed], data[passed:]

    def _harm(self, data: bytes) -> tuple[bytes, bool]:
        with self._lock:
            if self._flip_in is not None:
                if self._flip_in < len(data):
                    harmed = bytearray(data)
                    harmed[self._flip_in] ^= 0x10
                    data, self._flip_in = bytes(harmed), None
                else:
                    self._flip_in -= len(data)
            if self._cut_in is None:
                return data, False
            if self._cut_in < len(data):
                data, self._cut_in = data[: self._cut_in], None
                if self._stall_behind_cut is not None:
                    self._stall_in, self._stall_behind_cut = self._stall_behind_cut, None
                return data, True
            self._cut_in -= len(data)
            return data, False


def _drop(*sockets: socket.socket) -> None:
    for end in sockets:
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
        end.close()
