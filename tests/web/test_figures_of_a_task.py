"""The figures of one task: whether its lag gets better, how much is copied, which actions it has."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest

from unshard.api.status import Stage
from unshard.web.page.figures import Health, SubtaskFigures, TaskFigures
from unshard.web.page.trends import LagTrend, LagTrends

FINE_HEALTH = Health("fine", "running")
SUBTASK = SubtaskFigures("t", "s1", "w1", FINE_HEALTH, "sync", True, lag=3, rows_per_second=7)
TASK = TaskFigures("t", FINE_HEALTH, (SUBTASK,), (), (), ())


def with_lag(lag: int | None) -> TaskFigures:
    return replace(TASK, subtasks=(replace(SUBTASK, lag=lag),))


def test_the_lag_of_an_hour_by_minute() -> None:
    trends, found = LagTrends(), {}
    for minute in range(70):
        trends.keep([with_lag(minute)], 60.0 * minute)
        found = dict(trends.keep([with_lag(1)], 60.0 * minute + 30))
    assert found["t"].minutes == tuple(range(10, 70)), "the largest of each minute, of the last sixty"
    found = dict(trends.keep([with_lag(None)], 60.0 * 73))
    assert found["t"].minutes[-5:] == (69, None, None, None, None), "nobody has looked meanwhile: unknown"
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


def test_how_much_is_copied() -> None:
    copying = [
        replace(SUBTASK, unit=unit, share=share) for unit, share in (("dump", 0.5), ("load", 0.1), ("sync", None))
    ]
    assert replace(TASK, subtasks=tuple(copying)).copied == pytest.approx(0.3)
    assert TASK.copied is None


@pytest.mark.parametrize(
    ("stages", "pause", "resume"),
    [
        ((Stage.RUNNING,), True, False),
        ((Stage.NEW,), True, False),
        ((Stage.PAUSED,), False, True),
        ((Stage.STOPPED,), False, True),
        ((Stage.RUNNING, Stage.PAUSED), True, True),
        ((Stage.FINISHED,), False, False),
        ((Stage.PAUSING,), False, False),
    ],
)
def test_what_runs_can_be_paused_and_what_rests_resumed(stages: Iterable[Stage], pause: bool, resume: bool) -> None:
    task = replace(TASK, subtasks=tuple(replace(SUBTASK, stage=stage) for stage in stages))
    assert (task.can_pause, task.can_resume) == (pause, resume)
