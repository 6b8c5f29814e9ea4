"""The proxy that misbehaves on demand, before a server that never ends what it has to say."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest

from unshard.testing.proxy import FaultProxy


@pytest.fixture
def port() -> Iterator[int]:
    """Where one byte after the other comes, without end."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def speak(client: socket.socket) -> None:
            with client:
                try:
                    while True:
                        client.sendall(b"x" * 1000)
                except OSError:
                    return

        def listen() -> None:
            while True:
                try:
                    client, _ = listener.accept()
                except OSError:
                    return
                threading.Thread(target=speak, args=(client,), daemon=True).start()

        threading.Thread(target=listen, daemon=True).start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)


def received(client: socket.socket, most: int = 1 << 30) -> int:
    """How many bytes come before the end, or until there are so many."""
    got = 0
    client.settimeout(90)
    try:
        while got < most and (data := client.recv(1 << 16)):
            got += len(data)
    except ConnectionResetError:
        return got
    return got


def test_a_stall_behind_a_cut_needs_nobody_to_see_the_cut(port: int) -> None:
    with FaultProxy("127.0.0.1", port) as proxy:
        proxy.cut_after(5_000, then_stall_after=7_000)
        with socket.create_connection(("127.0.0.1", proxy.port)) as first:
            assert received(first) <= 5_000
        assert proxy.has_cut()
        with socket.create_connection(("127.0.0.1", proxy.port)) as second:
            assert received(second, 7_000) == 7_000
            second.settimeout(0.1)
            with pytest.raises(TimeoutError):
                second.recv(1)
        assert proxy.has_stalled()


def test_a_connection_that_is_just_being_made_is_cut_too(port: int) -> None:
    class Late(FaultProxy):
        def lets_in(self, port: int) -> bool:
            if self.accepted == 1:
                self.cut()  # by another thread, in life
            return True

    with Late("127.0.0.1", port) as proxy:
        with socket.create_connection(("127.0.0.1", proxy.port)) as client:
            assert received(client) == 0
        with socket.create_connection(("127.0.0.1", proxy.port)) as client:
            assert client.recv(1)
