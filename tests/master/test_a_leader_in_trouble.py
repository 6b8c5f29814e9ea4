"""What goes wrong in the leader: a commit's answer that is lost, a change that is rolled back, a bug in its thread."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from cluster_rig import Rig, source_text
from sqlalchemy import Connection

from support.waiting import wait_until
from unshard.api.verbs import (
    OperateSource,
    PauseTask,
    QueryStatus,
    ResumeTask,
    StartRelay,
    StopTask,
    TransferSource,
    UpdateSource,
)
from unshard.errors import ClusterError
from unshard.master.cluster import Cluster
from unshard.master.election import Leader
from unshard.master.state import Bound, TaskRow
from unshard.master.store import Store, Writing


def test_a_commit_without_an_answer_is_seen(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not rig.master.cluster.state.tasks
    transaction = Store.transaction

    @contextmanager
    def cut_off(store: Store) -> Iterator[Connection]:
        with transaction(store) as connection:
            yield connection
        raise ClusterError("CLUSTER-003", cause="Lost connection to server during query")

    with monkeypatch.context() as patched:
        patched.setattr(Store, "transaction", cut_off)
        with pytest.raises(ClusterError), rig.master.cluster.change() as writing:
            writing.put_task(TaskRow("t", "text"))
    assert list(rig.master.cluster.state.tasks) == ["t"]


def test_a_change_that_was_rolled_back_is_not_seen(rig: Rig) -> None:
    def fail() -> None:
        with rig.master.cluster.change() as writing:
            writing.put_task(TaskRow("t", "text"))
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert not rig.master.cluster.state.tasks


def test_a_bug_in_one_look_does_not_end_the_leader_s_thread(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    def faulty() -> None:
        raise KeyError("not foreseen")

    with monkeypatch.context() as patched:
        patched.setattr(rig.master.cluster, "seat", faulty)
        rig.master.step()  # as its thread does: what it raised would end that
    rig.worker("w1")
    assert rig.sources("a")["result"]
    assert rig.master.election.epoch == 1


def test_a_leader_whose_store_was_away_hears_its_workers_before_it_gives_them_up(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = rig.master.liveness._monotonic()
    for part in (rig.master.election, rig.master.liveness):
        monkeypatch.setattr(part, "_monotonic", lambda: now)
    worker, spare = rig.worker("w1"), rig.worker("w2")
    rig.sources("a", worker="w1")
    bounds = rig.master.cluster.state.bounds
    worker.falls_silent()
    now += 1000.0  # the lease is over, and no beat was heard
    with pytest.raises(ClusterError, match="CLUSTER-001"):
        assert rig.master.cluster.state
    with monkeypatch.context() as full:
        full.setattr(rig.master.election, "step", without_room)
        rig.master.step()
        with pytest.raises(ClusterError, match="database or disk is full"):
            assert rig.master.cluster.state
    rig.master.step()
    spare.beat()
    assert rig.master.cluster.state.bounds == bounds
    assert rig.master.election.epoch == 1
    worker.deaf = False
    worker.beat()
    rig.master.step()
    assert rig.master.cluster.state.bounds == bounds
    assert worker.order is not None
    assert worker.order.epoch == bounds["a"].epoch


def test_a_leader_that_stood_still_hears_its_workers_before_it_gives_them_up(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Within its lease, which may be longer than the workers' ttl."""
    now = rig.master.liveness._monotonic()
    monkeypatch.setattr(rig.master.liveness, "_monotonic", lambda: now)
    worker = rig.worker("w1")
    rig.worker("w2")
    rig.sources("a", worker="w1")
    bounds = rig.master.cluster.state.bounds
    worker.falls_silent()
    now += 1000.0
    rig.master.slept(1.0, 1000.0)
    rig.master.step()
    assert rig.master.cluster.state.bounds == bounds
    now += 1000.0
    rig.master.slept(1.0, 1.1)
    rig.master.step()
    assert rig.master.cluster.state.bounds != bounds


def test_a_database_that_is_slow_is_named_as_why_nobody_leads(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rig.master.election, "lease_seconds", 0.0)  # any look takes longer than half of it
    rig.master.step()
    with pytest.raises(ClusterError, match=r"CLUSTER-001.*\n.*database takes"):
        assert rig.master.cluster.state


VERBS: dict[str, Callable[[Rig], object]] = {
    "start-task": lambda rig: rig.start("t2", "a"),
    "pause-task": lambda rig: rig.master.pause_task(PauseTask(name="t")),
    "resume-task": lambda rig: rig.master.resume_task(ResumeTask(name="t")),
    "stop-task": lambda rig: rig.master.stop_task(StopTask(name="t")),
    "create": lambda rig: rig.sources("b"),
    "stop": lambda rig: rig.master.operate_source(OperateSource(op="stop", source_id=("free",))),
    "disable": lambda rig: rig.master.sources.enable("a", enabled=False),
    "transfer-source": lambda rig: rig.master.transfer_source(TransferSource(source="free", worker="w3")),
    "start-relay": lambda rig: rig.master.start_relay(StartRelay(sources=("a",))),
    "update-source": lambda rig: rig.master.update_source(UpdateSource(config=source_text("free", server_id="77"))),
}


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_whose_master_leads_no_more_behind_its_change_is_not_given_to_another(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    """Told as "another one leads", ctl or the master that was asked would have it done a second time."""
    for name in ("w1", "w2", "w3"):
        rig.worker(name)
    rig.sources("a", worker="w1")
    rig.sources("free", worker="w2")
    rig.start("t", "a")
    wait_until(lambda: rig.settled("t"), "all is told and kept")
    change = Cluster.change

    @contextmanager
    def last(cluster: Cluster) -> Iterator[Writing]:
        with change(cluster) as writing:
            yield writing
        cluster.election._epoch, cluster.election.leader = 0, Leader("m2", "m2:8261")

    monkeypatch.setattr(Cluster, "change", last)
    with pytest.raises(ClusterError, match="CLUSTER-094"):
        VERBS[verb](rig)


def without_room() -> None:
    raise ClusterError("CLUSTER-003", cause="database or disk is full")


def test_a_worker_that_is_forgotten_while_it_is_asked(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    worker = rig.worker("w1")
    rig.sources("a")
    rig.start("t", "a")
    monkeypatch.setattr(rig.master.cluster, "serving", lambda source: Bound("a", "nobody", 1))
    told = rig.master.query_status(QueryStatus(name="t"))["sources"][0]["sourceStatus"]
    assert told["result"]["errors"][0]["ErrCode"] == "CLUSTER-019"
    assert worker.order is not None
