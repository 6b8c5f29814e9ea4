"""Two hours of the figures of a source's tasks, for the charts of a page.

The worker keeps them, because it outlives a change of the master that leads. They cost no server anything.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from threading import Lock

from unshard.api.status import FigureHistory, FigurePoint, Stage, TaskHistory
from unshard.worker.report import sync_form
from unshard.worker.subtask_runner import SubtaskRunner

POINT_SECONDS = 10.0
POINTS = 720
"""Two hours."""
MOST_TASKS = 100
"""So many tasks of a source points are kept of: 50 MB at most."""


@dataclass(slots=True)
class FigureRing:
    """The figures of each task over the last two hours. `keep` is called by the agent's thread, `told` by any."""

    _points: dict[str, deque[FigurePoint]] = field(default_factory=dict)
    _due: float = 0.0
    _lock: Lock = field(default_factory=Lock)

    def keep(self, subtasks: Mapping[str, SubtaskRunner]) -> None:
        """Add a point of each task that replicates, the first at once, then where one is due.

        Tasks that ended are dropped.
        """
        is_due = time.monotonic() >= self._due
        if is_due:
            self._due = time.monotonic() + POINT_SECONDS
        wanted = subtasks if is_due else [task for task in subtasks if task not in self._points]
        if not wanted:
            return
        found = {task: point for task in wanted if (point := _point(subtasks[task])) is not None}
        with self._lock:
            self._points = {task: points for task, points in self._points.items() if task in subtasks}
            for task, point in found.items():
                if task in self._points or len(self._points) < MOST_TASKS:
                    self._points.setdefault(task, deque(maxlen=POINTS)).append(point)

    def told(self) -> FigureHistory:
        """Return all points, the oldest of each task first."""
        with self._lock:
            return FigureHistory(
                tasks=tuple(TaskHistory(task=task, points=tuple(points)) for task, points in self._points.items())
            )


def _point(hosted: SubtaskRunner) -> FigurePoint | None:
    status = hosted.reading(asks=False)
    if status.sync is None:
        return None
    form = sync_form(status)
    return FigurePoint(
        at=round(time.time()),
        lag=form.seconds_behind_master,
        rows_per_second=form.recent_rps if hosted.stage is Stage.RUNNING else None,
        batches=form.batches,
        batch_seconds=form.batch_seconds,
        step_seconds=form.step_seconds,
    )
