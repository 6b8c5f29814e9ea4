"""Sources and members: made known, moved, lost and found, let go."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from cluster_rig import Rig, source_text, task_text

from support.waiting import wait_until
from unshard.api.heartbeat import Heartbeat
from unshard.api.status import Stage, UnitName
from unshard.api.verbs import (
    Answer,
    Config,
    ConfigExport,
    ListMember,
    OfflineMember,
    OperateLeader,
    OperateSource,
    PauseRelay,
    PauseTask,
    PurgeRelay,
    ResumeRelay,
    StartRelay,
    StopRelay,
    TransferSource,
    UpdateSource,
    UpdateTask,
)
from unshard.checks.result import CheckReport, Finding, Result
from unshard.errors import ClusterError


def worker_of(rig: Rig, source: str) -> str:
    return rig.master.cluster.state.worker_of(source)


def refused(code: str) -> pytest.RaisesExc[ClusterError]:
    return pytest.raises(ClusterError, check=lambda error: error.code == code)


def test_a_source_without_a_worker_waits_for_one(rig: Rig) -> None:
    told = rig.sources("a")
    assert told["sources"][0]["msg"] == "source is added but there is no free worker to bound"
    assert rig.asked == ["a"]
    rig.worker("w1")
    assert worker_of(rig, "a") == "w1"
    shown = rig.master.operate_source(OperateSource(op="show"))
    assert shown["sources"] == [{"result": True, "msg": "", "source": "a", "worker": "w1"}]


def test_the_source_of_a_worker_that_leaves_moves_at_once(tmp_path: Path) -> None:
    with Rig(f"sqlite:///{tmp_path / 'state.db'}", ttl=60.0) as rig:
        first = rig.worker("w1")
        rig.sources("a")
        rig.worker("w2")
        first.falls_silent()
        rig.master.beat(Heartbeat(name="w1", addr=first.addr, leaving=True))
        assert worker_of(rig, "a") == "w2"
        back = rig.worker("w1")
        assert (worker_of(rig, "a"), back.order) == ("w2", None)


def test_a_worker_that_is_back_within_its_time_keeps_its_source(tmp_path: Path) -> None:
    with Rig(f"sqlite:///{tmp_path / 'state.db'}", ttl=60.0) as rig:
        rig.worker("w1")
        rig.sources("a")
        rig.worker("w2")
        epoch = rig.master.cluster.state.bounds["a"].epoch
        back = rig.worker("w1")  # killed and started again: it knows nothing of what it served
        assert back.order is not None
        assert (back.order.source, back.order.epoch, worker_of(rig, "a")) == ("a", epoch, "w1")


def test_sources_come_all_or_none(rig: Rig) -> None:
    rig.sources("a")
    with refused("CLUSTER-006"):
        rig.sources("b", "a")
    with refused("CLUSTER-006"):
        rig.sources("c", "c")
    assert list(rig.master.cluster.state.sources) == ["a"]


def test_a_source_for_a_worker_by_name(rig: Rig) -> None:
    rig.worker("w1")
    rig.worker("w2")
    rig.sources("a", worker="w2")
    assert worker_of(rig, "a") == "w2"
    with refused("CLUSTER-012"):
        rig.sources("b", worker="w2")
    assert list(rig.master.cluster.state.sources) == ["a"]


def test_a_lost_worker_s_source_moves_with_its_tasks(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is lost when the ttl is over by the master's clock; the other one has beaten by then."""
    now = rig.master.liveness._monotonic()
    monkeypatch.setattr(rig.master.liveness, "_monotonic", lambda: now)
    first, spare = rig.worker("w1"), rig.worker("w2")
    rig.sources("a")
    rig.start("t", "a")
    epoch = rig.master.cluster.state.bounds["a"].epoch
    first.falls_silent()
    now += rig.master.liveness.ttl_seconds
    wait_until(lambda: worker_of(rig, "a") == "w2" and "t" in spare.briefs, "the spare has the source")
    assert rig.master.cluster.state.bounds["a"].epoch > epoch
    assert spare.order is not None
    assert spare.order.subtasks[0].kept is not None
    assert members(rig)["w1"] == ("offline", "")
    first.deaf = False
    wait_until(lambda: first.order is None and members(rig)["w1"] == ("free", ""), "it is a spare")
    assert worker_of(rig, "a") == "w2"


