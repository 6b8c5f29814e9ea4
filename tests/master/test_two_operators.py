"""What one operator changes while another one's verb is under way: neither leaves behind what nobody can mend."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from cluster_rig import Rig, source_text, task_text

from unshard.api.verbs import (
    OperateSource,
    PauseTask,
    ResumeTask,
    StartTask,
    StopTask,
    UpdateSource,
    UpdateTask,
)
from unshard.config.section import Section
from unshard.errors import ClusterError
from unshard.master import updates


def prepared(rig: Rig) -> None:
    rig.worker("w1")
    rig.worker("w2")
    rig.sources("a", "b")


def is_refused(act: Callable[[], object], code: str = "CLUSTER-083") -> None:
    with pytest.raises(ClusterError) as caught:
        act()
    assert caught.value.code == code, str(caught.value)


def is_whole(rig: Rig) -> None:
    """Every row has what it refers to, and every worker gets its orders."""
    state = rig.master.cluster.state
    assert {task for task, _ in state.subtasks} == set(state.tasks)
    assert {source for _, source in state.subtasks} <= set(state.sources)
    for worker in rig.workers.values():
        assert worker.beat() is not None


def test_a_task_that_is_stopped_while_it_starts_on_a_further_source(rig: Rig) -> None:
    prepared(rig)
    assert rig.start("t", "a", "b", on=("a",))["result"]
    rig.meanwhile = lambda: rig.master.stop_task(StopTask(name="t"))
    is_refused(lambda: rig.start("t", "a", "b", on=("b",)))
    is_whole(rig)


def test_a_source_that_is_let_go_while_a_task_starts_on_it(rig: Rig) -> None:
    prepared(rig)
    rig.meanwhile = lambda: rig.master.operate_source(OperateSource(op="stop", source_id=("b",)))
    is_refused(lambda: rig.start("t", "a", "b"))
    assert not rig.master.cluster.state.tasks
    is_whole(rig)


def test_a_task_that_is_forgotten_while_it_begins_anew(rig: Rig) -> None:
    prepared(rig)
    rig.master.tasks.create(task_text("t", "a", "b"))
    rig.meanwhile = lambda: rig.master.stop_task(StopTask(name="t"))
    is_refused(lambda: rig.master.tasks.anew(StartTask(task=task_text("t", "a", "b"), remove_meta=True)))
    is_whole(rig)


def test_nobody_resumes_a_task_whose_records_are_being_dropped(rig: Rig) -> None:
    prepared(rig)
    text = task_text("t", "a", "b")
    rig.master.tasks.create(text)
    rig.meanwhile = lambda: is_refused(lambda: rig.master.resume_task(ResumeTask(name="t")), "CLUSTER-018")
    told = rig.master.tasks.anew(StartTask(task=text, remove_meta=True))
    assert told["result"]
    assert rig.forgotten == ["t"]
    assert rig.meanwhile is None


def test_a_task_that_is_stopped_while_it_gets_the_file_that_it_has(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    prepared(rig)
    rig.start("t", "a")
    changed = updates._changed

    def late(old: Section, new: Section) -> set[str]:
        rig.master.stop_task(StopTask(name="t"))
        return changed(old, new)

    monkeypatch.setattr(updates, "_changed", late)
    is_refused(lambda: rig.master.update_task(UpdateTask(task=task_text("t", "a"))))
    is_whole(rig)


def test_a_source_that_is_let_go_while_its_file_changes(rig: Rig) -> None:
    prepared(rig)
    rig.meanwhile = lambda: rig.master.operate_source(OperateSource(op="stop", source_id=("b",)))
    is_refused(lambda: rig.master.update_source(UpdateSource(config=source_text("b", enable_gtid="true"))))
    assert list(rig.master.cluster.state.sources) == ["a"]


def test_a_task_that_is_resumed_while_the_file_of_its_source_changes(rig: Rig) -> None:
    prepared(rig)
    rig.start("t", "a")
    rig.master.pause_task(PauseTask(name="t"))
    rig.meanwhile = lambda: rig.master.resume_task(ResumeTask(name="t"))
    is_refused(
        lambda: rig.master.update_source(UpdateSource(config=source_text("a", enable_gtid="true"))), "CLUSTER-016"
    )
    assert "enable-gtid" not in rig.master.cluster.state.sources["a"].text


def test_a_task_that_is_stopped_while_a_source_leaves_it(rig: Rig) -> None:
    prepared(rig)
    sharded = "is-sharding: true\n"
    assert rig.master.start_task(StartTask(task=task_text("t", "a", "b", more=sharded)))["result"]
    rig.master.stop_task(StopTask(name="t", sources=("b",)))
    rig.master.pause_task(PauseTask(name="t"))
    rig.meanwhile = lambda: rig.master.stop_task(StopTask(name="t"))
    is_refused(lambda: rig.master.update_task(UpdateTask(task=task_text("t", "a", more=sharded))))
    assert rig.meanwhile is None
    is_whole(rig)
