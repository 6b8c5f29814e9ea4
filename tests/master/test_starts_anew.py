"""Starts anew: with `remove-meta` or `reset`, and of tasks that were deleted. No worker takes a dump of before."""

from __future__ import annotations

from typing import Any

import pytest
from cluster_rig import FAILED_CHECK, FakeWorker, Rig, task_text, two_sources

from unshard.api.verbs import ResumeTask, StartTask, StopTask
from unshard.checks.result import CheckReport
from unshard.errors import ClusterError, TargetError, Where

ANEW = pytest.mark.parametrize("how", [{"reset": "do"}, {"remove_meta": True}], ids=["reset", "remove-meta"])


def attempt_at(worker: FakeWorker) -> str:
    """The attempt of the first subtask that the worker has been given."""
    assert worker.order is not None
    return str(worker.order.subtasks[0].config.get("attempt", ""))


def test_remove_meta_wants_the_task_gone_and_checks_again(rig: Rig) -> None:
    two_sources(rig)
    text = task_text("t", "a", "b")
    assert rig.master.start_task(StartTask(task=text, sources=("a",), remove_meta=True))["result"]
    assert rig.forgotten == ["t"]
    assert len(rig.checks) == 2
    with pytest.raises(ClusterError) as caught:
        rig.master.start_task(StartTask(task=text, sources=("b",), remove_meta=True))
    assert caught.value.code == "CLUSTER-016"
    assert rig.forgotten == ["t"]


def test_a_reset_is_of_a_stopped_task_and_tells_before_what_it_does(rig: Rig) -> None:
    two_sources(rig)
    text = task_text("t", "a", "b")
    asked = StartTask(task=text, sources=("a",), reset="show")
    told = rig.master.start_task(asked)
    assert told["reset"] == ("drops orders",)
    assert rig.resets == [("ask", "a", "b")]
    assert not rig.checks
    assert "t" not in rig.master.cluster.state.tasks
    assert rig.master.start_task(asked.model_copy(update={"reset": "do"}))["result"]
    assert rig.resets[1:] == [("do", "a", "b")]
    assert len(rig.checks) == 1
    for reset in (asked, asked.model_copy(update={"reset": "do"})):
        with pytest.raises(ClusterError) as caught:
            rig.master.start_task(reset.model_copy(update={"sources": ("b",)}))
        assert caught.value.code == "CLUSTER-016"
        assert "stop-task t first" in str(caught.value)
    assert len(rig.resets) == 2


@ANEW
def test_a_start_anew_is_another_attempt_whose_workers_take_no_dump_of_before(rig: Rig, how: dict[str, Any]) -> None:
    worker = rig.worker("w1")
    rig.sources("a")

    def attempt(**how: Any) -> str:
        assert rig.master.start_task(StartTask(task=task_text("t", "a"), **how))["result"]
        found = attempt_at(worker)
        rig.master.stop_task(StopTask(name="t"))
        return found

    assert attempt() == ""
    first = attempt(**how)
    assert len(first) == 16
    assert attempt() == first, "a stop and a start go on with the same attempt"
    assert attempt(**how) not in ("", first)


@ANEW
def test_the_start_after_a_start_anew_that_a_check_refuses_takes_no_dump_of_before(
    rig: Rig, how: dict[str, Any]
) -> None:
    """The records are dropped before that check."""
    worker = rig.worker("w1")
    rig.sources("a")

    def fails() -> None:
        rig.report = FAILED_CHECK

    def first_check() -> None:
        rig.meanwhile = fails  # while the records are dropped

    if "reset" in how:
        fails()
    else:
        rig.meanwhile = first_check
    assert not rig.master.start_task(StartTask(task=task_text("t", "a"), **how))["result"]
    assert rig.forgotten or rig.resets
    rig.report = CheckReport(())
    assert rig.master.start_task(StartTask(task=task_text("t", "a")))["result"]
    assert len(attempt_at(worker)) == 16


@pytest.mark.parametrize("refused", [False, True])
def test_a_task_of_the_name_of_one_that_was_deleted_takes_no_dump_of_it(rig: Rig, refused: bool) -> None:
    """As DM's REST deletes a task; also where the target refuses."""
    worker = rig.worker("w1")
    rig.sources("a")
    rig.master.tasks.create(task_text("t", "a"))
    if refused:
        rig.meanwhile = fails_on_the_target
        with pytest.raises(TargetError):
            rig.master.tasks.drop_meta("t")
    else:
        rig.master.tasks.drop_meta("t")
    rig.master.stop_task(StopTask(name="t"))
    rig.master.tasks.create(task_text("t", "a"))
    assert rig.master.resume_task(ResumeTask(name="t"))["result"]
    assert len(attempt_at(worker)) == 16


def fails_on_the_target() -> None:
    raise TargetError("TARGET-001", Where())


@pytest.mark.parametrize("refused", [False, True])
def test_a_stored_task_that_begins_anew_is_another_attempt(rig: Rig, refused: bool) -> None:
    """As DM's REST starts a task; also where the target refuses."""
    worker = rig.worker("w1")
    rig.sources("a")
    rig.master.tasks.create(task_text("t", "a"))
    if refused:
        rig.meanwhile = fails_on_the_target
        with pytest.raises(TargetError):
            rig.master.tasks.anew(StartTask(task=task_text("t", "a"), remove_meta=True))
        assert rig.master.resume_task(ResumeTask(name="t"))["result"]
    else:
        assert rig.master.tasks.anew(StartTask(task=task_text("t", "a"), remove_meta=True))["result"]
    assert len(attempt_at(worker)) == 16


def test_the_key_remove_meta_of_a_file_forgets_nothing_and_the_answer_says_so(rig: Rig) -> None:
    two_sources(rig)
    told = rig.master.start_task(StartTask(task=task_text("t", "a", "b", more="remove-meta: true\n")))
    assert told["result"]
    assert "--remove-meta" in told["msg"]
    assert rig.forgotten == []
