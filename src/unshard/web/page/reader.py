"""Reads the state of the cluster once for all browsers, and keeps what it read in the last two hours.

Only the workers are queried, for what they already know; neither a source nor the target is. A master that becomes the
leader gets the two hours from the workers.
"""

from __future__ import annotations

import re
import time
from collections import deque
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from math import inf
from threading import Condition, Event, Lock, Thread
from typing import Any

from unshard.api.status import FigureHistory
from unshard.api.verbs import ListMember
from unshard.errors import ClusterError, UnshardError
from unshard.log import logger
from unshard.master.service import Master
from unshard.metrics.sample import own_version
from unshard.web.page.concerns import concerns_of
from unshard.web.page.copying import CopyFigures, CopyWatch
from unshard.web.page.figures import ClusterFigures
from unshard.web.page.log_watch import LogWatch, TaskLog
from unshard.web.page.reported import cluster_figures
from unshard.web.page.restored import replayed
from unshard.web.page.route_reader import RouteReader
from unshard.web.page.step_times import StepPoint, StepTimes
from unshard.web.page.trends import LagTrend, LagTrends
from unshard.web.page.validation import ValidationReader, ValidationRecord, record_mark
from unshard.web.page.verdict import Concern, FirstSeen

LOOKED_AT_SECONDS, IDLE_SECONDS = 2.0, 10.0
"""Time between two looks while somebody has a page open, and while nobody has."""
_REST = 20.0
"""After a look that took long, the time until the next one is so many times as long, IDLE_SECONDS at most."""
_WATCHED_SECONDS = 15.0
FIRST_SECONDS = 1.0
_ADDRESS = re.compile(r"[\w.:\[\]-]{1,300}\Z")
POINT_SECONDS = 10.0
POINTS = 720
"""Two hours."""
GAP_SECONDS = 30.0
"""After a time without points that is longer, as of a master that begins to lead, the workers tell what they kept."""
_TRIES = 6
_ASKED_AT_ONCE = 16
MOST_SERIES = 2000
"""Task and source pairs that points are kept of: 50 MB at most."""

Point = tuple[int, int | None, int | None]
"""Unix time, lag in seconds, rows per second; None while unknown."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state of the cluster at `at` (unix time). `number` grows when it differs from the snapshot before.

    Args:
        leader: the address of the leading master, if this one does not lead.
        trouble: why nothing could be read.
        rates: rows per second of a task's target table between the last two looks.
        demanded: counts the changes of what is read only while a user looks at it: the copy by table, the routes, the
            records of validation.
        trends: the lag of each task over the last hour, up to the last point that was stored.
        concerns: all problems, the worst first.
    """

    number: int = 0
    at: float = 0
    figures: ClusterFigures = field(default_factory=ClusterFigures)
    leader: str = ""
    trouble: str = "the state has not been read yet"
    rates: Mapping[tuple[str, str], float] = field(default_factory=dict)
    demanded: int = 0
    trends: Mapping[str, LagTrend] = field(default_factory=dict)
    concerns: tuple[Concern, ...] = field(default_factory=lambda: concerns_of(ClusterFigures(), read=False))


