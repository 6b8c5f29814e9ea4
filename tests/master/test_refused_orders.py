"""A worker that can't carry out its order, for a secret that is not on its machine: told, and tried again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

import pytest
from cluster_rig import task_text

from support.waiting import wait_until
from unshard.api.heartbeat import SourceOrder
from unshard.api.status import Stage
from unshard.api.verbs import ListMember, OperateSource, QueryStatus, StartTask, TransferSource
from unshard.checks.result import CheckReport
from unshard.config.subtask import SubtaskConfig
from unshard.errors import ClusterError
from unshard.master import handover
from unshard.master.service import Master
from unshard.master.store import Store
from unshard.target.receipts import Order
from unshard.worker import agent as worker_agent
from unshard.worker.agent import Agent
from unshard.worker.shared_relay import SharedRelay
from unshard.worker.source_worker import Means, SourceWorker
from unshard.worker.subtask import Subtask


def source_of(secret: Path, more: str = "") -> str:
    login = f"{{host: 127.0.0.1, port: 1, user: root, password: 'file:{secret}'}}"
    return f"source-id: s1\nfrom: {login}\n{more}"


def _refuses(config: SubtaskConfig, relay: SharedRelay, order: Order | None) -> Subtask:
    raise ClusterError("CLUSTER-021", cause="no server is needed here")


@contextmanager
def cluster(folder: Path, *, own_folders: bool = True) -> Iterator[tuple[Master, dict[str, Agent]]]:
    """A master and two workers, real ones, in this process."""
    agents: dict[str, Agent] = {}
    url = f"sqlite:///{folder / 'state.db'}"
    master = Master(
        Store(url),
        agents.__getitem__,
        "m",
        "m:1",
        lease_seconds=60,
        worker_ttl_seconds=60,
        check=lambda *_: CheckReport(()),
        ask=lambda _: None,
    )
    master.start()
    stop, threads = Event(), []
    for name in ("w1", "w2"):
        agents[name] = Agent(name, master, Means(name, _refuses, relay_dir=str(folder / name) if own_folders else ""))
        threads.append(Thread(target=agents[name].run, args=(stop,)))
        threads[-1].start()
        wait_until(lambda: len(agents) == len(master.liveness.online()), "the worker is heard")
    try:
        yield master, agents
    finally:
        stop.set()
        for thread in threads:
            thread.join()
        master.close()


def serves(agent: Agent) -> bool:
    return agent.host is not None


def test_a_password_that_is_not_on_the_worker(tmp_path: Path) -> None:
    secret = tmp_path / "password"
    with cluster(tmp_path) as (master, agents):
        (created,) = master.operate_source(OperateSource(op="create", config=(source_of(secret),)))["sources"]
        assert str(secret) in created["msg"]
        (begun,) = master.start_task(StartTask(task=task_text("t", "s1")))["sources"]
        assert (begun["result"], str(secret) in begun["msg"]) == (False, True)
        (short,) = master.query_status(QueryStatus())["tasks"]
        assert short["taskStatus"].startswith("Error - Worker w1 can't serve source s1.")
        (whole,) = master.query_status(QueryStatus(name="t"))["sources"]
        assert whole["sourceStatus"]["service"] == "Refused"
        (error,) = whole["sourceStatus"]["result"]["errors"]
        assert str(secret) in error["Message"] + error["RawCause"]
        assert master.list_member(ListMember(worker=True))["result"]
        assert master.transfer_source(TransferSource(source="s1", worker="w2"))["result"]
        secret.write_text("a password")
        agents["w2"].wake()
        wait_until(lambda: serves(agents["w2"]), "it has tried again")
        assert not serves(agents["w1"])


def test_a_worker_that_cannot_begin_hands_the_source_to_one_that_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = tmp_path / "password"
    secret.write_text("a password")

    def begin(order: SourceOrder, means: Means, changed: Callable[[], None]) -> SourceWorker:
        if means.worker == "w1":
            raise ClusterError("CLUSTER-021", cause="it is not on this machine")
        return SourceWorker(order, means, changed)

    monkeypatch.setattr(worker_agent, "SourceWorker", begin)
    monkeypatch.setattr(handover, "LONGEST_SECONDS", 0.0)
    with cluster(tmp_path) as (master, agents):
        master.operate_source(OperateSource(op="create", config=(source_of(secret),), worker="w1"))

        def moved() -> bool:
            master.step()
            agents["w1"].wake()
            return serves(agents["w2"])

        wait_until(moved, "the other worker serves it")
        assert not serves(agents["w1"])
        (told,) = master.operate_source(OperateSource(op="show"))["sources"]
        assert (told["worker"], "it is not on this machine" in told["msg"]) == ("w2", True)


def test_a_new_password_that_is_not_on_the_worker_yet(tmp_path: Path) -> None:
    """Everything goes on by the old one until it is there, and other orders are carried out."""
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_text("old")
    kept = "enable-relay: true\n"
    with cluster(tmp_path) as (master, agents):
        agent = agents["w1"]
        master.operate_source(OperateSource(op="create", config=(source_of(first, kept),)))
        wait_until(lambda: serves(agent), "it serves the source")
        assert agent.host is not None
        relay = agent.host.relay
        wait_until(lambda: relay.unit is not None, "the relay is kept")
        master.operate_source(OperateSource(op="update", config=(source_of(second, kept),)))
        wait_until(
            lambda: master.liveness.refusal("w1", master.cluster.state.bounds["s1"].epoch) is not None, "it is refused"
        )
        (told,) = master.operate_source(OperateSource(op="show"))["sources"]
        assert str(second) in told["msg"]
        assert relay.wanted is Stage.RUNNING
        assert relay.source.database.password == f"file:{first}"
        epoch = master.cluster.state.bounds["s1"].epoch

        def is_tried() -> bool:
            brief = master.liveness.brief("w1", epoch, "t")
            return brief is not None and brief.error is not None and "no server is needed" in brief.error.raw_cause

        master.start_task(StartTask(task=task_text("t", "s1")))
        wait_until(is_tried, "the order of the task is carried out all the same")
        second.write_text("new")
        agent.wake()
        wait_until(lambda: relay.source.database.password == f"file:{second}", "the relay has the new one")
        wait_until(lambda: agent._refusal is None, "nothing is refused any more")
        assert relay.unit is not None
        assert relay.wanted is Stage.RUNNING


def test_a_relay_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    secret = tmp_path / "password"
    secret.write_text("a password")
    (tmp_path / "w1").write_text("a file is in the place of the folder")
    with cluster(tmp_path) as (master, agents):
        master.operate_source(OperateSource(op="create", config=(source_of(secret, "enable-relay: true\n"),)))
        wait_until(lambda: serves(agents["w1"]), "it serves the source")

        def told() -> str:
            (whole,) = master.query_status(QueryStatus(sources=("s1",)))["sources"]
            return str(whole["sourceStatus"]["relayStatus"])

        wait_until(lambda: "RELAY-014" in told(), "the status tells it", told=told)
        assert "'stage': 'Paused'" in told()


def test_a_source_gets_another_relay_folder(tmp_path: Path) -> None:
    """What RELAY-014 has a user do: name another `relay-dir` in the source file."""
    secret = tmp_path / "password"
    secret.write_text("a password")
    (tmp_path / "full").write_text("a file is in the place of the folder")
    with cluster(tmp_path, own_folders=False) as (master, agents):
        kept = f"enable-relay: true\nrelay-dir: {tmp_path}/"
        master.operate_source(OperateSource(op="create", config=(source_of(secret, f"{kept}full\n"),)))
        wait_until(lambda: serves(agents["w1"]), "it serves the source")

        def told() -> str:
            (whole,) = master.query_status(QueryStatus(sources=("s1",)))["sources"]
            return str(whole["sourceStatus"]["relayStatus"])

        wait_until(lambda: "RELAY-014" in told(), "the status tells it", told=told)
        master.operate_source(OperateSource(op="update", config=(source_of(secret, f"{kept}other\n"),)))
        wait_until((tmp_path / "other" / "s1").exists, "the relay has the other folder", told=told)
        wait_until(lambda: "RELAY-014" not in told(), "the error is over", told=told)
