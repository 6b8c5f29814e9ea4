"""What a master makes of beats that come late, from workers of other versions, and from ever new names."""

from __future__ import annotations

import re
from threading import get_ident
from typing import Any

import pytest
from cluster_rig import Rig, task_text
from pydantic import ValidationError
from sqlalchemy import event, update

from unshard.api.heartbeat import DesiredState, Heartbeat, PurgeWish, SubtaskBrief
from unshard.api.status import Stage
from unshard.api.verbs import PauseTask, ResumeTask, StopTask
from unshard.errors import ClusterError
from unshard.master import tables
from unshard.master.members import OFFLINE_AT_MOST
from unshard.master.orders import _subtask_form
from unshard.master.state import SubtaskRow, TaskRow


def sign(number: int, stage: Stage = Stage.RUNNING, *, life: str = "first", **more: Any) -> Heartbeat:
    brief = SubtaskBrief(task="t", stage=stage, revision=more.pop("revision", 4))
    return Heartbeat(name="w1", addr="w1:8262", source="a", life=life, number=number, subtasks=(brief,), **more)


@pytest.fixture
def epoch(rig: Rig) -> int:
    """Of the bound of source a to w1, with a task t."""
    rig.sources("a")
    with rig.master.cluster.change() as writing:
        writing.put_task(TaskRow("t", task_text("t", "a")))
        writing.put_subtask(SubtaskRow("t", "a", Stage.RUNNING, 4))
    rig.master.beat(sign(1))
    return rig.master.cluster.state.bounds["a"].epoch


def lose_the_lease(rig: Rig) -> None:
    """It is over by its own clock and by the database's, and this master looks at it by `step` alone from here on."""
    rig.master._stop.set()
    rig.master._thread.join()
    rig.master.election._until = 0.0
    with rig.master.cluster.store.transaction() as connection:
        connection.execute(update(tables.LEADER).values(until=0.0))


def kept(rig: Rig) -> SubtaskBrief | None:
    return rig.master.cluster.state.subtasks["t", "a"].brief


def test_a_beat_that_a_later_one_has_overtaken_has_no_say(rig: Rig, epoch: int) -> None:
    rig.master.beat(sign(3, Stage.PAUSED, epoch=epoch))
    told = rig.master.beat(sign(2, Stage.RUNNING, epoch=epoch))
    assert told.order is not None, "it is answered as ever"
    found = kept(rig)
    assert found is not None
    assert found.stage is Stage.PAUSED
    rig.master.beat(sign(1, Stage.RUNNING, epoch=epoch, life="second"))
    found = kept(rig)
    assert found is not None
    assert found.stage is Stage.RUNNING, "another process counts from one"


def test_of_two_processes_with_one_name_and_address_the_later_one_has_them(rig: Rig, epoch: int) -> None:
    rig.master.beat(sign(1, Stage.PAUSED, epoch=epoch, life="second"))
    with pytest.raises(ClusterError, match="CLUSTER-011"):
        rig.master.beat(sign(2, epoch=epoch))
    found = kept(rig)
    assert found is not None
    assert found.stage is Stage.PAUSED
    rig.master.beat(sign(2, epoch=epoch, life="second", leaving=True))
    assert rig.master.beat(sign(3, epoch=epoch)).order is not None, "it is the only one again"


def test_a_beat_behind_the_goodbye_of_its_worker_brings_nobody_back(rig: Rig, epoch: int) -> None:
    rig.master.beat(sign(3, epoch=epoch, leaving=True))
    rig.master.beat(sign(2, epoch=epoch))
    assert "w1" not in rig.master.liveness.online()
    assert "a" not in rig.master.cluster.state.bounds


def test_what_is_told_of_an_older_order_is_not_kept(rig: Rig, epoch: int) -> None:
    rig.master.beat(sign(2, Stage.PAUSED, epoch=epoch, revision=3))
    assert kept(rig) is None


def test_a_beat_with_news_reads_nothing_but_the_lease(rig: Rig, epoch: int) -> None:
    with rig.master.cluster.change() as writing:
        for number in range(20):
            writing.put_task(TaskRow(f"t{number}", task_text(f"t{number}", "a")))
            writing.put_subtask(SubtaskRow(f"t{number}", "a", Stage.RUNNING))
    briefs = tuple(SubtaskBrief(task=f"t{number}", stage=Stage.PAUSED, revision=1) for number in range(20))
    news = sign(2, epoch=epoch).model_copy(update={"subtasks": briefs})
    asked: list[str] = []
    me = get_ident()

    def heard(_connection: object, _cursor: object, statement: str, *_more: object) -> None:
        if get_ident() == me:  # the thread of the election reads too
            asked.extend(re.findall(r"^(?:SELECT|UPDATE|INSERT INTO|DELETE FROM) \w+", statement))

    event.listen(rig.master.cluster.store._engine, "before_cursor_execute", heard)
    rig.master.beat(news)
    assert asked == ["SELECT unshard_leader", "UPDATE unshard_subtasks"]
    planned = _subtask_form.cache_info().misses
    rig.master.beat(news.model_copy(update={"number": 3}))
    assert len(asked) == 2, "nothing is new"
    assert _subtask_form.cache_info().misses == planned
    assert rig.master.cluster.state == rig.master.cluster.store.read()
    assert {row.brief for row in rig.master.cluster.state.subtasks.values() if row.task != "t"} == set(briefs)


def test_what_another_master_wrote_is_seen_under_a_beat_with_news(rig: Rig, epoch: int) -> None:
    rig.master.beat(sign(2, Stage.PAUSED, epoch=epoch))
    lose_the_lease(rig)
    with Rig(rig.url, "m2") as other, other.master.cluster.change() as writing:
        writing.put_subtask(SubtaskRow("t", "a", Stage.STOPPED, 9))
        writing.put_task(TaskRow("other", task_text("other", "a")))
    rig.master.step()
    rig.master.beat(sign(3, Stage.RUNNING, epoch=epoch))
    assert kept(rig) is None, "told of an older order"
    rig.master.beat(sign(4, Stage.STOPPED, epoch=epoch, revision=9))
    assert rig.master.cluster.state == rig.master.cluster.store.read()
    assert {"other", "t"} == set(rig.master.cluster.state.tasks)


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
    assert Heartbeat.model_validate({"name": "w", "addr": "h:1", "subtasks": [brief], **later}).subtasks[0].task == "t"
    assert DesiredState.model_validate({"ttlSeconds": 8, **later}).order is None
    for strict in (PurgeWish, PauseTask):  # what would be done else is more than was asked for
        with pytest.raises(ValidationError):
            strict.model_validate(later)


def test_workers_that_have_another_name_each_time_do_not_pile_up(rig: Rig) -> None:
    rig.worker("alive")
    for number in range(OFFLINE_AT_MOST + 10):
        rig.master.beat(Heartbeat(name=f"pod-{number:03}", addr=f"10.0.0.{number}:8262"))
        rig.master.liveness.forget(f"pod-{number:03}")
    known = rig.master.cluster.state.workers
    assert len(known) <= OFFLINE_AT_MOST + 1
    assert "alive" in known
    rig.master.beat(Heartbeat(name="pod-000", addr="10.0.0.0:8262"))
    assert "pod-000" in rig.master.cluster.state.workers
