"""Computes past figures of a cluster for a master that becomes the leader, from those that the workers have kept.

No I/O.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from unshard.api.status import FigureHistory, FigurePoint
from unshard.web.page.figures import Health, SubtaskFigures, TaskFigures

POINT_SECONDS = 10
_PAST = Health("unknown", "of the past")


def replayed(
    histories: Mapping[str, FigureHistory], sources_of: Mapping[str, Iterable[str]], until: float
) -> list[tuple[int, list[TaskFigures]]]:
    """Return the figures of all tasks for each POINT_SECONDS of the past up to `until` (unix time), oldest first.

    `histories` are by source. What a worker has not kept is unknown.
    """
    points: dict[int, dict[tuple[str, str], FigurePoint]] = defaultdict(dict)
    for source, history in histories.items():
        for told in history.tasks:
            for point in told.points:
                if point.at <= until:
                    points[point.at // POINT_SECONDS * POINT_SECONDS][told.task, source] = point
    return [(at, [_task(task, sources, points[at]) for task, sources in sources_of.items()]) for at in sorted(points)]


def _task(task: str, sources: Iterable[str], points: Mapping[tuple[str, str], FigurePoint]) -> TaskFigures:
    subtasks = tuple(_subtask(task, source, points.get((task, source))) for source in sources)
    return TaskFigures(task, _PAST, subtasks, (), (), ())


def _subtask(task: str, source: str, point: FigurePoint | None) -> SubtaskFigures:
    if point is None:
        return SubtaskFigures(task, source, "", _PAST, "", heard=False)
    return SubtaskFigures(
        task, source, "", _PAST, "sync", heard=True, lag=point.lag, rows_per_second=point.rows_per_second,
        batches=point.batches, batch_seconds=point.batch_seconds, step_seconds=tuple(point.step_seconds.items()),
    )  # fmt: skip
