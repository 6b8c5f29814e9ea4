"""A source whose worker refuses it goes to a free worker that has not: once, and never while anything of it runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from cluster_rig import FakeWorker, Rig, source_text

from support.waiting import wait_until
from unshard.api.heartbeat import SubtaskBrief
from unshard.api.status import Stage, UnitName
from unshard.api.verbs import ListMember, OperateSource, TransferSource
from unshard.errors import ClusterError
from unshard.master import handover
from unshard.master.cluster import Cluster
from unshard.master.handover import hand_over
from unshard.master.state import Bound
from unshard.master.status import process_error


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """A refusal lasts after three heartbeats."""
    monkeypatch.setattr(handover, "LONGEST_SECONDS", 0.0)


@pytest.fixture
def refusing(rig: Rig) -> FakeWorker:
    """Worker `w1`, which can't begin with source `a`; a task `t` is to run there."""
    found = rig.worker("w1")
    found.lacks = {"a"}
    rig.sources("a", worker="w1")
    (begun,) = rig.start("t", "a")["sources"]
    assert "w1 lacks a secret" in begun["msg"]
    return found


def seated(rig: Rig) -> str:
    return rig.master.cluster.state.worker_of("a")


def until(rig: Rig, done: Callable[[], bool], what: str) -> None:
    def looked() -> bool:
        rig.master.step()
        return done()

    wait_until(looked, what)


def stays(rig: Rig, worker: FakeWorker, beats: int = 12) -> None:
    """It is refused by this worker again and again, and looked at, and the order stays the same."""
    bound = rig.master.cluster.state.bounds["a"]
    assert bound.worker == worker.name
    for _ in range(beats):
        worker.beat()
        rig.master.step()
    assert rig.master.cluster.state.bounds["a"] == bound
    assert not rig.master.cluster.held


def shown(rig: Rig) -> str:
    (told,) = rig.master.operate_source(OperateSource(op="show", source_id=("a",)))["sources"]
    return str(told["msg"])


def members(rig: Rig) -> dict[str, dict[str, Any]]:
    (told,) = rig.master.list_member(ListMember(worker=True))["members"]
    return {one["name"]: one for one in told["worker"]["workers"]}


def test_a_free_worker_gets_it_and_both_verbs_tell_why(rig: Rig, refusing: FakeWorker) -> None:
    epoch = rig.master.cluster.state.bounds["a"].epoch
    spare = rig.worker("w2")
    until(rig, lambda: seated(rig) == "w2", "the free worker has it")
    wait_until(lambda: rig.settled("t"), "the task runs")
    assert spare.briefs["t"].stage is Stage.RUNNING
    assert rig.master.cluster.state.bounds["a"].epoch > epoch
    assert not refusing.taken
    assert spare.taken == ["a"]
    assert "w1" in shown(rig)
    assert "w1 lacks a secret" in shown(rig)
    found = members(rig)
    assert (found["w1"]["stage"], found["w2"]["stage"]) == ("free", "bound")
    assert "source a" in found["w1"]["msg"]
    assert "w1 lacks a secret" in found["w1"]["msg"]
    assert "msg" not in found["w2"]


def test_a_beat_that_a_later_one_has_overtaken_refuses_nothing(rig: Rig) -> None:
    worker = rig.worker("w1")
    worker.life = "first"
    rig.sources("a", worker="w1")
    epoch = rig.master.cluster.state.bounds["a"].epoch
    with worker.heard:
        told = process_error(ClusterError("CLUSTER-021", cause="a secret was not there"))
        late = worker._sign().model_copy(update={"number": 1, "epoch": 0, "refused": epoch, "refusal": told})
        rig.master.beat(late)
    assert not shown(rig)
    assert not rig.master.liveness.refused_beats("w1", epoch)


def test_a_refusal_has_to_last(rig: Rig, refusing: FakeWorker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handover, "LONGEST_SECONDS", 1000.0)
    rig.worker("w2")
    stays(rig, refusing)


def test_all_have_refused_it_and_it_does_not_go_round(rig: Rig, refusing: FakeWorker) -> None:
    second = FakeWorker("w2", rig.master)
    second.lacks = {"a"}
    rig.workers[second.addr] = second
    until(rig, lambda: seated(rig) == "w2", "it was given to the other one")
    stays(rig, second)
    assert "w1 lacks a secret" in shown(rig)
    assert "w2 lacks a secret" in shown(rig)
    rig.worker("w3")
    until(rig, lambda: seated(rig) == "w3", "a new worker gets it")


@pytest.mark.parametrize("how", ["a new process", "another file"])
def test_a_worker_whose_refusal_is_over_gets_it_again(rig: Rig, refusing: FakeWorker, how: str) -> None:
    second = FakeWorker("w2", rig.master)
    second.lacks = {"a"}
    rig.workers[second.addr] = second
    until(rig, lambda: seated(rig) == "w2", "it was given to the other one")
    stays(rig, second)
    refusing.lacks = set()
    if how == "a new process":
        refusing.life = "second"
    else:
        changed = source_text("a") + "purge:\n  interval: 7200\n"
        rig.master.operate_source(OperateSource(op="update", config=(changed,)))
    until(rig, lambda: seated(rig) == "w1", "it goes back")
    wait_until(lambda: rig.settled("t"), "the task runs")
    assert "w2 lacks a secret" in shown(rig)


