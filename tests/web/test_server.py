"""A served application: what it listens on, bounds of requests and connections, a stop that lets answers out."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from served import get, post, served, server_client, slow_is_in_hand, slow_may_end, tokens

from support.waiting import wait_until
from unshard.config.listener import ListenerConfig
from unshard.errors import ClusterError
from unshard.web import server as web_server
from unshard.web.audit import AuditLog
from unshard.web.guard import guarded_app
from unshard.web.server import WebServer


def raw(port: int, data: bytes) -> bytes:
    """The answer up to the end of the connection, which comes as a reset where not all was read that was sent."""
    answer = b""
    with socket.create_connection(("127.0.0.1", port), 60.0) as connection, suppress(ConnectionError):
        connection.sendall(data)
        while piece := connection.recv(65536):
            answer += piece
    return answer


def test_it_serves_on_a_port_of_the_kernel_and_stops(tmp_path: Path) -> None:
    with served(tmp_path) as server:
        assert server.address == f"127.0.0.1:{server.port}"
        answer = get(f"http://{server.address}/status")
        assert answer.json() == {"who": "local", "role": None, "via": ""}
        assert "server" not in answer.headers
    with pytest.raises(httpx.ConnectError):
        get(f"http://{server.address}/status")


def test_answers_do_not_wait_for_an_ack(tmp_path: Path) -> None:
    """An ACK is held back for 40 ms: the server sends without delay, so that a second piece waits for none."""
    with served(tmp_path) as server, server_client(server) as client:
        client.get("/status")
        (connection,) = server._server.server_state.connections
        accepted = connection.transport.get_extra_info("socket")
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


@pytest.mark.parametrize("addr", ["0.0.0.0:0", ":0"])
def test_beyond_loopback_it_needs_to_know_who_may_call(tmp_path: Path, addr: str) -> None:
    with pytest.raises(ClusterError) as caught, served(tmp_path, addr):
        pass
    assert caught.value.code == "CLUSTER-050"
    with served(tmp_path, addr, token_file=str(tokens(tmp_path, ann="viewer"))) as server:
        assert get(f"http://127.0.0.1:{server.port}/status").status_code == 401


@pytest.mark.parametrize("addr", ["127.0.0.1", "127.0.0.1:x", "127.0.0.1:99999", "no such host:1", "192.0.2.1:1"])
def test_an_address_that_cannot_be_taken(tmp_path: Path, addr: str) -> None:
    with pytest.raises(ClusterError) as caught, served(tmp_path, addr, token_file=str(tokens(tmp_path, a="viewer"))):
        pass
    assert caught.value.code == "CLUSTER-051"


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    with (
        served(tmp_path) as server,
        pytest.raises(ClusterError, match="in use") as caught,
        served(tmp_path, server.address),
    ):
        pass
    assert caught.value.code == "CLUSTER-051"


def test_an_application_with_an_open_route_is_not_served() -> None:
    app = guarded_app("x", audit=AuditLog(""))

    @app.get("/open")
    def opened() -> None: ...

    def plain(app: FastAPI) -> None:
        with pytest.raises(RuntimeError, match="state no role"):
            WebServer(app, ListenerConfig(), "127.0.0.1:0")

    plain(app)
    plain(FastAPI())


def test_a_body_is_bounded_by_its_own_word_and_as_it_comes(tmp_path: Path) -> None:
    with served(tmp_path, max_request_bytes=2000) as server:
        url = f"http://{server.address}/tasks/t"
        fits = {"name": "n", "password": "x" * 1000}
        assert post(url, json=fits).status_code == 200
        long = post(url, json={"name": "n", "password": "x" * 2000})
        assert long.status_code == 413
        assert long.json()["error_code"] == "CLUSTER-055"
        assert post(url, content=iter([b"x" * 900] * 3)).status_code == 413


def test_a_slow_body_a_slow_head_and_a_long_head_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unshard.web.server.BODY_SECONDS", 0.4)
    with served(tmp_path) as server:
        head = b"POST /tasks/t HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{"
        assert raw(server.port, head).startswith(b"HTTP/1.1 408")
        long = b"GET /status HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 100_000
        assert raw(server.port, long).startswith(b"HTTP/1.1 400")
        monkeypatch.setattr(web_server, "HEADER_SECONDS", 0.4)
        monkeypatch.setattr(server._server.config, "timeout_keep_alive", 3600)  # else that is what ends the last one
        assert raw(server.port, b"") == b""
        assert raw(server.port, b"GET /status HTTP/1.1\r\nHost: loc") == b""
        kept = b"GET /status HTTP/1.1\r\nHost: localhost\r\n\r\n"
        wait_until(lambda: raw(server.port, kept + b"GET /sta").count(b"200 OK") == 1, "a head that is sent in time")


@pytest.fixture
def slow() -> Iterator[None]:
    """A request for `/slow` ends when the test says so, or has ended itself."""
    slow_is_in_hand.clear()
    slow_may_end.clear()
    yield
    slow_may_end.set()


@pytest.mark.usefixtures("slow")
def test_a_request_that_takes_too_long_is_told_so(tmp_path: Path) -> None:
    with served(tmp_path, request_timeout="700ms") as server:
        answer = get(f"http://{server.address}/slow")
        assert answer.status_code == 504
        assert answer.json()["error_code"] == "CLUSTER-057"
        assert slow_is_in_hand.wait(60)
        slow_may_end.set()
        wait_until(lambda: lets_in(server), "it serves on")


def test_more_connections_than_there_may_be_are_closed(tmp_path: Path) -> None:
    with served(tmp_path, max_connections=4) as server:
        kept = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(4)]
        wait_until(lambda: not lets_in(server), "it has seen all of them")
        for one in kept:
            one.close()
        wait_until(lambda: lets_in(server), "there is room again")


def lets_in(server: WebServer) -> bool:
    try:
        return get(f"http://{server.address}/status").status_code == 200
    except httpx.TransportError:
        return False


@pytest.mark.usefixtures("slow")
def test_a_stop_lets_the_answer_in_hand_out(tmp_path: Path) -> None:
    answers: list[Any] = []
    with served(tmp_path) as server:
        thread = Thread(target=lambda: answers.append(get(f"http://{server.address}/slow")))
        thread.start()
        assert slow_is_in_hand.wait(60)
        stop = Thread(target=server.stop, args=(60,))
        stop.start()
        wait_until(lambda: not lets_in(server), "it stops")
        slow_may_end.set()
        stop.join()
        thread.join()
    assert [answer.status_code for answer in answers] == [200]


def test_pages_of_other_sites_are_refused_where_there_are_no_tokens(tmp_path: Path) -> None:
    with served(tmp_path) as server:
        url = f"http://{server.address}/status"
        assert get(url, headers={"Origin": "http://evil.example"}).status_code == 403
        assert get(url, headers={"Host": "evil.example"}).json()["error_code"] == "CLUSTER-060"
        assert get(url, headers={"Origin": f"http://{server.address}"}).status_code == 200
        assert get(url.replace("127.0.0.1", "localhost")).status_code == 200


def test_a_server_that_has_ended_by_itself_is_told_to_its_process(tmp_path: Path) -> None:
    with served(tmp_path) as server:
        server.check()
        server._server.should_exit = True
        server._thread.join()
        with pytest.raises(ClusterError) as caught:
            server.check()
    assert caught.value.code == "CLUSTER-084"
