"""The target of a bench: its product and its distance."""

from __future__ import annotations

import multiprocessing
import queue
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection

from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.throwaway_server import ThrowawayServer
from unshard.testing.tidb_server import TidbServer

_CHUNK = 256 << 10


@dataclass(frozen=True, slots=True)
class Target:
    """A product (`mariadb`, `tidb`), and the time that a proxy adds to each round trip, in milliseconds."""

    product: str = "mariadb"
    round_trip_ms: float = 0.0

    @property
    def is_tidb(self) -> bool:
        return self.product == "tidb"

    @contextmanager
    def server(self, options: dict[str, str]) -> Iterator[Reached]:
        """Start a throwaway server of the product. `options` are MariaDB's."""
        made: ThrowawayServer = TidbServer() if self.is_tidb else MariadbServer(options)
        with made, _away(made.port, self.round_trip_ms) as port:
            yield Reached(made, port)


MARIADB = Target()


@dataclass(frozen=True, slots=True)
class Reached:
    """A server, and the port at which a task reaches it."""

    server: ThrowawayServer
    port: int


@contextmanager
def _away(port: int, round_trip_ms: float) -> Iterator[int]:
    """Yield a port through which the server at `port` is that far away. The proxy is a separate process."""
    if not round_trip_ms:
        yield port
        return
    spawn = multiprocessing.get_context("spawn")
    ours, theirs = spawn.Pipe()
    proxy = spawn.Process(target=_delay, args=(port, round_trip_ms / 2000, theirs), daemon=True)
    proxy.start()
    try:
        yield int(ours.recv())
    finally:
        proxy.kill()
        proxy.join()


def _delay(port: int, seconds: float, told: Connection) -> None:
    """Pass bytes to and from the server, delayed by that time in each direction."""
    listener = socket.create_server(("127.0.0.1", 0))
    told.send(listener.getsockname()[1])
    while True:
        client, _ = listener.accept()
        server = socket.create_connection(("127.0.0.1", port))
        for one, other in ((client, server), (server, client)):
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            _start(_pump, one, other, seconds)


def _pump(source: socket.socket, sink: socket.socket, seconds: float) -> None:
    """Read at once, and write the data when its time has come."""
    waiting: queue.SimpleQueue[tuple[float, bytes]] = queue.SimpleQueue()
    _start(_write, waiting, sink)
    try:
        while data := source.recv(_CHUNK):
            waiting.put((time.monotonic() + seconds, data))
    except OSError:
        pass
    waiting.put((time.monotonic(), b""))


def _write(waiting: queue.SimpleQueue[tuple[float, bytes]], sink: socket.socket) -> None:
    while True:
        due, data = waiting.get()
        time.sleep(max(0.0, due - time.monotonic()))
        try:
            if not data:
                sink.shutdown(socket.SHUT_RDWR)
                return
            sink.sendall(data)
        except OSError:
            return


def _start(work: Callable[..., None], *arguments: object) -> None:
    threading.Thread(target=work, args=arguments, daemon=True).start()


def contents(server: ThrowawayServer, table: str, columns: tuple[str, ...]) -> tuple[object, ...]:
    """Return the number of rows of a table, and sums of its values' checksums, which are equal for equal tables."""
    sums = ", ".join(f"SUM(CRC32({name}))" for name in columns)
    return server.query(f"SELECT COUNT(*), {sums} FROM {table}")[0]