def members(rig: Rig) -> dict[str, tuple[str, str]]:
    told = rig.master.list_member(ListMember(worker=True))["members"][0]["worker"]["workers"]
    return {one["name"]: (one["stage"], one["source"]) for one in told}


def test_transfer_lets_tasks_rest_and_go_on(rig: Rig) -> None:
    first, second = rig.worker("w1"), rig.worker("w2")
    rig.sources("a")
    rig.start("t", "a")
    assert rig.master.transfer_source(TransferSource(source="a", worker="w2"))["result"]
    wait_until(lambda: "t" in second.briefs and second.briefs["t"].stage is Stage.RUNNING, "the other one runs it")
    wait_until(lambda: first.order is None, "the first has let go")
    assert rig.master.cluster.state.subtasks["t", "a"].stage is Stage.RUNNING
    with refused("CLUSTER-012"):
        rig.master.transfer_source(TransferSource(source="a", worker="nobody"))
    with refused("CLUSTER-008"):
        rig.master.transfer_source(TransferSource(source="x", worker="w1"))


def test_a_copy_that_has_just_ended_is_no_reason_against_a_transfer(rig: Rig) -> None:
    first, second = rig.worker("w1"), rig.worker("w2")
    rig.sources("a")
    rig.start("t", "a")
    wait_until(lambda: rig.settled("t"), "it runs")
    first.come_to(UnitName.LOAD)

    def unit() -> str:
        brief = rig.master.cluster.state.subtasks["t", "a"].brief
        return brief.unit if brief is not None else ""

    wait_until(lambda: unit() == UnitName.LOAD.value, "it loads")
    with refused("CLUSTER-013"):
        rig.master.transfer_source(TransferSource(source="a", worker="w2"))
    first.come_to(UnitName.SYNC, quiet=True)
    assert unit() == UnitName.LOAD.value, "no beat has told it"
    assert rig.master.transfer_source(TransferSource(source="a", worker="w2"))["result"]
    wait_until(lambda: "t" in second.briefs and second.briefs["t"].stage is Stage.RUNNING, "the other one runs it")


def test_a_source_with_tasks_is_not_let_go(rig: Rig) -> None:
    worker = rig.worker("w1")
    rig.sources("a")
    rig.start("t", "a")
    with refused("CLUSTER-014"):
        rig.master.operate_source(OperateSource(op="stop", source_id=("a",)))
    rig.sources("b")
    assert rig.master.operate_source(OperateSource(op="stop", config=(source_text("b"),)))["result"]
    assert list(rig.master.cluster.state.sources) == ["a"]
    assert worker.order is not None


def test_a_name_is_of_one_worker(rig: Rig) -> None:
    rig.worker("w1")
    twin = type(rig.workers["w1:8262"])("w1", rig.master, "elsewhere:1")
    assert twin.beat() is None
    rig.lose(rig.workers["w1:8262"])
    assert twin.beat() is not None
    assert rig.master.cluster.state.workers["w1"].addr == "elsewhere:1"


def test_a_name_is_of_the_worker_that_a_new_leader_has_not_heard_yet(rig: Rig) -> None:
    first = rig.worker("w1")
    rig.sources("a")
    with first.heard:
        rig.master.liveness.begin(rig.master.cluster.state.workers)
        with refused("CLUSTER-011"):
            rig.master.beat(Heartbeat(name="w1", addr="elsewhere:8262", life="another"))
        first.beat()
    assert rig.master.cluster.state.workers["w1"].addr == first.addr


def test_only_members_that_are_gone_are_forgotten(rig: Rig) -> None:
    worker = rig.worker("w1")
    for kind, name in (("worker", "w1"), ("worker", "x"), ("master", "m1"), ("master", "x")):
        with refused("CLUSTER-019"):
            rig.master.offline_member(OfflineMember.model_validate({"type": kind, "name": name}))
    rig.lose(worker)
    assert members(rig)["w1"] == ("offline", "")
    assert rig.master.offline_member(OfflineMember(type="worker", name="w1"))["result"]
    assert members(rig) == {}


