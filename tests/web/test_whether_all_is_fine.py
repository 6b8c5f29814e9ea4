"""The first line of the overview, and the trend of the lag."""

from __future__ import annotations

from dataclasses import replace

import pytest
from page_served import error

from unshard.web.page.actions import is_under_way
from unshard.web.page.endpoints import verdict
from unshard.web.page.figures import (
    ClusterFigures,
    Health,
    SourceFigures,
    SubtaskFigures,
    TaskFigures,
    Trouble,
)
from unshard.web.page.trends import LagTrend, LagTrends

FINE = Health("fine", "running")
SUBTASK = SubtaskFigures("t", "s1", "w1", FINE, "sync", True, lag=3, rows_per_second=7)
TASK = TaskFigures("t", FINE, "Running", (SUBTASK,), (), (), ())
SILENT = {"name": "w2", "stage": "offline", "source": ""}
FULL = {"name": "w1", "stage": "bound", "source": "s1", "disk_free": 0.03}
OLDER = {"name": "m1", "version": "1"}
NEWER = {"name": "w1", "stage": "bound", "source": "s1", "version": "2"}
UNTOLD = {"name": "w2", "stage": "free", "source": ""}
SERVED = SourceFigures("s1", "w1", FINE, True, "running", "", ("t",))
UNSERVED = SourceFigures("s2", "", Health("error", "not served"), False, "unknown", "", ("t",))


def word(figures: ClusterFigures, *, read: bool = True, trouble: str = "") -> tuple[str, str]:
    found = verdict(figures, read=read, trouble=trouble)
    return found.kind, found.word


def in_state(kind: str, name: str) -> TaskFigures:
    return replace(TASK, name=name, health=Health(kind, {"waits": "paused", "unknown": "unknown"}[kind]))


@pytest.mark.parametrize(
    ("figures", "kind", "expected"),
    [
        (ClusterFigures((TASK,)), "fine", "All is fine"),
        (ClusterFigures((TASK,), (SERVED,), workers=(SILENT,)), "waits", "A worker does not answer"),
        (ClusterFigures(), "waits", "Nothing is migrated yet"),
        (ClusterFigures((in_state("waits", "a"), TASK)), "waits", "Task a is paused"),
        (ClusterFigures((in_state("waits", "a"), in_state("waits", "b"))), "waits", "2 tasks stand still"),
        (ClusterFigures((in_state("unknown", "a"), in_state("waits", "b"))), "unknown", "Not all is known"),
        (ClusterFigures((TASK,), (SERVED, UNSERVED), workers=(SILENT,)), "error", "Worker w2 is lost"),
        (
            ClusterFigures((TASK,), (UNSERVED,), workers=(SILENT, {**SILENT, "name": "w4"})),
            "error",
            "2 workers are lost",
        ),
        (ClusterFigures((TASK,), masters=({"name": "m2", "alive": False},)), "waits", "A master does not answer"),
        (ClusterFigures((TASK,), troubles=(Trouble("s1", error()),)), "error", "1 error needs a decision"),
        (ClusterFigures((TASK,), workers=(FULL,)), "waits", "The disk of worker w1 is 97 % full"),
        (
            ClusterFigures((TASK,), workers=({**FULL, "stage": "offline"},), sources=(SERVED,)),
            "waits",
            "A worker does not answer",
        ),
        (ClusterFigures((TASK,), workers=({**FULL, "disk_free": 0.06},)), "fine", "All is fine"),
        (ClusterFigures((TASK,), leader=OLDER, workers=(NEWER,)), "waits", "2 versions of Unshard run in the cluster"),
        (ClusterFigures((TASK,), leader={**OLDER, "version": "2"}, workers=(NEWER, UNTOLD)), "fine", "All is fine"),
    ],
)
def test_the_worst_comes_first(figures: ClusterFigures, kind: str, expected: str) -> None:
    assert word(figures) == (kind, expected)


def test_what_is_not_known_is_never_fine() -> None:
    assert word(ClusterFigures(), read=False) == ("unknown", "The state of the cluster is unknown")
    assert word(ClusterFigures((TASK,)), trouble="the store does not answer")[0] == "unknown"
    deaf = replace(TASK, subtasks=(SUBTASK, replace(SUBTASK, source="s2", heard=False, rows_per_second=None)))
    assert (TASK.rows_per_second, deaf.rows_per_second) == (7, None), "a sum without one of its sources is unknown"


def with_lag(lag: int | None) -> TaskFigures:
    return replace(TASK, subtasks=(replace(SUBTASK, lag=lag),))


def test_the_lag_of_an_hour_by_minute() -> None:
    trends, told = LagTrends(), {}
    for minute in range(70):
        trends.keep([with_lag(minute)], 60.0 * minute)
        told = dict(trends.keep([with_lag(1)], 60.0 * minute + 30))
    assert told["t"].minutes == tuple(range(10, 70)), "the largest of each minute, of the last sixty"
    told = dict(trends.keep([with_lag(None)], 60.0 * 73))
    assert told["t"].minutes[-5:] == (69, None, None, None, None), "nobody has looked meanwhile: unknown"
    assert trends.keep([], 60.0 * 74) == {}


def test_whether_it_gets_better() -> None:
    def words(before: int | None, now: int | None) -> str:
        return LagTrend((before, 1, 1, 1, 1, now)).words(now)

    assert words(10, 600) == "▲ rising (5 min ago: 10 s)"
    assert words(600, 10) == "▼ falling (5 min ago: 10 min)"
    assert words(2, 4) == words(1000, 1100) == "→ steady"
    assert words(None, 4) == words(4, None) == "" == LagTrend((3, 4)).words(4)


def test_a_gap_in_the_line_where_the_lag_is_unknown() -> None:
    assert LagTrend((0, 10, None, 5, 5)).path.count("M") == 2
    assert LagTrend((None, 5)).path == "" == LagTrend(()).path


def test_how_much_is_copied_and_what_can_be_done() -> None:
    copying = [
        replace(SUBTASK, unit=unit, share=share) for unit, share in (("dump", 0.5), ("load", 0.1), ("sync", None))
    ]
    assert replace(TASK, subtasks=tuple(copying)).copied == pytest.approx(0.3)
    assert TASK.copied is None
    paused = replace(SUBTASK, health=Health("waits", "paused"))
    told = {
        subtasks: (replace(TASK, subtasks=subtasks).runs, replace(TASK, subtasks=subtasks).rests)
        for subtasks in ((SUBTASK,), (paused,), (SUBTASK, paused))
    }
    assert list(told.values()) == [(True, False), (False, True), (True, True)]


def test_a_verb_that_is_still_under_way_has_not_failed() -> None:
    done, later = {"result": True, "msg": ""}, {"result": False, "msg": "CLUSTER-010 [source s3]: after 10 s"}
    assert is_under_way({"result": False, "sources": [done, later]})
    assert not is_under_way({"result": False, "sources": [later, {"result": False, "msg": "TARGET-001: no"}]})
    assert not is_under_way({"result": True, "sources": [done]})
    assert not is_under_way({"result": False})
