"""The master over HTTP: verbs, beats, and requests that reach one that only follows."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread

import pytest
from cluster_rig import FakeWorker, source_text, task_text
from served_master import Knock, served

from support.waiting import wait_until
from unshard.api.heartbeat import DesiredState, Heartbeat
from unshard.config.listener import ListenerConfig
from unshard.errors import ClusterError
from unshard.master.election import Leader
from unshard.web import leader, links
from unshard.web.alive import answer_of
from unshard.web.links import HttpMasterLink


def test_a_master_that_follows_passes_everything_on(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'm.db'}"
    with served(url, "one") as one, served(url, "two") as two:
        assert (one.master.election.epoch, two.master.election.epoch) == (1, 0)
        worker = FakeWorker("w1", Knock([two.base]))
        one.workers[worker.addr] = worker
        heard: list[DesiredState] = []

        def is_heard() -> bool:
            heard.extend(filter(None, [worker.beat()]))
            return bool(heard)

        wait_until(is_heard, "a beat that is heard in time")
        assert heard[0].order is None
        assert heard[0].leader == one.master.addr
        told = two.ask("operate-source", op="create", config=[source_text("a")])
        assert told["sources"][0]["worker"] == "w1", told
        assert two.ask("start-task", task=task_text("t", "a"))["result"]
        assert two.ask("query-status")["tasks"][0]["taskStatus"] == "Running"
        members = two.ask("list-member", leader=True)["members"]
        assert members == [{"leader": {"msg": "", "name": "one", "addr": one.master.addr}}]


def test_what_goes_wrong_is_told_in_ctl_s_form(tmp_path: Path) -> None:
    with served(f"sqlite:///{tmp_path / 'm.db'}", "one") as one:
        told = one.ask("stop-task", name="nothing")
        assert told["result"] is False
        assert told["msg"].startswith("CLUSTER-017")
        told = one.ask("start-task", task="name: [")
        assert told["result"] is False
        assert told["msg"].startswith("CONFIG-003")
        answer = one.client.post("/apis/v1alpha1/ctl/stop-task", json={"nome": "x"})
        assert answer.status_code == 422
        assert answer.json()["result"] is False


def test_nobody_waits_for_a_frozen_leader(tmp_path: Path) -> None:
    """Its kernel takes connections, and nothing more: who follows says soon that there is no leader."""
    url = f"sqlite:///{tmp_path / 'm.db'}"
    with served(url, "one", lease=60.0), served(url, "two", lease=60.0) as two, silent() as frozen:
        address = f"127.0.0.1:{frozen.getsockname()[1]}"
        two.master._stop.set()  # it looks no more who leads
        two.master._thread.join()
        two.master.election.leader = Leader("one", address)
        answer = two.client.post("/apis/v1alpha1/ctl/query-status", json={}, timeout=60.0)
        assert answer.json()["error_code"] == "CLUSTER-001"
        assert address in answer.text
        link = HttpMasterLink([two.base.removeprefix("http://")], ListenerConfig())
        with pytest.raises(ClusterError) as caught:
            link.beat(Heartbeat(name="w1", addr="w1:8262"))
        link.close()
        assert caught.value.code == "CLUSTER-022"


@pytest.mark.parametrize("freezes", [False, True])
def test_a_leader_that_goes_with_a_request_in_hand_is_told_as_such(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, freezes: bool
) -> None:
    """Told as "no leader", another master would be asked to do it once more."""
    monkeypatch.setattr(leader, "answer_of", partial(answer_of, every=0.05, most=2, seconds=0.2))
    taken, over = Event(), Event()

    class Dying(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            if not taken.is_set():
                self.send_response(405)
                self.end_headers()
            elif freezes:
                over.wait(60)

        def do_POST(self) -> None:
            taken.set()
            if freezes:
                over.wait(60)

    url = f"sqlite:///{tmp_path / 'm.db'}"
    dying = ThreadingHTTPServer(("127.0.0.1", 0), Dying)
    Thread(target=dying.serve_forever, daemon=True).start()
    try:
        with served(url, "one", lease=60.0), served(url, "two", lease=60.0) as two:
            two.master.election.leader = Leader("one", f"127.0.0.1:{dying.server_address[1]}")
            answer = two.client.post("/apis/v1alpha1/ctl/stop-task", json={"name": "t"}, timeout=60.0)
            assert taken.wait(60)
            assert answer.status_code == 504
            assert answer.json()["error_code"] == "CLUSTER-087"
    finally:
        over.set()
        dying.shutdown()
        dying.server_close()


def test_a_worker_waits_for_a_silent_master_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(links, "ANSWER_SECONDS", 6.0)  # the other one may be slow too
    with served(f"sqlite:///{tmp_path / 'm.db'}", "one", lease=60.0, ttl=60.0) as one, silent() as frozen:
        address = one.base.removeprefix("http://")
        link = HttpMasterLink([f"127.0.0.1:{frozen.getsockname()[1]}", address], ListenerConfig())
        for _ in range(3):
            assert link.beat(Heartbeat(name="w1", addr="w1:8262")).leader == address
        link.close()
        frozen.accept()
        with pytest.raises(BlockingIOError):
            frozen.accept()


def test_a_worker_that_one_master_refuses_asks_the_others(tmp_path: Path) -> None:
    """Its file of tokens may be older than theirs."""

    class Refusing(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.send_response(401)
            self.end_headers()

    refusing = ThreadingHTTPServer(("127.0.0.1", 0), Refusing)
    Thread(target=refusing.serve_forever, daemon=True).start()
    addresses = [f"127.0.0.1:{refusing.server_address[1]}"]
    try:
        link = HttpMasterLink(addresses, ListenerConfig())
        with pytest.raises(ClusterError, match="CLUSTER-024"):
            link.beat(Heartbeat(name="w1", addr="w1:8262"))
        link.close()
        with served(f"sqlite:///{tmp_path / 'm.db'}", "one") as one:
            link = HttpMasterLink([*addresses, one.master.addr], ListenerConfig())

            def heard() -> bool:
                with suppress(ClusterError):  # a machine that is slow answers another beat
                    return link.beat(Heartbeat(name="w1", addr="w1:8262")).leader == one.master.addr
                return False

            wait_until(heard, "it is heard")
            link.close()
    finally:
        refusing.shutdown()
        refusing.server_close()


@contextmanager
def silent() -> Iterator[socket.socket]:
    """The socket of a process that is frozen."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.setblocking(False)
        yield listening
