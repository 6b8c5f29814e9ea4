"""Commands of a leader that has just begun to lead: they wait for the workers' first beats, or tell that they lack."""

from __future__ import annotations

from collections.abc import Callable
from threading import Timer
from typing import Any

import pytest
from cluster_rig import FakeWorker, Rig

from support.waiting import wait_until
from unshard.api.verbs import ListMember, PauseTask, PurgeRelay, QueryStatus, ResumeTask, StopTask, TransferSource
from unshard.errors import ClusterError
from unshard.master import cluster as module


@pytest.fixture
def worker(rig: Rig) -> FakeWorker:
    """It serves source `a` with a task `t`; `w2` is free."""
    found = rig.worker("w1")
    rig.sources("a", worker="w1")
    rig.worker("w2")
    rig.start("t", "a")
    wait_until(lambda: rig.settled("t"), "all is told and kept")
    return found


def leads_anew(rig: Rig, *silent: FakeWorker) -> None:
    """As a new leader, which has heard nobody yet; these workers don't beat."""
    for worker in silent:
        worker.falls_silent()
    rig.master.liveness.begin(rig.master.cluster.state.workers)


def speaks(worker: FakeWorker) -> None:
    worker.deaf = False


VERBS: dict[str, Callable[[Rig], dict[str, Any]]] = {
    "start-task": lambda rig: rig.start("t2", "a"),
    "pause-task": lambda rig: rig.master.pause_task(PauseTask(name="t")),
    "resume-task": lambda rig: rig.master.resume_task(ResumeTask(name="t")),
    "stop-task": lambda rig: rig.master.stop_task(StopTask(name="t")),
    "query-status": lambda rig: rig.master.query_status(QueryStatus(name="t")),
    "transfer-source": lambda rig: rig.master.transfer_source(TransferSource(source="a", worker="w2")),
    "purge-relay": lambda rig: rig.master.purge_relay(PurgeRelay(sources=("a",), filename="bin.000002")),
    "create": lambda rig: rig.sources("b", worker="w2"),
    "list-member": lambda rig: rig.master.list_member(ListMember(worker=True)),
}


@pytest.mark.parametrize("verb", VERBS)
def test_a_command_waits_for_the_first_beat(rig: Rig, worker: FakeWorker, verb: str) -> None:
    spare = rig.workers["w2:8262"]
    leads_anew(rig, worker, spare)
    timers = [Timer(0.3, speaks, (one,)) for one in (worker, spare)]
    for timer in timers:
        timer.start()
    told = VERBS[verb](rig)
    for timer in timers:
        timer.join()
    assert told["result"]
    done = "files before bin.000002 are gone" if verb == "purge-relay" else ""
    assert all(one["result"] and one["msg"] == done for one in told.get("sources", ()))
    if verb == "query-status":
        assert told["sources"][0]["sourceStatus"]["service"] == "Served"
    if verb == "transfer-source":
        assert rig.master.cluster.state.bounds["a"].worker == "w2"
    if verb == "list-member":
        assert [one["stage"] for one in told["members"][0]["worker"]["workers"]] == ["bound", "free"]


def test_a_source_is_not_moved_off_a_worker_that_was_not_heard(
    rig: Rig, worker: FakeWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its tasks may run there: nobody has asked them to pause."""
    monkeypatch.setattr(module, "FIRST_BEAT_SECONDS", 0.1)
    known = rig.master.cluster.state.bounds
    leads_anew(rig, worker)
    rig.workers["w2:8262"].beat()
    with pytest.raises(ClusterError, match=r"CLUSTER-099.*the leader has just changed.*w1"):
        VERBS["transfer-source"](rig)
    assert rig.master.cluster.state.bounds == known
    speaks(worker)
    assert VERBS["transfer-source"](rig)["result"]


@pytest.mark.parametrize("verb", ["start-task", "pause-task", "stop-task", "purge-relay"])
def test_a_command_that_waits_in_vain_tells_who_was_not_heard(
    rig: Rig, worker: FakeWorker, verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "FIRST_BEAT_SECONDS", 0.1)
    before = rig.master.cluster.state
    leads_anew(rig, worker)
    with pytest.raises(ClusterError, match=r"CLUSTER-099.*w1[\s\S]*again in \d+ s") as caught:
        VERBS[verb](rig)
    assert caught.value.retryable
    assert rig.master.cluster.state == before, "nothing was done"


def test_a_status_tells_that_its_worker_was_not_heard_yet(
    rig: Rig, worker: FakeWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "FIRST_BEAT_SECONDS", 0.1)
    leads_anew(rig, worker)
    status = VERBS["query-status"](rig)["sources"][0]["sourceStatus"]
    assert status["service"] == "NoAnswer"
    assert status["result"]["errors"][0]["ErrCode"] == "CLUSTER-099"
    (members,) = VERBS["list-member"](rig)["members"]
    told = {one["name"]: one.get("msg", "") for one in members["worker"]["workers"]}
    assert "CLUSTER-099" in told["w1"]
    assert not told["w2"]


def test_a_worker_that_is_gone_is_waited_for_no_longer_than_its_ttl(rig: Rig, worker: FakeWorker) -> None:
    worker.falls_silent()
    rig.master.liveness.ttl_seconds = 0.3
    rig.master.liveness.begin(rig.master.cluster.state.workers)
    with pytest.raises(ClusterError, match="CLUSTER-015"):
        VERBS["start-task"](rig)
