"""A master's store that is back from a backup: its orders are of yesterday, its workers have later ones."""

from __future__ import annotations

from dataclasses import replace

from cluster_rig import FakeWorker, Rig

from support.waiting import wait_until
from unshard.api.status import Stage
from unshard.api.verbs import PauseTask, ResumeTask
from unshard.master.state import SubtaskRow


def row_of(rig: Rig, task: str) -> SubtaskRow:
    return rig.master.cluster.state.subtasks[task, "a"]


def stage_of(worker: FakeWorker, task: str) -> Stage:
    return worker.briefs[task].stage


def test_a_task_whose_worker_has_a_later_revision_is_paused_and_resumed(rig: Rig) -> None:
    worker = rig.worker("w1")
    rig.sources("a")
    rig.start("t", "a")
    before = row_of(rig, "t")
    for _ in range(3):
        assert rig.master.pause_task(PauseTask(name="t"))["result"]
        assert rig.master.resume_task(ResumeTask(name="t"))["result"]
    with rig.master.cluster.change() as writing:
        writing.put_subtask(replace(before, brief=None))
    wait_until(lambda: row_of(rig, "t").newest > before.revision, "the worker tells its revision")
    assert stage_of(worker, "t") is Stage.RUNNING, "it goes on by what it heard last"
    assert rig.master.pause_task(PauseTask(name="t"))["sources"][0] == {
        "result": True, "msg": "", "source": "a", "worker": "w1",
    }  # fmt: skip
    assert stage_of(worker, "t") is Stage.PAUSED
    assert rig.master.resume_task(ResumeTask(name="t"))["result"]
    assert stage_of(worker, "t") is Stage.RUNNING


def test_a_source_that_the_target_knows_by_a_later_order_gets_a_new_one_when_it_is_resumed(rig: Rig) -> None:
    """As the error says: without a spare, on the worker that it has."""
    worker, other = rig.worker("w1"), rig.worker("w2")
    rig.sources("a", "b")
    worker.error, worker.fails = "SYNC-071", {"t"}
    assert not rig.start("t", "a")["result"]
    rig.start("u", "b")
    known = dict(rig.master.cluster.state.bounds)
    worker.fails = set()
    assert rig.master.resume_task(ResumeTask(name="t"))["sources"][0]["msg"] == ""
    bounds = rig.master.cluster.state.bounds
    assert bounds["a"].worker == "w1"
    assert bounds["a"].epoch > known["a"].epoch
    assert worker.order is not None
    assert worker.order.epoch == bounds["a"].epoch
    assert bounds["b"] == known["b"]
    assert stage_of(other, "u") is Stage.RUNNING
    assert rig.master.pause_task(PauseTask(name="t"))["result"]
    assert rig.master.resume_task(ResumeTask(name="t"))["result"]
    assert rig.master.cluster.state.bounds["a"] == bounds["a"], "once is enough"