class StateReader:
    """The reader of the cluster's state for the page, in a thread of its own between `start` and `stop`.

    Any thread may read `now`, the last snapshot.
    """

    def __init__(self, master: Master) -> None:
        self._master = master
        self.now = Snapshot()
        self._copies = CopyWatch(master.statuses.copy_progress)
        self._steps, self._trends, self._first_seen = StepTimes(), LagTrends(), FirstSeen()
        self._logs = LogWatch(master.statuses.log_tail)
        self.routes = RouteReader(master, self._read_on_demand)
        self.validations = ValidationReader(lambda asked: master.validation(asked, ""), self._read_on_demand)
        self._demanded = 0
        self.points_kept = 0
        self._points: dict[tuple[str, str], deque[Point]] = {}
        self._kept_at = 0.0
        self._past: dict[str, FigureHistory] = {}
        self._without_past: dict[str, int] = {}
        self._due = 0.0
        self._watched = 0.0
        self._rests_until = 0.0
        self._latch, self._told = Lock(), Condition()
        self._stop, self._wake = Event(), Event()
        self._thread = Thread(target=self._run, name="page reader", daemon=True)

    def start(self) -> None:
        """Start the thread that reads."""
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread, and wait for it 10 seconds at most."""
        self._stop.set()
        self._wake.set()
        self._thread.join(10)

    @property
    def stopping(self) -> bool:
        """True if `stop` was called."""
        return self._stop.is_set()

    def watched(self) -> None:
        """Note that a user looks: the state is read more often for a while, and at once where it is old.

        Not while it is read, nor in the rest after a look that took long.
        """
        self._watched = time.monotonic()
        if time.time() - self.now.at > 2 * LOOKED_AT_SECONDS and self._watched >= self._rests_until:
            self._wake.set()

    def looked(self) -> Snapshot:
        """Return the state for a page.

        The first look after a time without looks waits for a new reading, FIRST_SECONDS at most. All others get the
        last reading, so that a cluster that answers slowly is not asked more often.
        """
        old, idle = self.now, time.monotonic() - self._watched > _WATCHED_SECONDS
        self.watched()
        if not old.at and not old.leader:
            return self.fresh()
        if idle and time.time() - old.at > 2 * LOOKED_AT_SECONDS:
            with self._told:
                self._told.wait_for(lambda: self.now is not old or self.stopping, FIRST_SECONDS)
        return self.now

    def leads(self) -> bool:
        """Return whether this master leads."""
        return bool(self._master.election.epoch)

    def peers(self) -> list[str]:
        """Return the addresses of the other masters, as far as they may be in a header."""
        found = (str(addr) for one in self.now.figures.masters for addr in one["clientURLs"])
        return sorted({addr for addr in found if addr != self._master.addr and _ADDRESS.match(addr)})

    def fresh(self) -> Snapshot:
        """Return the state as of now: for the very first page, and for the page after an action."""
        self.look()
        return self.now

    def watch_copy(self, task: str) -> None:
        """Note that a user has the copy of the task open: the workers are asked for a while."""
        self._copies.watch(task, time.monotonic())

    def copy_figures(self, task: str) -> CopyFigures:
        """Return the copy by table, and count this call as a look.

        The workers are asked now where nothing is known yet.
        """
        if self._copies.watch(task, time.monotonic()):
            self.look()
        return self._copies.figures(task)

    def watch_log(self, task: str) -> None:
        """Note that a user has the log of the task open."""
        self._logs.watch(task, time.monotonic())

    def log(self, task: str) -> TaskLog:
        """Return the newest lines of the task's processes. They are asked now where nobody has looked yet."""
        if self._logs.watch(task, time.monotonic()):
            self.look()
        return self._logs.lines(task, [row.source for row in self._master.cluster.state.of_task(task)])

    def validation(self, task: str, state: str, *, with_rows: bool) -> ValidationRecord | None:
        """Return the target's record of the task's validation; None while it is read for the first time."""
        found = self.now.figures.task(task)
        return self.validations.of((task, state, with_rows), record_mark(found.validators) if found is not None else ())

    def history(self, task: str) -> dict[str, list[Point]]:
        """Return the points of the task, by source."""
        with self._latch:
            return {source: list(points) for (name, source), points in self._points.items() if name == task}

    def step_history(self, task: str) -> dict[str, list[StepPoint]]:
        """Return the seconds of a batch, by step."""
        with self._latch:
            return self._steps.history(task)

    def look(self) -> None:
        """Read the cluster once. What fails is shown as `trouble`, beside the figures that were read last."""
        with self._latch:
            old = self.now
            try:
                new = self._read()
                new = replace(new, rates=_rates(old, new), trends=old.trends)
            except ClusterError as error:
                leader = str(error.values.get("addr", "")) if error.code == "CLUSTER-002" else ""
                new = replace(old, trouble=str(error), leader=leader)
            except UnshardError as error:
                new = replace(old, trouble=str(error))
            except Exception as error:  # noqa: BLE001 - the page shows that it is blind; the thread goes on
                logger("page").error("state not read", exc_info=True, sampled=True)
                new = replace(old, trouble=f"a bug: {type(error).__name__}; the log of the process tells more")
            if not new.trouble and time.monotonic() >= self._due:
                new = replace(new, trends=self._keep(new))
            found = concerns_of(new.figures, read=bool(new.at), trouble=new.trouble, at=new.at)
            new = replace(new, concerns=self._first_seen.dated(found, time.time()))
            if _shown(new) != _shown(old):
                new = replace(new, number=old.number + 1)
            self.now = new
        with self._told:
            self._told.notify_all()

    def _read_on_demand(self) -> None:
        self._demanded += 1
        self._wake.set()

    def _read(self) -> Snapshot:
        state = self._master.cluster.state
        sources_of = {name: tuple(row.source for row in state.of_task(name)) for name in state.tasks}
        reports = self._master.statuses.reports(list(state.sources), None)
        disabled = [row.name for row in state.sources.values() if not row.enabled]
        figures = cluster_figures(state.tasks, reports, sources_of, disabled)
        members: list[dict[str, Any]] = self._master.list_member(ListMember())["members"]
        told = {kind: each[kind] for each in members for kind in each}
        whole = replace(
            figures,
            leader={**told["leader"], "version": own_version()},
            masters=tuple(told["master"]["masters"]),
            workers=tuple({**one, **self._beaten(one["name"])} for one in told["worker"]["workers"]),
        )
        self._demanded += self._copies.look(sources_of, time.monotonic())
        self._demanded += self._logs.look(sources_of, time.monotonic())
        self.validations.look({one.name: record_mark(one.validators) for one in whole.tasks})
        return Snapshot(self.now.number, time.time(), whole, "", "", demanded=self._demanded)

    def _beaten(self, worker: str) -> dict[str, Any]:
        """Return the version and the disk space in the worker's last heartbeat; nothing without a heartbeat."""
        beat = self._master.liveness.beat_of(worker)
        return {"version": beat.version if beat else "", "disk_free": beat.disk_free if beat else None}

    def _keep(self, new: Snapshot) -> Mapping[str, LagTrend]:
        """Keep a point of each source and of the steps of each task. Returns the trends."""
        self._due = time.monotonic() + POINT_SECONDS
        self.points_kept += 1
        self._restore(new)
        self._kept_at = new.at
        self._steps.keep(new.figures.tasks, new.at)
        there = {(one.task, one.source): one for task in new.figures.tasks for one in task.subtasks}
        for gone in self._points.keys() - there.keys():
            del self._points[gone]
        for key, one in there.items():
            if key in self._points or len(self._points) < MOST_SERIES:
                points = self._points.setdefault(key, deque(maxlen=POINTS))
                points.append((round(new.at), one.lag, one.rows_per_second))
        return self._trends.keep(new.figures.tasks, new.at)

    def _restore(self, new: Snapshot) -> None:
        """Fill a gap with what the workers have kept. Those that do not answer yet are asked again at later points."""
        if new.at - self._kept_at > GAP_SECONDS:
            self._past, self._without_past = {}, {one.name: _TRIES for one in new.figures.sources}
        if not self._without_past:
            return

        def ask(source: str) -> FigureHistory | None:
            try:
                return self._master.statuses.history(source)
            except UnshardError:
                return None  # the page tells of such a worker anyway

        with ThreadPoolExecutor(_ASKED_AT_ONCE) as pool:
            found = dict(zip(self._without_past, pool.map(ask, self._without_past), strict=True))
        told = {source: history for source, history in found.items() if history is not None}
        left = {source: tries - 1 for source, tries in self._without_past.items() if source not in told}
        self._without_past = {source: tries for source, tries in left.items() if tries}
        self._past |= told
        if any(history.tasks for history in told.values()):
            self._replay(new)
        if not self._without_past:
            self._past = {}

    def _replay(self, new: Snapshot) -> None:
        sources_of = {task.name: [one.source for one in task.subtasks] for task in new.figures.tasks}
        self._steps, self._trends = StepTimes(), LagTrends()
        points: dict[tuple[str, str], list[Point]] = {}
        for at, tasks in replayed(self._past, sources_of, new.at):
            self._steps.keep(tasks, at)
            self._trends.keep(tasks, at)
            for one in (one for task in tasks for one in task.subtasks if one.heard):
                points.setdefault((one.task, one.source), []).append((at, one.lag, one.rows_per_second))
        for key, past in points.items():
            if key not in self._points and len(self._points) >= MOST_SERIES:
                continue
            own = [point for point in self._points.get(key, ()) if point[0] < past[0][0]]
            self._points[key] = deque([*own, *past], maxlen=POINTS)

    def _run(self) -> None:
        while not self._stop.is_set():
            begun, self._rests_until = time.monotonic(), inf
            self.look()
            now = time.monotonic()
            rest = min(_REST * (now - begun), IDLE_SECONDS)
            self._rests_until = now + rest
            self._wake.wait(max(LOOKED_AT_SECONDS, rest) if now - self._watched < _WATCHED_SECONDS else IDLE_SECONDS)
            self._wake.clear()


def _shown(snapshot: Snapshot) -> tuple[object, ...]:
    told = snapshot.figures, snapshot.concerns, snapshot.trouble, snapshot.leader
    return *told, snapshot.rates, snapshot.demanded, snapshot.trends


def _rates(old: Snapshot, new: Snapshot) -> dict[tuple[str, str], float]:
    """Return the rows per second of each table that the earlier reading had.

    None of a table whose counts began anew.
    """
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
