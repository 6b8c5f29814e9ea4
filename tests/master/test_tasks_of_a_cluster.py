"""Start, stop, pause and resume over the workers, and what a master knows after it was started again."""

from __future__ import annotations

import pytest
from cluster_rig import FAILED_CHECK, Rig, task_text, two_sources

from support.waiting import wait_until
from unshard.api.heartbeat import Heartbeat, SubtaskBrief
from unshard.api.status import (
    ProcessError,
    ProcessResult,
    RelayStatus,
    SourceReport,
    SourceStatus,
    Stage,
    SubTaskStatus,
    UnitName,
)
from unshard.api.verbs import (
    REQUESTS,
    Binlog,
    CheckTask,
    PauseTask,
    QueryStatus,
    ResumeTask,
    ShardDdlLock,
    ShardDdlLockUnlock,
    StartTask,
    StopTask,
    UpdateTask,
)
from unshard.errors import ClusterError
from unshard.master import records
from unshard.master.state import SubtaskRow, TaskRow


def stages(rig: Rig, task: str) -> dict[str, Stage]:
    return {row.source: row.stage for row in rig.master.cluster.state.of_task(task)}


def status_of(rig: Rig, task: str) -> str:
    told = rig.master.query_status(QueryStatus())["tasks"]
    return next(str(one["taskStatus"]) for one in told if one["taskName"] == task)


def test_a_task_starts_on_all_of_its_sources(rig: Rig) -> None:
    two_sources(rig)
    told = rig.start("t", "a", "b")
    assert told["result"], told
    assert told["sources"] == [
        {"result": True, "msg": "", "source": "a", "worker": "w1"},
        {"result": True, "msg": "", "source": "b", "worker": "w2"},
    ]
    assert rig.checks == [("t", ("a", "b"))]
    assert rig.master.query_status(QueryStatus())["tasks"] == [
        {"taskName": "t", "taskStatus": "Running", "sources": ["a", "b"]}
    ]


def test_a_task_starts_on_none_where_one_source_has_no_worker(rig: Rig) -> None:
    rig.worker("w1")
    rig.sources("a", "b")
    with pytest.raises(ClusterError) as caught:
        rig.start("t", "a", "b")
    assert caught.value.code == "CLUSTER-015"
    assert not rig.master.cluster.state.tasks
    assert rig.start("t", "a", "b", on=("a",))["result"]
    assert rig.beside == [("b",)], "checked against the sources that are not started now"


def test_a_failed_check_starts_nothing(rig: Rig) -> None:
    two_sources(rig)
    rig.report = FAILED_CHECK
    told = rig.start("t", "a", "b")
    assert not told["result"]
    assert "no SELECT" in told["checkResult"]
    assert not rig.master.cluster.state.tasks


def test_a_start_that_fails_on_a_worker_tells_why(rig: Rig) -> None:
    worker = rig.worker("w1")
    worker.fails.add("t")
    rig.sources("a")
    told = rig.start("t", "a")
    assert not told["result"]
    assert told["sources"][0]["msg"] == "SYNC-001: another one writes\n  why: epoch 2\n  what to do: see who"
    shown = rig.master.query_status(QueryStatus())["tasks"][0]["taskStatus"]
    assert shown.startswith("Error - Some error occurred in subtask")


def test_the_same_task_can_start_on_further_sources_only(rig: Rig) -> None:
    two_sources(rig)
    assert rig.start("t", "a", "b", on=("a",))["result"]
    with pytest.raises(ClusterError) as caught:
        rig.start("t", "a", "b")
    assert caught.value.code == "CLUSTER-007"
    with pytest.raises(ClusterError) as caught:
        rig.master.start_task(StartTask(task=task_text("t", "a", "b", more="meta-schema: other\n"), sources=("b",)))
    assert caught.value.code == "CLUSTER-009"
    assert rig.start("t", "a", "b", on=("b",))["result"]


def test_a_task_s_name_differs_from_others_by_more_than_case(rig: Rig) -> None:
    two_sources(rig)
    rig.start("Shop", "a")
    with pytest.raises(ClusterError) as caught:
        rig.start("shop", "b")
    assert (caught.value.code, caught.value.values["other"]) == ("CLUSTER-093", "Shop")
    with pytest.raises(ClusterError) as caught:
        rig.master.tasks.create(task_text("shop", "b"))
    assert caught.value.code == "CLUSTER-093"
    rig.master.stop_task(StopTask(name="Shop"))
    assert rig.start("shop", "b")["result"]