def test_where_no_other_is_left_the_one_that_has_refused_it_is_tried(rig: Rig, refusing: FakeWorker) -> None:
    spare = rig.worker("w2")
    until(rig, lambda: seated(rig) == "w2", "the free worker has it")
    refusing.lacks = set()
    rig.lose(spare)
    assert seated(rig) == "w1"
    wait_until(lambda: rig.settled("t"), "the task runs")
    assert not shown(rig), "it is not refused any more"


def test_of_two_spares_the_one_that_has_not_refused_it_comes_first(rig: Rig, refusing: FakeWorker) -> None:
    second, third = rig.worker("w2"), rig.worker("w3")
    until(rig, lambda: seated(rig) in ("w2", "w3"), "a free worker has it")
    rig.lose(second if seated(rig) == "w2" else third)
    assert seated(rig) in ("w2", "w3")


def test_a_worker_that_serves_it_and_refuses_a_newer_order_keeps_it(rig: Rig) -> None:
    """Its tasks run on by the order before."""
    worker = rig.worker("w1")
    rig.worker("w2")
    rig.sources("a", worker="w1")
    rig.start("t", "a")
    with worker.heard:
        worker.refusal = ClusterError("CLUSTER-021", cause="a new secret is not there")
        assert worker.order is not None
        worker.quiet = True
        worker.refused = worker.order.epoch
        for _ in range(12):
            rig.master.beat(worker._sign())
            rig.master.step()
        assert rig.master.cluster.refusal("a") is not None
        assert seated(rig) == "w1"
        assert not rig.master.cluster.held
        worker.refused, worker.refusal, worker.quiet = 0, None, False


def test_a_copy_stays_with_the_files_that_it_has(rig: Rig, refusing: FakeWorker) -> None:
    brief = SubtaskBrief(task="t", stage=Stage.RUNNING, unit=UnitName.LOAD.value, dump_at="w1")
    with rig.master.cluster.change() as writing:
        writing.put_briefs("a", [brief])
    rig.worker("w2")
    stays(rig, refusing)


def test_a_file_that_the_master_cannot_read_is_no_reason(
    rig: Rig, refusing: FakeWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every worker would refuse it."""
    monkeypatch.setattr(handover, "unread", lambda *_: [ClusterError("CLUSTER-091")])
    rig.worker("w2")
    stays(rig, refusing)


def test_a_store_that_is_away_is_tried_again(rig: Rig, refusing: FakeWorker, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[str] = []

    def at_first_away(cluster: Cluster, bound: Bound, worker: str) -> bool:
        tried.append(worker)
        if len(tried) == 1:
            raise ClusterError("CLUSTER-003", cause="the store is away")
        return hand_over(cluster, bound, worker)

    monkeypatch.setattr(handover, "hand_over", at_first_away)
    rig.worker("w2")
    until(rig, lambda: seated(rig) == "w2", "the free worker has it")
    assert len(tried) > 1, "the first try found the store away"


def test_a_worker_that_can_begin_meanwhile_keeps_it(rig: Rig, refusing: FakeWorker) -> None:
    rig.worker("w2")
    bound = rig.master.cluster.state.bounds["a"]
    wait_until(lambda: rig.master.liveness.refused_beats("w1", bound.epoch) > 0, "it is refused")
    refusing.lacks = set()
    assert not hand_over(rig.master.cluster, bound, "w2")
    assert rig.master.cluster.state.bounds["a"] == bound
    wait_until(lambda: rig.settled("t"), "the task runs there")
    assert not rig.master.cluster.held


def test_nothing_of_it_runs_on_the_first_worker_once_it_is_being_moved(rig: Rig, refusing: FakeWorker) -> None:
    """What it is told from then on is to pause: so it is where the secret comes in the last moment."""
    rig.worker("w2")
    with rig.master.cluster.holding("a"):
        refusing.lacks = set()
        wait_until(lambda: refusing.order is not None and "t" in refusing.briefs, "it has begun")
        assert refusing.briefs["t"].stage is Stage.PAUSED


def test_a_worker_named_by_hand_gets_it_though_it_has_refused_it(rig: Rig, refusing: FakeWorker) -> None:
    rig.worker("w2")
    until(rig, lambda: seated(rig) == "w2", "the free worker has it")
    refusing.lacks = set()
    wait_until(lambda: rig.settled("t"), "the task runs")
    assert rig.master.transfer_source(TransferSource(source="a", worker="w1"))["result"]
    assert seated(rig) == "w1"
    wait_until(lambda: not shown(rig), "nobody has refused it")
