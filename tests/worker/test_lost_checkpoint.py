"""An incremental task whose checkpoint is gone from the target stands: it does not begin at the present end."""

from __future__ import annotations

from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest

from support.waiting import wait_until
from unshard.api.heartbeat import SubtaskBrief, SubtaskOrder
from unshard.api.status import Stage
from unshard.config.files import parse_source, parse_task
from unshard.config.subtask import SubtaskConfig, plan_subtask
from unshard.errors import SyncError, TargetError
from unshard.target.meta import MetaTables
from unshard.worker.followed_mark import FollowedMark
from unshard.worker.subtask import Subtask
from unshard.worker.subtask_runner import SubtaskRunner


class Target:
    """A target's record of the task.

    `begun` counts how often it began at its file's start point, `built` how often it was run at all.
    """

    def __init__(self) -> None:
        self.checkpoint: object | None = None
        self.begun = self.built = 0
        self.fails = True

    def subtask(self, config: SubtaskConfig | None = None) -> Subtask:
        del config
        self.built += 1
        beginning: Any = SimpleNamespace(
            checkpoint=lambda: self.checkpoint,
            from_meta=lambda relay, stop: "the present end",
            forget_dump=lambda: None,
            meta=MetaTables("dm_meta", "t"),
        )
        relay: Any = SimpleNamespace(start=lambda: None, stop=lambda: None, status=lambda: None, sighting=lambda: None)
        meter = SimpleNamespace(location=None, doing="stopped", step_since=0.0)
        sync: Any = SimpleNamespace(announce=lambda: None, begin=self._begin, run=self._run, meter=meter)
        return Subtask("s1", beginning, relay, dump=None, load=None, sync=sync)

    def _begin(self, start: object | None) -> None:
        if self.checkpoint is None:
            self.begun += 1
            self.checkpoint = start

    def _run(self, stop: Event) -> None:
        if self.fails:
            self.checkpoint = None  # somebody drops the records of the running task
            gone = "1146: Table 't_apply_batch' doesn't exist"
            raise TargetError("TARGET-004", cause=gone, values={"statement": "UPDATE"})


def config(attempt: str = "") -> SubtaskConfig:
    task = parse_task(
        "name: t\ntask-mode: incremental\ntarget-database: {host: h, port: 1, user: u}\n"
        "mysql-instances: [{source-id: s1}]\n"
    )
    source = "source-id: s1\nfrom: {host: h, port: 1, user: u}\nchecker: {backoff-min: 1ms, backoff-max: 1ms}\n"
    return plan_subtask(task, parse_source(source)).model_copy(update={"attempt": attempt})


def order(revision: int, kept: SubtaskBrief | None = None) -> SubtaskOrder:
    return SubtaskOrder(task="t", stage=Stage.RUNNING, revision=revision, config={}, kept=kept)


def runner(target: Target, first: SubtaskOrder, settings: SubtaskConfig | None = None) -> SubtaskRunner:
    found = SubtaskRunner(first, settings or config(), target.subtask, lambda: None, "w1")
    found.obey(first, found.config)
    return found


def stands(one: SubtaskRunner) -> str:
    """The code of the error with which it stands, for good."""

    def over() -> bool:
        one.tick()
        return one.stage is Stage.PAUSED and one.ended and one.resumption.due is None

    wait_until(over, "it stands")
    assert one.error is not None
    return one.error.err_code


def test_auto_resume_does_not_begin_anew() -> None:
    target = Target()
    one = runner(target, order(1))
    assert stands(one) == "SYNC-080"
    assert target.begun == 1
    assert one.brief().followed == ""
    built = target.built
    one.obey(order(2, one.brief()), one.config)
    assert stands(one) == "SYNC-080", "resume-task does not either"
    assert target.built > built
    assert target.begun == 1


def test_another_worker_does_not_begin_anew() -> None:
    target = Target()
    brief = SubtaskBrief(task="t", stage=Stage.RUNNING, revision=1, followed="")
    assert stands(runner(target, order(1, brief))) == "SYNC-080"
    assert target.begun == 0


@pytest.mark.parametrize("cut_off", [False, True])
def test_a_task_that_is_stopped_and_started_begins_as_its_file_says(*, cut_off: bool) -> None:
    """As the error says. Of a worker that was cut off the runner is the same one."""
    target = Target()
    one = runner(target, order(1))
    assert stands(one) == "SYNC-080"
    target.fails = False
    if cut_off:
        one.obey(order(2), one.config)
    else:
        one = runner(target, order(2))
    wait_until(lambda: target.begun == 2, "begun")


def test_a_start_that_drops_the_records_begins_as_its_file_says() -> None:
    target = Target()
    target.fails = False
    brief = SubtaskBrief(task="t", stage=Stage.RUNNING, revision=1, followed="")
    runner(target, order(1, brief), config("another attempt"))
    wait_until(lambda: target.begun == 1, "begun")


def test_a_first_start_that_fails_before_its_checkpoint_is_tried_again() -> None:
    target = Target()
    subtask = target.subtask()
    sync: Any = subtask.sync

    def fail(_: object) -> None:
        raise TargetError("TARGET-002")

    begin, sync.begin = sync.begin, fail
    with pytest.raises(TargetError):
        subtask.run(Event())
    assert not subtask.followed
    sync.begin, target.fails = begin, False
    subtask.run(Event())
    target.checkpoint = None
    with pytest.raises(SyncError, match="SYNC-080"):
        subtask.run(Event())


def test_a_later_process_does_not_begin_anew(tmp_path: Path) -> None:
    """`unshard run` keeps no more of it than the mark; a place in the task file is where it begins all the same."""
    settings = config()
    settings = settings.model_copy(
        update={"source": settings.source.model_copy(update={"relay_dir": str(tmp_path)}), "name": "a/b"}
    )
    target = Target()
    target.fails = False

    def start(meta: object | None = None) -> None:
        subtask = target.subtask()
        subtask.mark = FollowedMark.of(settings)
        beginning: Any = subtask.beginning
        beginning.meta_start = meta
        subtask.run(Event())

    start()
    start()
    target.checkpoint = None
    with pytest.raises(SyncError, match="SYNC-080"):
        start()
    start(meta="a place")
    target.checkpoint = None
    mark = FollowedMark.of(settings)
    elsewhere = settings.target.model_copy(update={"port": 2})
    assert not FollowedMark.of(settings.model_copy(update={"target": elsewhere})).is_written()
    assert mark.is_written()
    mark.remove()
    start()
    assert target.begun == 3
