"""The first line of the overview and what it is made of: each state has its sentence, its beginning and its link."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from datetime import datetime

import pytest
from page_served import HOSTILE, SINCE, error

from unshard.api.status import (
    DumpStatus,
    LoadStatus,
    ProcessError,
    ProcessResult,
    RelayStatus,
    SourceReport,
    SourceStatus,
    Stage,
    SubTaskStatus,
    SyncStatus,
    UnitName,
    UnresolvedGroup,
    ValidationStatus,
)
from unshard.web.page.actions import is_under_way
from unshard.web.page.concerns import concerns_of
from unshard.web.page.figures import LAG_LIMIT, SIGNS, ClusterFigures
from unshard.web.page.reported import cluster_figures
from unshard.web.page.verdict import Concern, FirstSeen, headline, shortened

AT = 1_800_000_000.0
BEGUN = datetime.fromisoformat(SINCE).timestamp()
SYNC = SyncStatus(seconds_behind_master=3, recent_rps=7, syncer_binlog="(mysql-bin.000003, 1234)")
RELAY = RelayStatus(stage=Stage.RUNNING, relay_binlog="(mysql-bin.000001, 4)")
GOOD = SubTaskStatus(name="", stage=Stage.RUNNING, unit=UnitName.SYNC, sync=SYNC, since=SINCE)
HELD = "session 12 holds a lock on shop.orders"
BY_HAND = ProcessResult(is_canceled=True)
FAILED = ProcessResult(errors=(error("orders"),))
GROUP = UnresolvedGroup(target="`shop`.`orders`", since=SINCE, unsynced=("s9",))
OF_A_SHARD = GROUP.model_copy(update={"mode": "optimistic", "synced": ("`shop`.`orders_1`",)})


def fault(code: str) -> ProcessResult:
    return ProcessResult(errors=(ProcessError(ErrCode=code, Message="why", Workaround="do this"),))


@dataclass(frozen=True)
class State:
    """One state of a task `t-NAME` on a source `s-NAME`, and what is to be said of it.

    `own`: it is known since when, else the reader of the page notes when it has seen it first. `details`: one of the
    further sentences.
    """

    kind: str
    says: str
    path: str
    task: SubTaskStatus = GOOD
    relay: RelayStatus | None = RELAY
    result: ProcessResult | None = None
    disabled: bool = False
    own: bool = False
    details: str = ""


STATES = {
    "fine": State("fine", "", ""),
    "finished": State("done", "", "", GOOD.model_copy(update={"stage": Stage.FINISHED})),
    "paused": State(
        "waits", "Task {task} is paused", "tasks/{task}",
        GOOD.model_copy(update={"stage": Stage.PAUSED, "result": BY_HAND}), own=True,
    ),
    "stopped": State(
        "waits", "Task {task} is stopped", "tasks/{task}", GOOD.model_copy(update={"stage": Stage.STOPPED}), own=True
    ),
    "starting": State(
        "waits", "Task {task} is starting", "tasks/{task}",
        SubTaskStatus(name="", stage=Stage.RUNNING, since=SINCE), own=True,
    ),
    "pausing": State(
        "waits", "Task {task} is pausing", "tasks/{task}", GOOD.model_copy(update={"stage": Stage.PAUSING}), own=True
    ),
    "lagging": State(
        "waits", "Task {task} lags by 15 min", "tasks/{task}",
        GOOD.model_copy(update={"sync": SYNC.model_copy(update={"seconds_behind_master": 900}), "note": HELD}),
        details=f"Source s-lagging: {HELD}",
    ),
    "lag-unknown": State(
        "unknown", "The lag of task {task} is unknown", "tasks/{task}",
        GOOD.model_copy(update={"sync": SYNC.model_copy(update={"seconds_behind_master": None})}),
    ),
    "silent": State(
        "unknown", "The worker of source {source} does not answer", "cluster", result=fault("CLUSTER-039"), relay=None
    ),
    "dumping": State(
        "works", "Task {task} copies its tables", "tasks/{task}/copy",
        SubTaskStatus(name="", stage=Stage.RUNNING, unit=UnitName.DUMP, dump=DumpStatus(progress="40 %"), since=SINCE),
        own=True,
    ),
    "loading": State(
        "works", "Task {task} copies its tables", "tasks/{task}/copy",
        SubTaskStatus(name="", stage=Stage.RUNNING, unit=UnitName.LOAD, load=LoadStatus(progress="40 %"), since=SINCE),
        own=True,
    ),
    "waiting": State(
        "waits", "Task {task} waits", "tasks/{task}",
        GOOD.model_copy(update={"note": HELD}), details=f"Source s-waiting: {HELD}",
    ),
    "locked": State(
        "waits", "A DDL waits for other shards: `shop`.`orders`", "locks",
        GOOD.model_copy(update={"sync": SYNC.model_copy(update={"unresolved_groups": (GROUP,)})}), own=True,
    ),
    "overdue": State(
        "error", "A DDL has waited too long for other shards: `shop`.`orders`", "locks",
        GOOD.model_copy(
            update={"sync": SYNC.model_copy(
                update={"unresolved_groups": (GROUP.model_copy(update={"overdue": True}),)})}
        ), own=True,
    ),
    "shard": State(
        "waits", "A shard waits with its DDL: `shop`.`orders`", "locks",
        GOOD.model_copy(update={"sync": SYNC.model_copy(update={"unresolved_groups": (OF_A_SHARD,)})}), own=True,
    ),
    "overdue-shard": State(
        "error", "A shard has waited too long with its DDL: `shop`.`orders`", "locks",
        GOOD.model_copy(
            update={"sync": SYNC.model_copy(
                update={"unresolved_groups": (OF_A_SHARD.model_copy(update={"overdue": True}),)})}
        ), own=True,
    ),
    "failed": State(
        "error", "Task {task} has stopped with an error", "errors",
        GOOD.model_copy(update={"stage": Stage.PAUSED, "result": FAILED}), own=True,
    ),
    "differs": State(
        "error", "4 rows of task {task} differ", "tasks/{task}/validation",
        GOOD.model_copy(
            update={"validation": ValidationStatus(
                task="t", source="s", stage="Running", error_rows_status="new/ignored/resolved: 4/0/0")}
        ),
    ),
    "relay-paused": State(
        "waits", "The relay of source {source} is paused", "cluster", relay=RelayStatus(stage=Stage.PAUSED)
    ),
    "relay-rests": State(
        "waits", "The relay of source {source} does not run", "cluster", relay=RelayStatus(stage=Stage.STOPPED)
    ),
    "relay-unknown": State("unknown", "The relay of source {source} has not been heard", "cluster", relay=None),
    "relay-failed": State(
        "error", "The relay of source {source} has stopped with an error", "errors",
        relay=RelayStatus(stage=Stage.PAUSED, result=FAILED), own=True,
    ),
    "unserved": State(
        "error", "No worker serves source {source}", "cluster", result=fault("CLUSTER-015"), relay=None
    ),
    "unread": State("error", "Source {source} has an error", "errors", result=fault("CLUSTER-091")),
    "disabled": State(
        "waits", "Source {source} is disabled", "cluster", SubTaskStatus(name="", stage=Stage.STOPPED), disabled=True
    ),
}  # fmt: skip


def cluster(*names: str) -> ClusterFigures:
    """The figures of a cluster with a task in each of these states, each on a source of its own."""
    reports, disabled = {}, []
    for name in names:
        state, source = STATES[name], f"s-{name}"
        told = state.task.model_copy(update={"name": f"t-{name}"})
        status = SourceStatus(source=source, worker=f"w-{name}", result=state.result, relay_status=state.relay)
        reports[source] = SourceReport(source_status=status, sub_task_status=(told,))
        disabled += [source] if state.disabled else []
    return cluster_figures(
        [f"t-{name}" for name in names], reports, {f"t-{name}": (f"s-{name}",) for name in names}, disabled
    )


def told(figures: ClusterFigures, *, read: bool = True, trouble: str = "") -> list[Concern]:
    return list(FirstSeen().dated(concerns_of(figures, read=read, trouble=trouble, at=AT), AT))


def word(figures: ClusterFigures, *, read: bool = True, trouble: str = "") -> tuple[str, str]:
    found = headline(told(figures, read=read, trouble=trouble), figures)
    return found.kind, found.text


def said_of(name: str) -> str:
    return STATES[name].says.format(task=f"t-{name}", source=f"s-{name}")


@pytest.mark.parametrize("name", [name for name, state in STATES.items() if state.says])
def test_each_state_has_its_sentence_its_beginning_and_its_link(name: str) -> None:
    state, figures = STATES[name], cluster("fine", name)
    (found,) = told(figures)
    assert found.sentence.text == said_of(name)
    assert found.sentence.kind == state.kind
    assert (found.since, found.at_least) == ((BEGUN, False) if state.own else (AT, True))
    assert found.path == state.path.format(task=f"t-{name}")
    assert found.label
    assert not state.details or state.details in [one.text for one in found.details]
    assert word(figures) == (state.kind, said_of(name))


ALIKE = {
    "2 errors need a decision",
    "2 sharding DDLs wait",
    "2 sharding DDLs have waited too long",
    "2 tasks copy their tables",
    "2 tasks are changing their state",
}


@pytest.mark.parametrize("pair", tuple(itertools.combinations(STATES, 2)), ids="-and-".join)
def test_of_two_states_both_are_told_and_the_worse_one_first(pair: tuple[str, str]) -> None:
    figures = cluster(*pair)
    found = told(figures)
    assert {one.sentence.text for one in found} == {said_of(name) for name in pair if STATES[name].says}
    assert all(one.path and one.since for one in found)
    kinds = [STATES[name].kind for name in pair if STATES[name].says]
    worst = min(kinds, key=list(SIGNS).index, default="fine")
    kind, words = word(figures)
    assert kind == worst
    if kinds:
        assert words in {said_of(name) for name in pair} | ALIKE
        assert found[0].sentence.kind == worst
    else:
        assert words in ("All is fine", "All tasks are finished")


def test_all_is_fine_only_where_all_of_it_is() -> None:
    assert word(cluster("fine")) == ("fine", "All is fine")
    assert word(cluster("finished")) == ("done", "All tasks are finished")
    assert word(cluster("fine", "finished")) == ("fine", "All is fine")
    assert [name for name in STATES if word(cluster("fine", name))[1] == "All is fine"] == ["fine", "finished"]


def test_a_lag_is_fine_up_to_its_limit() -> None:
    for lag, kind in ((LAG_LIMIT - 1, "fine"), (LAG_LIMIT, "waits")):
        late = SYNC.model_copy(update={"seconds_behind_master": lag})
        report = SourceReport(
            source_status=SourceStatus(source="s", worker="w", relay_status=RELAY),
            sub_task_status=(GOOD.model_copy(update={"name": "t", "sync": late}),),
        )
        assert word(cluster_figures(["t"], {"s": report}, {"t": ("s",)}))[0] == kind


def test_a_state_on_some_sources_names_them() -> None:
    reports = {
        source: SourceReport(
            source_status=SourceStatus(source=source, worker="w", relay_status=RELAY),
            sub_task_status=(GOOD.model_copy(update={"name": "t", "stage": stage}),),
        )
        for source, stage in (("s1", Stage.RUNNING), ("s2", Stage.PAUSED), ("s3", Stage.PAUSED))
    }
    (found,) = told(cluster_figures(["t"], reports, {"t": tuple(reports)}))
    assert (found.sentence.text, found.sources) == ("Task t is paused", ("s2", "s3"))


SILENT = {"name": "w2", "stage": "offline", "source": ""}
FULL = {"name": "w1", "stage": "bound", "source": "s1", "disk_free": 0.03}
OLDER = {"name": "m1", "version": "1"}
NEWER = {"name": "w1", "stage": "bound", "source": "s1", "version": "2"}
UNTOLD = {"name": "w2", "stage": "free", "source": ""}
FINE, UNSERVED = cluster("fine"), cluster("fine", "unserved")


@pytest.mark.parametrize(
    ("figures", "kind", "expected"),
    [
        (ClusterFigures(), "waits", "Nothing is migrated yet"),
        (replace(FINE, workers=(SILENT,)), "waits", "Worker w2 does not answer"),
        (replace(UNSERVED, workers=(SILENT,)), "error", "Worker w2 is lost"),
        (replace(UNSERVED, workers=(SILENT, {**SILENT, "name": "w4"})), "error", "2 workers are lost"),
        (replace(FINE, masters=({"name": "m2", "alive": False},)), "waits", "Master m2 does not answer"),
        (replace(FINE, workers=(FULL,)), "waits", "The disk of worker w1 is 97 % full"),
        (replace(FINE, workers=({**FULL, "stage": "offline"},)), "waits", "Worker w1 does not answer"),
        (replace(FINE, workers=({**FULL, "disk_free": 0.06},)), "fine", "All is fine"),
        (replace(FINE, leader=OLDER, workers=(NEWER,)), "waits", "2 versions of Unshard run in the cluster"),
        (replace(FINE, leader={**OLDER, "version": "2"}, workers=(NEWER, UNTOLD)), "fine", "All is fine"),
        (cluster("paused", "stopped", "lagging"), "waits", "Task t-stopped is stopped"),
        (cluster("failed", "relay-failed", "unread"), "error", "3 errors need a decision"),
    ],
)
def test_members_disks_and_versions(figures: ClusterFigures, kind: str, expected: str) -> None:
    assert word(figures) == (kind, expected)
    assert all(one.path and one.since for one in told(figures))


def test_a_source_whose_worker_is_lost_is_told_once() -> None:
    found = told(replace(cluster("fine", "unserved"), workers=(SILENT,)))
    assert [one.group for one in found] == ["lost"]
    assert "Source s-unserved is not served." in [one.text for one in found[0].details]


def test_several_of_one_sort_are_counted_and_shortened() -> None:
    report = STATES["paused"].task
    reports = {
        f"s{at}": SourceReport(
            source_status=SourceStatus(source=f"s{at}", worker=f"w{at}", relay_status=RELAY),
            sub_task_status=(report.model_copy(update={"name": f"t{at}"}),),
        )
        for at in range(7)
    }
    figures = cluster_figures([f"t{at}" for at in range(7)], reports, {f"t{at}": (f"s{at}",) for at in range(7)})
    assert word(figures) == ("waits", "7 tasks are paused")
    assert [(one.name, more) for one, more in shortened(told(figures))] == [("t0", 0), ("t1", 0), ("t2", 0), ("t3", 3)]


def test_what_is_not_known_is_never_fine() -> None:
    assert word(ClusterFigures(), read=False) == ("unknown", "The state of the cluster is unknown")
    assert word(FINE, trouble="the store does not answer") == ("unknown", "The state of the cluster is unknown")
    found = told(FINE, trouble="the store does not answer")
    assert [one.text for one in found[0].details] == ["the store does not answer"]
    task = FINE.tasks[0]
    deaf = replace(
        task, subtasks=(*task.subtasks, replace(task.subtasks[0], source="s2", heard=False, rows_per_second=None))
    )
    assert (task.rows_per_second, deaf.rows_per_second) == (7, None), "a sum without one of its sources is unknown"


def test_a_state_keeps_its_beginning_until_it_ends() -> None:
    seen, late = FirstSeen(), concerns_of(cluster("lagging"), at=AT)
    assert [(one.since, one.at_least) for one in seen.dated((), AT)] == []
    assert [(one.since, one.at_least) for one in seen.dated(late, AT + 10)] == [(AT + 10, False)]
    assert [(one.since, one.at_least) for one in seen.dated(late, AT + 99)] == [(AT + 10, False)]
    seen.dated((), AT + 100)
    assert [one.since for one in seen.dated(late, AT + 110)] == [AT + 110]


def test_a_hostile_name_is_a_part_of_its_own() -> None:
    report = SourceReport(
        source_status=SourceStatus(source="s", worker="w", relay_status=RELAY),
        sub_task_status=(STATES["paused"].task.model_copy(update={"name": HOSTILE}),),
    )
    figures = cluster_figures([HOSTILE], {"s": report}, {HOSTILE: ("s",)})
    found = headline(told(figures), figures)
    assert (found.before, found.name, found.after) == ("Task ", HOSTILE, " is paused")


def test_nothing_contradicts_an_error() -> None:
    """Beside an error stands neither a rate nor what the task does while it runs."""
    failed = STATES["failed"].task.model_copy(
        update={"name": "t", "sync": SYNC.model_copy(update={"doing": "follows the binlog"})}
    )
    report = SourceReport(
        source_status=SourceStatus(source="s", worker="w", relay_status=RELAY), sub_task_status=(failed,)
    )
    (task,) = cluster_figures(["t"], {"s": report}, {"t": ("s",)}).tasks
    (one,) = task.subtasks
    assert (one.health.word, one.rows_per_second, one.work, task.rows_per_second) == ("error", None, "", None)


def test_a_verb_that_is_still_under_way_has_not_failed() -> None:
    done, later = {"result": True, "msg": ""}, {"result": False, "msg": "CLUSTER-010 [source s3]: after 10 s"}
    assert is_under_way({"result": False, "sources": [done, later]})
    assert not is_under_way({"result": False, "sources": [later, {"result": False, "msg": "TARGET-001: no"}]})
    assert not is_under_way({"result": True, "sources": [done]})
    assert not is_under_way({"result": False})
