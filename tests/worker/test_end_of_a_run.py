"""A run that ends by an error: no heartbeat waits for a server, and no subtask stays Running without a thread."""

from __future__ import annotations

from threading import Event

from support.waiting import wait_until
from unshard.api.heartbeat import SubtaskOrder
from unshard.api.status import Stage
from unshard.config.files import parse_source, parse_task
from unshard.config.subtask import SubtaskConfig, plan_subtasks
from unshard.errors import TargetError
from unshard.worker.status import SubtaskStatus
from unshard.worker.subtask import Subtask
from unshard.worker.subtask_runner import SubtaskRunner

LOGIN = "{host: 127.0.0.1, port: 1, user: root}"
SOURCE = f"source-id: s1\nfrom: {LOGIN}\n"
TASK = f"name: t\ntask-mode: full\ntarget-database: {LOGIN}\nmysql-instances:\n- source-id: s1\n"
ORDER = SubtaskOrder(task="t", stage=Stage.RUNNING, revision=1, config={})


class _Load(Subtask):
    """A load whose target takes connections and says nothing, so a status that asks it waits."""

    asked = Event()
    error: TargetError

    def run(self, stop: Event) -> None:
        raise self.error

    def status(self, *, asks: bool = True) -> SubtaskStatus:
        if asks:
            self.asked.set()
        return SubtaskStatus("s1", "load")


def ended_by(error: TargetError) -> tuple[SubtaskRunner, _Load]:
    (config,) = plan_subtasks(parse_task(TASK), [parse_source(SOURCE)])
    load = _Load.__new__(_Load)
    load.error, load.worked, load.copies, load.unit, load.asked = error, "load", True, "load", Event()

    def build(_: SubtaskConfig) -> Subtask:
        return load

    runner = SubtaskRunner(ORDER, config, build, lambda: None, "w1")
    runner.obey(ORDER, config)
    wait_until(lambda: runner.stage is Stage.PAUSED, "the run has ended", told=lambda: str(runner.stage))
    return runner, load


def test_the_target_is_not_asked_at_the_end_of_a_run() -> None:
    lost = {"host": "h", "port": 1, "server": "target", "user": "root"}
    runner, load = ended_by(TargetError("TARGET-001", cause="(2013, lost)", values=lost))
    assert not load.asked.is_set()
    brief = runner.brief()
    assert brief.error is not None
    assert (brief.error.err_code, brief.next_resume != "") == ("TARGET-001", True)


def test_an_error_that_cannot_be_told_pauses_the_subtask_too() -> None:
    runner, _ = ended_by(TargetError("TARGET-001", cause="(2013, lost)"))  # without the values of its message
    brief = runner.brief()
    assert brief.error is not None
    assert (brief.stage, brief.error.err_code) == (Stage.PAUSED, "CLUSTER-021")
    result = runner.result()
    assert result is not None
    assert "resume-task" in result.detail
