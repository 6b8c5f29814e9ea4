"""What a master makes of beats that come late, from workers of other versions, and from ever new names."""

from __future__ import annotations

from typing import Any

import pytest
from cluster_rig import Rig, task_text
from pydantic import ValidationError

from unshard.api.orders import Beat, Orders, PurgeWish, SubtaskBrief
from unshard.api.stage import Stage
from unshard.api.verbs import PauseTask, ResumeTask, StopTask
from unshard.errors import ClusterError
from unshard.master.members import OFFLINE_AT_MOST
from unshard.master.state import SubtaskRow, TaskRow


def sign(number: int, stage: Stage = Stage.RUNNING, *, life: str = "first", **more: Any) -> Beat:
    brief = SubtaskBrief(task="t", stage=stage, revision=more.pop("revision", 4))
    return Beat(name="w1", addr="w1:8262", source="a", life=life, number=number, subtasks=(brief,), **more)


@pytest.fixture
def epoch(rig: Rig) -> int:
    """Of the bound of source a to w1, with a task t."""
    rig.sources("a")
    with rig.master.cluster.change() as writing:
        writing.put_task(TaskRow("t", task_text("t", "a")))
        writing.put_subtask(SubtaskRow("t", "a", Stage.RUNNING, 4))
    rig.master.beat(sign(1))
    return rig.master.cluster.state.bounds["a"].epoch


def kept(rig: Rig) -> SubtaskBrief | None:
    return rig.master.cluster.state.subtasks["t", "a"].brief


def test_a_beat_that_a_later_one_has_overtaken_has_no_say(rig: Rig, epoch: int) -> None:
    rig.master.beat(sign(3, Stage.PAUSED, epoch=epoch))
    told = rig.master.beat(sign(2, Stage.RUNNING, epoch=epoch))
    assert told.order is not None, "it is answered as ever"
    found = kept(rig)
    assert found is not None and found.stage is Stage.PAUSED
    rig.master.beat(sign(1, Stage.RUNNING, epoch=epoch, life="second"))
    found = kept(rig)
    assert found is not None and found.stage is Stage.RUNNING, "another process counts from one"


def test_of_two_processes_with_one_name_and_address_the_later_one_has_them(rig: Rig, epoch: int) -> None:
    rig.master.beat(sign(1, Stage.PAUSED, epoch=epoch, life="second"))
    with pytest.raises(ClusterError, match="CLUSTER-011"):
        rig.master.beat(sign(2, epoch=epoch))
    found = kept(rig)
    assert found is not None and found.stage is Stage.PAUSED
    rig.master.beat(sign(2, epoch=epoch, life="second", leaving=True))
    assert rig.master.beat(sign(3, epoch=epoch)).order is not None, "it is the only one again"


def test_a_beat_behind_the_goodbye_of_its_worker_brings_nobody_back(rig: Rig, epoch: int) -> None:
    rig.master.beat(sign(3, epoch=epoch, leaving=True))
    rig.master.beat(sign(2, epoch=epoch))
    assert "w1" not in rig.master.roster.online()
    assert "a" not in rig.master.cluster.state.bounds


def test_what_is_told_of_an_older_order_is_not_kept(rig: Rig, epoch: int) -> None:
    rig.master.beat(sign(2, Stage.PAUSED, epoch=epoch, revision=3))
    assert kept(rig) is None


def test_a_task_that_is_started_again_takes_no_word_of_the_one_before(rig: Rig) -> None:
    worker = rig.worker("w1")
    rig.sources("a")
    assert rig.start("t", "a")["result"]
    rig.master.pause_task(PauseTask(name="t"))
    rig.master.resume_task(ResumeTask(name="t"))
    before = rig.master.cluster.state.subtasks["t", "a"].revision
    rig.master.stop_task(StopTask(name="t"))
    assert rig.start("t", "a")["result"]
    assert rig.master.cluster.state.subtasks["t", "a"].revision > before
    assert worker.briefs["t"].revision > before


def test_members_of_the_next_version_are_understood() -> None:
    later: dict[str, Any] = {"ofALaterVersion": {"x": 1}}
    brief = {"task": "t", "stage": "Running", **later}
    assert Beat.model_validate({"name": "w", "addr": "h:1", "subtasks": [brief], **later}).subtasks[0].task == "t"
    assert Orders.model_validate({"ttlSeconds": 8, **later}).order is None
    for strict in (PurgeWish, PauseTask):  # what would be done else is more than was asked for
        with pytest.raises(ValidationError):
            strict.model_validate(later)


def test_workers_that_have_another_name_each_time_do_not_pile_up(rig: Rig) -> None:
    rig.worker("alive")
    for number in range(OFFLINE_AT_MOST + 10):
        rig.master.beat(Beat(name=f"pod-{number:03}", addr=f"10.0.0.{number}:8262"))
        rig.master.roster.forget(f"pod-{number:03}")
    known = rig.master.cluster.state.workers
    assert len(known) <= OFFLINE_AT_MOST + 1 and "alive" in known
    rig.master.beat(Beat(name="pod-000", addr="10.0.0.0:8262"))
    assert "pod-000" in rig.master.cluster.state.workers
