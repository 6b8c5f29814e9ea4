"""The times of a batch's steps over two hours, in memory: means between two points, of all sources."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from unshard.web.page.figures import SubtaskFigures, TaskFigures

POINTS = 720
MOST_TASKS = 200
"""So many tasks points are kept of: 50 MB at most."""
WHOLE = "whole batch"

StepPoint = tuple[int, float]
"""Unix time, seconds of a batch."""


@dataclass(slots=True)
class _Task:
    """The data of one task: by source, the sums at the last point, and the points of all sources together.

    A point is a unix time, with the seconds of a batch by step.
    """

    sums: dict[str, tuple[int, dict[str, float]]] = field(default_factory=dict)
    points: deque[tuple[int, dict[str, float]]] = field(default_factory=lambda: deque(maxlen=POINTS))


class StepTimes:
    """The mean time of each task's steps in a batch, point by point. Not for two threads at once.

    A source that is new, or whose counts begin anew, has no mean yet.
    """

    def __init__(self) -> None:
        self._tasks: dict[str, _Task] = {}

    def keep(self, tasks: Iterable[TaskFigures], at: float) -> None:
        """Add a point of each task; tasks that ended are dropped."""
        there = {one.name: one for one in tasks}
        self._tasks = {name: kept for name, kept in self._tasks.items() if name in there}
        for name, task in there.items():
            if name in self._tasks or len(self._tasks) < MOST_TASKS:
                kept = self._tasks.setdefault(name, _Task())
                kept.points.append((round(at), _means(kept.sums, task.subtasks)))

    def history(self, task: str) -> dict[str, list[StepPoint]]:
        """Return the points of each step; none where no batch ended in between."""
        found: dict[str, list[StepPoint]] = {}
        kept = self._tasks.get(task)
        for at, means in tuple(kept.points) if kept is not None else ():
            for step, seconds in means.items():
                found.setdefault(step, []).append((at, round(seconds, 4)))
        return found


def _means(sums: dict[str, tuple[int, dict[str, float]]], subtasks: Iterable[SubtaskFigures]) -> dict[str, float]:
    batches, seconds = 0, dict[str, float]()
    for one in subtasks:
        if one.batches is None:
            sums.pop(one.source, None)
            continue
        now: Mapping[str, float] = {**dict(one.step_seconds), WHOLE: one.batch_seconds}
        before = sums.get(one.source)
        sums[one.source] = one.batches, dict(now)
        if before is None or one.batches <= before[0]:
            continue
        batches += one.batches - before[0]
        for step, total in now.items():
            seconds[step] = seconds.get(step, 0.0) + max(0.0, total - before[1].get(step, 0.0))
    return {step: total / batches for step, total in seconds.items()} if batches else {}
