"""One reader of the cluster's state for all browsers, and two hours of what it read.

The workers are asked what `query-status` asks; neither a source nor the target is asked anything.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from threading import Event, Lock, Thread
from typing import Any

from unshard.api.verbs import ListMember
from unshard.errors import ClusterError, UnshardError
from unshard.log import logger
from unshard.master.service import Master
from unshard.web.page.figures import ClusterFigures, cluster_figures

LOOKED_AT_SECONDS, IDLE_SECONDS = 2.0, 10.0
"""Time between two looks while somebody has a page open, and while nobody has."""
_WATCHED_SECONDS = 15.0
POINT_SECONDS = 10.0
POINTS = 720
"""Two hours."""
MOST_SERIES = 2000
"""Task and source pairs that points are kept of: 50 MB at most."""

Point = tuple[int, int | None, int | None]
"""Unix time, lag in seconds, rows per second; None while unknown."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The cluster at `at` (unix time). `number` grows when it differs from the one before.

    `leader`: the address of the master that leads where this one does not. `trouble`: why nothing could be read.
    `rates`: rows per second of a task's target table between the last two looks.
    """

    number: int = 0
    at: float = 0
    figures: ClusterFigures = field(default_factory=ClusterFigures)
    leader: str = ""
    trouble: str = "the state has not been read yet"
    rates: Mapping[tuple[str, str], float] = field(default_factory=dict)


class StateReader:
    """Reads in a thread of its own between `start` and `stop`. Any thread may take `now`."""

    def __init__(self, master: Master) -> None:
        self._master = master
        self.now = Snapshot()
        self._points: dict[tuple[str, str], deque[Point]] = {}
        self._due = 0.0
        self._watched = 0.0
        self._latch = Lock()
        self._stop, self._wake = Event(), Event()
        self._thread = Thread(target=self._run, name="page reader", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._wake.set()
        self._thread.join(10)

    @property
    def stopping(self) -> bool:
        return self._stop.is_set()

    def watched(self) -> None:
        """Somebody looks: the state is read more often for a while, and at once where it is old."""
        self._watched = time.monotonic()
        if time.time() - self.now.at > 2 * LOOKED_AT_SECONDS:
            self._wake.set()

    def fresh(self) -> Snapshot:
        """The state read now: for the first page of all, and for the one that follows an action."""
        self.look()
        return self.now

    def history(self, task: str) -> dict[str, list[Point]]:
        """The points of the task, by source."""
        with self._latch:
            return {source: list(points) for (name, source), points in self._points.items() if name == task}

    def look(self) -> None:
        """Read the cluster once. What fails is shown as `trouble`, beside the figures that were read last."""
        with self._latch:
            old = self.now
            try:
                new = self._read()
                new = replace(new, rates=_rates(old, new))
            except ClusterError as error:
                leader = str(error.values.get("addr", "")) if error.code == "CLUSTER-002" else ""
                new = replace(old, trouble=str(error), leader=leader)
            except UnshardError as error:
                new = replace(old, trouble=str(error))
            except Exception as error:  # noqa: BLE001 - the page shows that it is blind; the thread goes on
                logger("page").error("state not read", exc_info=True, sampled=True)
                new = replace(old, trouble=f"a bug: {type(error).__name__}; the log of the process tells more")
            if _shown(new) != _shown(old):
                new = replace(new, number=old.number + 1)
            if not new.trouble and time.monotonic() >= self._due:
                self._keep(new)
            self.now = new

    def _read(self) -> Snapshot:
        state = self._master.cluster.state
        sources_of = {name: tuple(row.source for row in state.of_task(name)) for name in state.tasks}
        reports = self._master.statuses.reports(list(state.sources), None)
        figures = cluster_figures(state.tasks, reports, sources_of)
        members: list[dict[str, Any]] = self._master.list_member(ListMember())["members"]
        told = {kind: each[kind] for each in members for kind in each}
        whole = replace(
            figures,
            leader=told["leader"],
            masters=tuple(told["master"]["masters"]),
            workers=tuple(told["worker"]["workers"]),
        )
        return Snapshot(self.now.number, time.time(), whole, "", "")

    def _keep(self, new: Snapshot) -> None:
        self._due = time.monotonic() + POINT_SECONDS
        there = {(one.task, one.source): one for task in new.figures.tasks for one in task.subtasks}
        for gone in self._points.keys() - there.keys():
            del self._points[gone]
        for key, one in there.items():
            if key in self._points or len(self._points) < MOST_SERIES:
                points = self._points.setdefault(key, deque(maxlen=POINTS))
                points.append((round(new.at), one.lag, one.rows_per_second))

    def _run(self) -> None:
        while not self._stop.is_set():
            self.look()
            seconds = LOOKED_AT_SECONDS if time.monotonic() - self._watched < _WATCHED_SECONDS else IDLE_SECONDS
            self._wake.wait(seconds)
            self._wake.clear()


def _shown(snapshot: Snapshot) -> tuple[object, ...]:
    return snapshot.figures, snapshot.trouble, snapshot.leader, snapshot.rates


def _rates(old: Snapshot, new: Snapshot) -> dict[tuple[str, str], float]:
    """Rows per second of each table that was there before; nothing of one that is new or counts anew."""
    before = {(task.name, one.table): one.applied for task in old.figures.tasks for one in task.tables}
    seconds = new.at - old.at
    if seconds <= 0 or not old.at:
        return {}
    found = {}
    for task in new.figures.tasks:
        for one in task.tables:
            earlier = before.get((task.name, one.table))
            if earlier is not None and one.applied >= earlier:
                found[task.name, one.table] = (one.applied - earlier) / seconds
    return found
