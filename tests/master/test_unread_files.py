"""A kept file that a later version can't read costs only what it is about, and can be mended."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest
from cluster_rig import Rig, source_text, task_text
from test_sources_of_a_cluster import members, refused

from support.waiting import wait_until
from unshard.api.status import Stage
from unshard.api.verbs import (
    ListMember,
    OperateSource,
    PauseTask,
    QueryStatus,
    ResumeTask,
    StartTask,
    StopTask,
    UpdateTask,
)
from unshard.errors import ClusterError, ConfigError, Where
from unshard.master import orders
from unshard.master.state import TaskRow

BAD_SOURCE = source_text("a") + "of-an-earlier-version: 7\n"
BAD_TASK = task_text("t", "a") + "of-an-earlier-version: 7\n"


def spoil_source(rig: Rig) -> None:
    with rig.master.cluster.change() as writing:
        writing.put_source(replace(writing.state.sources["a"], text=BAD_SOURCE))


def spoil_task(rig: Rig) -> None:
    with rig.master.cluster.change() as writing:
        writing.put_task(replace(writing.state.tasks["t"], text=BAD_TASK))


@pytest.fixture
def pair(rig: Rig) -> Rig:
    """Task t on source a, task u on source b, each on a worker that obeys."""
    rig.worker("w1"), rig.worker("w2")
    rig.sources("a", "b")
    rig.start("t", "a")
    rig.start("u", "b")
    wait_until(lambda: rig.settled("t") and rig.settled("u"), "both run")
    return rig


def test_a_source_that_can_t_be_read_is_told_by_name_and_goes_on_as_it_was(pair: Rig) -> None:
    spoil_source(pair)
    for request in (QueryStatus(), QueryStatus(name="t")):
        told = pair.master.query_status(request)
        assert told["result"]
        assert told["msg"].startswith("CLUSTER-091 [source a]")
        assert "of-an-earlier-version" in told["msg"]
        assert "operate-source update FILE" in told["msg"]
    assert told["sources"][0]["sourceStatus"]["result"]["errors"][0]["ErrCode"] == "CLUSTER-091"
    assert pair.master.query_status(QueryStatus(name="u"))["msg"] == ""
    workers = pair.master.list_member(ListMember(worker=True))["members"][0]["worker"]["workers"]
    assert {one["source"]: "CLUSTER-091" in one.get("msg", "") for one in workers} == {"a": True, "b": False}
    shown = pair.master.operate_source(OperateSource(op="show"))["sources"]
    assert {one["source"]: "CLUSTER-091" in one["msg"] for one in shown} == {"a": True, "b": False}
    assert pair.master.pause_task(PauseTask(name="t"))["result"]
    assert pair.master.resume_task(ResumeTask(name="t"))["result"]
    assert pair.master.stop_task(StopTask(name="u"))["result"]
    with refused("CLUSTER-091"):
        pair.master.start_task(StartTask(task=task_text("v", "a")))
    assert pair.start("u", "b")["result"]


def test_a_source_s_file_is_mended_by_an_update_where_none_of_its_tasks_runs(pair: Rig) -> None:
    spoil_source(pair)
    mend = OperateSource(op="update", config=(source_text("a", enable_gtid="true"),))
    with pytest.raises(ClusterError, match="pause-task t -s a first"):
        pair.master.operate_source(mend)
    assert pair.master.pause_task(PauseTask(name="t"))["result"]
    assert pair.master.operate_source(mend)["result"]
    assert pair.master.query_status(QueryStatus())["msg"] == ""
    assert pair.master.resume_task(ResumeTask(name="t"))["result"]


def test_a_worker_that_begins_with_a_source_that_can_t_be_read_waits_for_its_file(rig: Rig) -> None:
    rig.worker("w1")
    rig.sources("a")
    rig.start("t", "a")
    wait_until(lambda: rig.settled("t"), "it runs")
    spoil_source(rig)
    lost = rig.workers["w1:8262"]
    rig.lose(lost)
    del rig.workers[lost.addr]
    fresh = rig.worker("w2")
    wait_until(lambda: members(rig)["w2"] == ("bound", "a"), "the other one has the source")
    wait_until(lambda: fresh.refusal is not None, "it refuses")
    assert "CLUSTER-091" in str(rig.master.query_status(QueryStatus(name="t"))["sources"][0]["sourceStatus"]["result"])
    told = rig.master.resume_task(ResumeTask(name="t"))["sources"][0]
    assert not told["result"]
    assert "CLUSTER-091" in told["msg"]
    assert rig.master.operate_source(OperateSource(op="update", config=(source_text("a"),)))["result"]
    wait_until(lambda: rig.settled("t") and fresh.briefs["t"].stage is Stage.RUNNING, "it runs")


def test_a_task_s_file_that_can_t_be_read_is_told_and_mended(pair: Rig) -> None:
    spoil_task(pair)
    assert pair.master.query_status(QueryStatus())["msg"].startswith(
        "CLUSTER-091: this version can't read the stored file of task t"
    )
    assert pair.master.query_status(QueryStatus(name="u"))["msg"] == ""
    with pytest.raises(ClusterError, match="pause-task t -s a first"):
        pair.master.update_task(UpdateTask(task=task_text("t", "a")))
    assert pair.master.pause_task(PauseTask(name="t"))["result"]
    for other in ("meta-schema: other\n", "delivery: at-least-once\n"):
        with pytest.raises(ClusterError, match="write it as it was, or start another task"):
            pair.master.update_task(UpdateTask(task=task_text("t", "a", more=other)))
    with pytest.raises(ClusterError, match=r"target-database\.port"):
        pair.master.update_task(UpdateTask(task=task_text("t", "a").replace("4000", "4001")))
    assert pair.master.update_task(UpdateTask(task=task_text("t", "a")))["result"]
    assert pair.master.resume_task(ResumeTask(name="t"))["result"]
    assert pair.master.query_status(QueryStatus())["msg"] == ""


def test_a_task_whose_file_is_no_yaml_at_all_can_be_stopped(pair: Rig) -> None:
    with pair.master.cluster.change() as writing:
        writing.put_task(replace(writing.state.tasks["t"], text="name: [t"))
    assert "CONFIG-003" in pair.master.query_status(QueryStatus(name="t"))["msg"]
    assert pair.master.stop_task(StopTask(name="t"))["result"]
    assert pair.start("t", "a")["result"]


def test_one_that_can_t_be_read_is_not_parsed_at_each_beat(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a while it is: a file that it names may be there by then."""
    parsed: list[str] = []
    clock = SimpleNamespace(monotonic=lambda: 5e9)

    def parse(text: str, name: str) -> None:
        parsed.append(name)
        raise ConfigError("CONFIG-001", Where(file=name), "line 7", {"count": 1})

    monkeypatch.setattr(orders, "parse_task", parse)
    monkeypatch.setattr(orders, "time", clock)
    told = [beats_fault() for _ in range(9)]
    assert parsed == ["t"]
    assert len({str(one) for one in told}) == 1
    assert "line 7" in told[0].cause
    assert told[0] is not told[1]
    clock.monotonic = lambda: 6e9
    beats_fault()
    assert parsed == ["t", "t"]


def beats_fault() -> ClusterError:
    with pytest.raises(ClusterError) as caught:
        orders.task_config(TaskRow("t", "a text that no other test has"))
    return caught.value
