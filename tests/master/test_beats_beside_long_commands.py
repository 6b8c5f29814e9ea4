"""Beats are answered while as many commands last as the server has threads for."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from typing import Any

import httpx
from cluster_rig import FakeWorker, source_text, task_text
from served_master import Knock, Served, served

from support.waiting import wait_until
from unshard.api.heartbeat import DesiredState, Heartbeat
from unshard.api.verbs import PATH
from unshard.checks.result import CheckReport
from unshard.master.election import Leader
from unshard.web.links import BEAT_PATH

COMMANDS = 40
"""How many requests Starlette handles at once in threads."""


class Server(ThreadingHTTPServer):
    request_queue_size = 4 * COMMANDS
    daemon_threads = True


def test_the_leader_answers_beats_while_forty_commands_last(tmp_path: Path) -> None:
    """It takes sources away from workers that it does not hear for a ttl, and these stop their tasks."""
    may_end, begun = Event(), list[str]()

    def check(task: Any, *others: Any) -> CheckReport:
        del others
        begun.append(task.name)
        assert may_end.wait(600)
        return CheckReport(())

    with served(f"sqlite:///{tmp_path / 'm.db'}", "one", check=check) as one:
        worker = FakeWorker("w1", Knock([one.base]))
        one.workers[worker.addr] = worker
        worker.beat()
        assert one.ask("operate-source", op="create", config=[source_text("a")])["sources"][0]["result"]
        with commands(one, "check-task", {"task": task_text("t", "a")}, may_end):
            wait_until(lambda: len(begun) == COMMANDS, "all commands last", told=lambda: str(begun))
            assert leader_told(one) == one.master.addr


def test_a_master_that_follows_passes_beats_on_while_forty_commands_last(tmp_path: Path) -> None:
    may_end, begun = Event(), list[str]()

    class Leading(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self.send_response(405)
            self.end_headers()

        def do_POST(self) -> None:
            answer = DesiredState(ttl_seconds=60.0, leader="leads").model_dump_json().encode()
            if self.path != BEAT_PATH:
                begun.append(self.path)
                assert may_end.wait(600)
                answer = b"{}"
            self.send_response(200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

    url = f"sqlite:///{tmp_path / 'm.db'}"
    leading = Server(("127.0.0.1", 0), Leading)
    Thread(target=leading.serve_forever, daemon=True).start()
    try:
        with served(url, "one"), served(url, "two") as two:
            two.master._stop.set()  # it looks no more who leads
            two.master._thread.join()
            two.master.election.leader = Leader("one", f"127.0.0.1:{leading.server_address[1]}")
            with commands(two, "stop-task", {"name": "t"}, may_end):
                wait_until(lambda: len(begun) == COMMANDS, "all commands last", told=lambda: str(len(begun)))
                assert leader_told(two) == "leads"
    finally:
        leading.shutdown()
        leading.server_close()


@contextmanager
def commands(master: Served, verb: str, body: dict[str, Any], may_end: Event) -> Iterator[None]:
    """As many commands as take all threads of the master's server. They end after the block."""
    with ThreadPoolExecutor(COMMANDS) as threads:
        ask = partial(httpx.post, f"{master.base}{PATH}/{verb}", json=body, timeout=600.0, trust_env=False)
        asked = [threads.submit(ask) for _ in range(COMMANDS)]
        try:
            yield
        finally:
            may_end.set()
        assert all(answer.result().is_success for answer in asked)


def leader_told(master: Served) -> str:
    """The leader's address in the answer to a beat."""
    beat = Heartbeat(name="w1", addr="w1:8262").model_dump(mode="json", by_alias=True)
    answer = master.client.post(BEAT_PATH, json=beat)
    assert answer.is_success, answer.text
    return str(answer.json()["leader"])