def test_pause_and_resume(rig: Rig) -> None:
    two_sources(rig)
    rig.start("t", "a", "b")
    told = rig.master.pause_task(PauseTask(name="t"))
    assert (told["op"], told["result"]) == ("Pause", True)
    assert set(stages(rig, "t").values()) == {Stage.PAUSED}
    assert rig.master.query_status(QueryStatus())["tasks"][0]["taskStatus"] == "Paused"
    told = rig.master.resume_task(ResumeTask(name="t", sources=("b",)))
    assert told["op"] == "Resume"
    assert [one["source"] for one in told["sources"]] == ["b"]
    assert stages(rig, "t") == {"a": Stage.PAUSED, "b": Stage.RUNNING}


def test_resume_of_a_task_that_an_error_has_paused(rig: Rig) -> None:
    worker = rig.worker("w1")
    worker.fails.add("t")
    rig.sources("a")
    assert not rig.start("t", "a")["result"]
    assert not rig.master.resume_task(ResumeTask(name="t"))["result"]
    worker.fails.clear()
    assert rig.master.resume_task(ResumeTask(name="t"))["result"]


def test_an_operator_lets_a_task_go_on_whose_error_only_its_worker_knows_yet(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who has seen the error in query-status, which asks the worker, need not wait until the master has heard it."""
    worker = rig.worker("w1")
    rig.sources("a")
    rig.start("t", "a")
    before = rig.master.cluster.state.subtasks["t", "a"].revision
    status = SourceStatus(source="a", worker="w1", relay_status=RelayStatus())
    result = ProcessResult(errors=(ProcessError(ErrCode="DDL-006", Message="it has the column already"),))
    stands = SubTaskStatus(name="t", stage=Stage.PAUSED, unit=UnitName.SYNC, result=result)
    monkeypatch.setattr(worker, "report", lambda *asked: SourceReport(source_status=status, sub_task_status=(stands,)))
    monkeypatch.setattr(records, "answer_binlog", lambda subject, request, who, effect: {"msg": effect("a")})
    assert rig.master.binlog(Binlog(op="skip", task="t"), "dba") == {"msg": "the task goes on now"}
    assert rig.master.cluster.state.subtasks["t", "a"].revision == before + 1


def test_stop_forgets_the_task_with_its_last_source(rig: Rig) -> None:
    two_sources(rig)
    rig.start("t", "a", "b")
    told = rig.master.stop_task(StopTask(name="t", sources=("a",)))
    assert (told["op"], told["result"]) == ("Delete", True)
    assert stages(rig, "t") == {"b": Stage.RUNNING}
    rig.master.stop_task(StopTask(name="t"))
    assert not rig.master.cluster.state.tasks
    with pytest.raises(ClusterError) as caught:
        rig.master.stop_task(StopTask(name="t"))
    assert caught.value.code == "CLUSTER-017"


def test_all_tasks_of_a_source(rig: Rig) -> None:
    two_sources(rig)
    for name in ("t1", "t2", "t3"):
        rig.start(name, "a", "b")
    told = rig.master.pause_task(PauseTask(sources=("a",), batch_size=2))
    assert told["result"]
    assert len(told["sources"]) == 3
    assert stages(rig, "t3") == {"a": Stage.PAUSED, "b": Stage.RUNNING}


def test_one_task_in_full(rig: Rig) -> None:
    two_sources(rig)
    rig.start("t", "a", "b")
    rig.start("other", "a")
    told = rig.master.query_status(QueryStatus(name="t"))
    first = told["sources"][0]
    assert (first["sourceStatus"]["source"], first["sourceStatus"]["worker"]) == ("a", "w1")
    assert [(one["name"], one["stage"], one["unit"]) for one in first["subTaskStatus"]] == [("t", "Running", "Sync")]


def test_a_relay_that_stands_is_told_of_a_task_that_runs(rig: Rig) -> None:
    worker = rig.worker("w1")
    rig.sources("a")
    rig.start("t", "a")
    worker.relay_stage = Stage.PAUSED
    told = rig.master.query_status(QueryStatus())["tasks"][0]["taskStatus"]
    assert told.startswith("Error - Relay status is Paused")


def test_a_worker_that_does_not_answer_hides_no_other(rig: Rig) -> None:
    two_sources(rig)
    rig.start("t", "a", "b")
    wait_until(lambda: rig.settled("t"), "what was heard last is kept")
    rig.workers["w1:8262"].falls_silent()
    told = rig.master.query_status(QueryStatus(name="t"))
    by_name = {one["sourceStatus"]["source"]: one for one in told["sources"]}
    assert by_name["a"]["sourceStatus"]["result"]["errors"][0]["ErrCode"].startswith("CLUSTER-")
    assert by_name["a"]["subTaskStatus"][0]["note"] == "the last that was heard"
    assert by_name["b"]["sourceStatus"]["result"] is None
    rig.lose(rig.workers["w1:8262"])
    assert status_of(rig, "t") == "Error - No worker serves source a. Please run `query-status t` to get more details."
    rig.master.pause_task(PauseTask(name="t", sources=("a",)))
    assert status_of(rig, "t").startswith("Error - No worker serves source a.")
    rig.workers["w1:8262"].deaf = False
    wait_until(lambda: status_of(rig, "t") == "Paused", "the worker is back and hears of it")


def test_what_is_kept_outlives_the_master(rig: Rig) -> None:
    two_sources(rig)
    rig.start("t", "a", "b")
    rig.master.pause_task(PauseTask(name="t", sources=("a",)))
    wait_until(lambda: rig.settled("t"), "what was heard last is kept")
    before = rig.master.cluster.state
    rig.master.close()
    with Rig(rig.url) as again:
        assert again.master.cluster.state == before


def test_the_count_and_the_wait_of_auto_resume_outlive_the_master_and_the_worker(rig: Rig) -> None:
    error = ProcessError(ErrCode="TARGET-001", Message="away")
    due = "2026-01-02T03:04:05.000+00:00"
    waits = SubtaskBrief(task="t", stage=Stage.PAUSED, revision=1, error=error, resume_count=5, next_resume=due)
    rig.sources("a")
    with rig.master.cluster.change() as writing:
        writing.put_task(TaskRow("t", task_text("t", "a")))
        writing.put_subtask(SubtaskRow("t", "a", Stage.RUNNING, brief=waits))
    rig.master.close()
    with Rig(rig.url) as again:
        order = again.master.beat(Heartbeat(name="w1", addr="w1:8262")).order
        assert order is not None
        assert order.subtasks[0].kept == waits


def test_a_start_by_time_is_of_incremental_tasks(rig: Rig) -> None:
    worker = rig.worker("w1")
    rig.sources("a")
    with pytest.raises(ClusterError) as caught:
        rig.master.start_task(StartTask(task=task_text("t", "a"), start_time="2026-01-02 03:04:05"))
    assert caught.value.code == "CLUSTER-016"
    with pytest.raises(ClusterError) as caught:
        rig.master.check_task(CheckTask(task=task_text("t", "a"), start_time="2026-01-02 03:04:05"))
    assert caught.value.code == "CLUSTER-016", "a check tells what a start would"
    text = task_text("t", "a").replace("task-mode: all", "task-mode: incremental")
    begins = "a begins at bin.000007:4, its first transaction from 2026-01-02 03:04:05 UTC on"
    checked = rig.master.check_task(CheckTask(task=text, start_time="2026-01-02 03:04:05"))
    assert checked["msg"].splitlines()[1:] == [begins]
    started = rig.master.start_task(StartTask(task=text, start_time="2026-01-02 03:04:05"))
    assert (started["result"], started["msg"]) == (True, begins)
    assert worker.order is not None
    assert worker.order.subtasks[0].config["start"]["binlog-name"] == "bin.000007"
    rig.master.stop_task(StopTask(name="t"))
    for time in ("2026-01-02 03:04:65", "yesterday"):
        with pytest.raises(ClusterError):
            rig.master.start_task(StartTask(task=text, start_time=time, remove_meta=True))
    assert not rig.forgotten, "a start that is refused drops nothing"
    assert rig.master.start_task(StartTask(task=text, start_time="2026-01-02 03:04:05", remove_meta=True))["result"]
    assert rig.forgotten == ["t"]


def test_every_verb_has_its_method(rig: Rig) -> None:
    assert [verb for verb in REQUESTS if not callable(getattr(rig.master, verb.replace("-", "_"), None))] == []


def test_a_lock_s_task_has_to_be_there(rig: Rig) -> None:
    assert rig.master.shard_ddl_lock(ShardDdlLock())["msg"] == "no DDL lock exists"
    with pytest.raises(ClusterError) as caught:
        rig.master.shard_ddl_lock_unlock(ShardDdlLockUnlock(id="t-`a`.`b`"), "dba")
    assert caught.value.code == "CLUSTER-017"


def test_a_stopped_source_may_leave_the_task_and_no_lock_waits_for_it(rig: Rig) -> None:
    rig.worker("w1")
    rig.worker("w2")
    rig.sources("a", "b")
    both, one = (task_text("t", *names, more="shard-mode: pessimistic\n") for names in (("a", "b"), ("a",)))
    assert rig.master.start_task(StartTask(task=both))["result"]
    rig.master.pause_task(PauseTask(name="t"))
    with pytest.raises(ClusterError, match="stop-task -s b"):
        rig.master.update_task(UpdateTask(task=one))
    assert rig.left == []
    rig.master.stop_task(StopTask(name="t", sources=("b",)))
    assert rig.master.update_task(UpdateTask(task=one))["result"]
    assert rig.left == [("t", "b")]


def test_a_source_that_a_file_lacks_from_the_start_leaves_by_being_put_in_and_out(rig: Rig) -> None:
    """What a sharding DDL's help says of a task that was stopped whole and started from a file without the source."""
    rig.worker("w1")
    rig.sources("a")
    both, one = (task_text("t", *names, more="shard-mode: pessimistic\n") for names in (("a", "b"), ("a",)))
    assert rig.master.start_task(StartTask(task=one))["result"]
    rig.master.pause_task(PauseTask(name="t"))
    for text in (both, one):
        assert rig.master.update_task(UpdateTask(task=text))["result"]
    assert rig.left == [("t", "b")]


def test_a_disabled_source_is_told_at_once(rig: Rig) -> None:
    two_sources(rig)
    rig.start("t", "a")
    assert rig.master.sources.enable("a", enabled=False)["result"]
    (resumed,) = rig.master.resume_task(ResumeTask(name="t"))["sources"]
    (paused,) = rig.master.pause_task(PauseTask(name="t"))["sources"]
    assert (resumed["result"], paused["result"]) == (False, True)
    assert "is disabled" in resumed["msg"]
    assert "is disabled" in paused["msg"]
    assert rig.master.stop_task(StopTask(name="t"))["result"]


def test_a_task_of_a_disabled_source_is_shown_as_stopped_with_the_reason(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker drops what is stopped, and so reports nothing of it."""
    two_sources(rig)
    rig.start("t", "a", "b")
    rig.start("u", "a")
    serves = next(worker for worker in rig.workers.values() if worker.order and worker.order.source == "a")
    assert rig.master.sources.enable("a", enabled=False)["result"]
    report = SourceReport(source_status=SourceStatus(source="a", worker=serves.name))
    monkeypatch.setattr(serves, "fresh_report", lambda task, seconds: report)
    found = {one["sourceStatus"]["source"]: one for one in rig.master.query_status(QueryStatus(name="t"))["sources"]}
    (stopped,), (running,) = found["a"]["subTaskStatus"], found["b"]["subTaskStatus"]
    assert (stopped["stage"], running["stage"]) == ("Stopped", "Running")
    assert "the source is disabled" in stopped["note"]
    short = rig.master.query_status(QueryStatus())
    assert {one["taskName"]: one["taskStatus"] for one in short["tasks"]} == {"t": "Running", "u": "Stopped"}
    assert "source a is disabled: none of its tasks runs until it is enabled" in short["msg"]
    serves.falls_silent()
    monkeypatch.setattr(serves, "fresh_report", serves.report)
    (silent,) = rig.master.query_status(QueryStatus(name="u"))["sources"][0]["subTaskStatus"]
    assert "the source is disabled" in silent["note"]
    assert rig.master.sources.enable("a", enabled=True)["result"]
    assert rig.master.query_status(QueryStatus())["msg"] == ""


def test_a_stop_that_its_worker_cannot_have_heard_says_so(rig: Rig) -> None:
    two_sources(rig)
    rig.start("t", "a")
    for worker in rig.workers.values():
        worker.falls_silent()
    for worker in rig.workers.values():
        rig.master.liveness.forget(worker.name)
    (told,) = rig.master.stop_task(StopTask(name="t"))["sources"]
    assert told["result"]
    assert "source not bound" in told["msg"]
    assert "cut off from the masters" in told["msg"]