def test_who_a_new_leader_has_not_heard_yet_is_not_forgotten(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'state.db'}"
    with Rig(url) as rig:
        rig.worker("w1")
        rig.sources("a")
    with Rig(url) as again:
        with refused("CLUSTER-019"):
            again.master.offline_member(OfflineMember(type="worker", name="w1"))
        assert worker_of(again, "a") == "w1"


def test_members_in_dm_s_shape(rig: Rig) -> None:
    rig.worker("w1")
    told = rig.master.list_member(ListMember())["members"]
    assert told[0] == {"leader": {"msg": "", "name": "m1", "addr": "m1:8261"}}
    assert told[1]["master"]["masters"][0]["alive"] is True
    assert told[2]["worker"]["workers"] == [{"name": "w1", "addr": "w1:8262", "stage": "free", "source": ""}]
    with refused("CLUSTER-016"):
        rig.master.operate_leader(OperateLeader(op="evict"))


def test_the_relay_of_a_source(rig: Rig) -> None:
    worker = rig.worker("w1")
    rig.sources("a")
    assert worker.order is not None
    assert worker.order.relay_stage is Stage.STOPPED
    for verb, stage in (
        (partial(rig.master.pause_relay, PauseRelay(sources=("a",))), Stage.PAUSED),
        (partial(rig.master.resume_relay, ResumeRelay(sources=("a",))), Stage.STOPPED),
        (partial(rig.master.start_relay, StartRelay(sources=("a",), workers=("w1",))), Stage.RUNNING),
        (partial(rig.master.pause_relay, PauseRelay(sources=("a",))), Stage.PAUSED),
        (partial(rig.master.pause_relay, PauseRelay(sources=("a",))), Stage.PAUSED),
        (partial(rig.master.resume_relay, ResumeRelay(sources=("a",))), Stage.RUNNING),
    ):
        assert verb()["result"]
        wait_until(lambda stage=stage: worker.order.relay_stage is stage, f"the relay is {stage}")  # type: ignore[misc]
    for workers in (("w2",), ("w1", "w2")):
        with refused("CLUSTER-016"):
            rig.master.start_relay(StartRelay(sources=("a",), workers=workers))
    told = rig.master.purge_relay(PurgeRelay(sources=("a",), filename="bin.000003"))["sources"]
    assert told[0]["msg"] == "files before bin.000003 are gone"
    assert worker.purged == [("bin.000003", "")]
    for neither in (PurgeRelay(sources=("a",)), PurgeRelay(sources=("a",), time="yesterday")):
        with refused("CLUSTER-016"):
            rig.master.purge_relay(neither)


def test_a_relay_is_told_who_reads_it(rig: Rig) -> None:
    worker = rig.worker("w1")
    rig.sources("a")
    rig.start("t", "a")

    def told(answer: Answer) -> str:
        return str(answer["sources"][0]["msg"])

    assert told(rig.master.pause_relay(PauseRelay(sources=("a",)))).endswith("wait until resume-relay: t")
    assert told(rig.master.stop_relay(StopRelay(sources=("a",)))) == "it runs on while a task reads it: t"
    before = worker.resumed
    assert "start-relay keeps it" in told(rig.master.resume_relay(ResumeRelay(sources=("a",))))
    assert worker.resumed == before + 1
    assert rig.master.cluster.state.sources["a"].relay_stage is Stage.STOPPED


def test_what_may_change_of_a_task_and_when(rig: Rig) -> None:
    rig.worker("w1")
    rig.sources("a")
    rig.start("t", "a")
    routes = "routes:\n  r: {schema-pattern: s, target-schema: t}\n"
    text = task_text("t", "a", more=routes).replace("- source-id: a\n", "- source-id: a\n  route-rules: [r]\n")
    with refused("CLUSTER-016"):
        rig.master.update_task(UpdateTask(task=text))
    rig.master.pause_task(PauseTask(name="t"))
    before = rig.master.cluster.state.subtasks["t", "a"].revision
    assert rig.master.update_task(UpdateTask(task=text))["result"]
    assert rig.master.cluster.state.subtasks["t", "a"].revision == before + 1
    with refused("CLUSTER-016"):
        rig.master.update_task(UpdateTask(task=text + "meta-schema: other\n"))
    with refused("CLUSTER-017"):
        rig.master.update_task(UpdateTask(task=task_text("other", "a")))


