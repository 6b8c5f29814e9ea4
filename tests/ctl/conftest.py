"""A master that answers what a test wants, and keeps what it was asked."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest

from unshard.api.verbs import PATH
from unshard.ctl import client


@dataclass
class FakeMaster:
    """`answers` by verb, as (status, body); `asked`: verb, body and headers of each request, in order.

    `breaks`, `hangs`: verbs whose connection is broken, or is left without an answer for as long as the caller waits.
    """

    server: ThreadingHTTPServer
    answers: dict[str, tuple[int, Any]] = field(default_factory=dict)
    asked: list[tuple[str, dict[str, Any], dict[str, str]]] = field(default_factory=list)
    breaks: set[str] = field(default_factory=set)
    hangs: set[str] = field(default_factory=set)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.server.server_address[1]}"

    @property
    def verbs(self) -> list[str]:
        return [verb for verb, _, _ in self.asked]


@contextmanager
def fake_master() -> Iterator[FakeMaster]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            assert self.path.startswith(f"{PATH}/")
            verb = self.path.rpartition("/")[2]
            fake.asked.append((verb, body, dict(self.headers)))
            if verb in fake.hangs:
                self.connection.recv(1)
            if verb in fake.breaks | fake.hangs:
                return
            status, answer = fake.answers.get(verb, (200, {"result": True, "msg": "", "sources": []}))
            told = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(told)))
            self.end_headers()
            self.wfile.write(told)

        def log_message(self, *args: object) -> None:
            del args

    fake = FakeMaster(ThreadingHTTPServer(("127.0.0.1", 0), Handler))
    thread = Thread(target=fake.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield fake
    finally:
        fake.server.shutdown()
        fake.server.server_close()
        thread.join()


@pytest.fixture
def master(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeMaster]:
    for name in ("UNSHARD_MASTER_ADDR", "DM_MASTER_ADDR", "UNSHARD_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(client, "ALIVE_SECONDS", 60.0)  # this one lives, however busy the machine is
    with fake_master() as fake:
        yield fake


@pytest.fixture
def other() -> Iterator[FakeMaster]:
    with fake_master() as fake:
        yield fake