def test_a_password_of_a_source_may_change_while_its_tasks_run(rig: Rig) -> None:
    worker = rig.worker("w1")
    rig.sources("a")
    rig.start("t", "a")
    text = source_text("a").replace("pass word", "another one")
    told = rig.master.update_source(UpdateSource(config=text))
    assert told == rig.master.operate_source(OperateSource(op="update", config=(text.replace("another", "a third"),)))
    again = rig.master.update_source(UpdateSource(config=text.replace("another", "a third") + "# a comment\n"))
    assert again["sources"][0]["msg"].startswith("nothing is changed")
    wait_until(
        lambda: worker.order is not None and worker.order.config["from"]["password"] == "a third one", "a new password"
    )
    with refused("CLUSTER-016"):
        rig.master.update_source(UpdateSource(config=source_text("a", enable_gtid="true")))


def test_a_source_is_not_led_to_the_server_of_another_one_of_its_task(rig: Rig) -> None:
    rig.worker("w1")
    rig.worker("w2")
    rig.sources("a", "b")
    rig.start("t", "a", "b")
    text = source_text("a").replace("3306", "3307")
    rig.report = CheckReport(
        (Result("same upstream checker", "", (Finding("fail", "a and b are one", "correct it"),)),)
    )
    with refused("CLUSTER-016") as raised:
        rig.master.update_source(UpdateSource(config=text))
    assert raised.value.cause == "task t: a and b are one. What to do: correct it"
    assert rig.moves == [("t", "127.0.0.1:3307", "b")]
    assert rig.master.update_source(UpdateSource(config=source_text("a").replace("pass word", "another one")))["result"]
    rig.report = CheckReport(())
    assert rig.master.operate_source(OperateSource(op="update", config=(text,)))["result"]
    assert rig.moves == [("t", "127.0.0.1:3307", "b")] * 2, "another password moves nothing"


def test_files_are_shown_without_secrets(rig: Rig) -> None:
    rig.worker("w1")
    rig.sources("a")
    rig.start("t", "a")
    for kind, name in (("source", "a"), ("task", "t")):
        told = rig.master.config(Config.model_validate({"type": kind, "name": name}))["cfg"]
        assert "pass word" not in told
        assert "'******'" in told
    exported = rig.master.config_export(ConfigExport())
    assert exported["tasks"] == {"t": task_text("t", "a")}
    assert exported["relayWorkers"] == {"a": ["w1"]}


def test_a_master_that_follows_connects_to_no_source(rig: Rig) -> None:
    """It passes the command on, and may be where the source's server can't be reached at all."""
    rig.worker("w1")
    with Rig(rig.url, "m2") as follows:
        with refused("CLUSTER-002"):
            follows.sources("a")
        assert follows.asked == []
    assert rig.sources("a")["result"]


@pytest.mark.parametrize(
    ("wish", "why"),
    [
        ({"filename": "bin.000003", "sub_dir": "a/b"}, "--sub-dir takes the name of one folder"),
        ({"filename": "bin.000003", "sub_dir": "a" * 129}, "--sub-dir takes the name of one folder"),
        ({"filename": "b" * 513}, "--filename takes the name of one file"),
        ({"time": "1969-12-31 23:59:59"}, "--time takes a time from 1970 on"),
        ({"time": "0001-01-01T00:00:00+23:59"}, "--time takes a time from 1970 on"),
        ({"time": "9999-12-31T23:59:59-23:59"}, ""),
    ],
)
def test_a_purge_that_no_worker_takes_is_refused(rig: Rig, wish: dict[str, str], why: str) -> None:
    rig.worker("w1")
    rig.sources("a")
    if not why:
        assert rig.master.purge_relay(PurgeRelay(sources=("a",), **wish))["result"]
        return
    with pytest.raises(ClusterError, match="CLUSTER-016") as caught:
        rig.master.purge_relay(PurgeRelay(sources=("a",), **wish))
    assert why in str(caught.value)
