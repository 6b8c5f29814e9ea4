"""The full load's progress by table on the page, updated from the workers' changes while a user watches the task."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Lock

from unshard.api.status import CopyProgress, TableCopy
from unshard.errors import UnshardError
from unshard.model.progress import CopyStage
from unshard.web.page.figures import time_left

WATCHED_SECONDS = 15.0
KEPT_SECONDS = 900.0
"""So long the tables of a task that nobody looks at any more are kept."""
RATE_SECONDS = 60.0
"""The time over which rows per second are counted."""
_ASKED_AT_ONCE = 16
AT_WORK = (CopyStage.DUMPING, CopyStage.LOADING)
STAGES = tuple(CopyStage)

Ask = Callable[[str, str, str, int], CopyProgress]
"""`Statuses.copy_progress`: source, task, life, revision."""


@dataclass(frozen=True, slots=True)
class CopiedTable:
    """The full load's progress of one source table. `rate`: rows per second while it is copied; None while unknown."""

    source: str
    copy: TableCopy
    rate: float | None = None

    @property
    def share(self) -> float | None:
        """The part that is done, from 0 to 1; None while it is unknown."""
        about = self.copy.rows_about
        if self.copy.stage == CopyStage.LOADED:
            return 1.0
        return min(1.0, self.copy.rows / about) if about else None

    @property
    def eta(self) -> str:
        """The time that is left of this stage, as a range; empty while unknown."""
        if not self.rate or not self.copy.rows_about or self.copy.rows >= self.copy.rows_about:
            return ""
        left = (self.copy.rows_about - self.copy.rows) / self.rate
        return time_left(0.8 * left, 1.3 * left)


@dataclass(frozen=True, slots=True)
class CopyFigures:
    """The full load's progress of all tables of a task. `silent`: the sources that did not answer, with the reason."""

    tables: tuple[CopiedTable, ...] = ()
    silent: Mapping[str, str] = field(default_factory=dict)

    @property
    def counts(self) -> dict[str, int]:
        """Number of tables in each stage."""
        found = dict.fromkeys(map(str, STAGES), 0)
        for one in self.tables:
            if one.copy.stage in found:
                found[one.copy.stage] += 1
        return found


@dataclass(slots=True)
class _Source:
    """The answers of one source about one task."""

    life: str = ""
    revision: int = 0
    tables: dict[str, TableCopy] = field(default_factory=dict)
    points: dict[str, deque[tuple[float, int]]] = field(default_factory=dict)
    trouble: str = ""

    def take(self, told: CopyProgress, now: float) -> bool:
        """Take over what has changed; whether anything has."""
        if told.whole:
            self.tables, self.points = {}, {}
        changed = bool(told.tables) or told.life != self.life or bool(self.trouble)
        for one in told.tables:
            before = self.tables.get(one.table)
            if before is not None and before.stage != one.stage:
                self.points.pop(one.table, None)
            self.tables[one.table] = one
            if one.stage in AT_WORK:
                self.points.setdefault(one.table, deque())
        self.life, self.revision, self.trouble = told.life, told.revision, ""
        for table in list(self.points):
            self._point(table, now)
        return changed

    def rate(self, table: str) -> float | None:
        points = self.points.get(table)
        if points is None or len(points) < 2 or points[-1][0] <= points[0][0]:
            return None
        return max(0.0, (points[-1][1] - points[0][1]) / (points[-1][0] - points[0][0]))

    def _point(self, table: str, now: float) -> None:
        points = self.points[table]
        if self.tables[table].stage not in AT_WORK:
            del self.points[table]
            return
        points.append((now, self.tables[table].rows))
        while points[0][0] < now - RATE_SECONDS:
            points.popleft()


class CopyWatch:
    """The full load's progress by table, of the tasks that a user looks at.

    `look` is called by the reader's thread, the other methods by any.
    """

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._known: dict[tuple[str, str], _Source] = {}
        self._watched: dict[str, float] = {}
        self._made: dict[str, CopyFigures] = {}
        self._lock = Lock()

    def watch(self, task: str, now: float) -> bool:
        """Note that a user looks at the task; return whether nothing has been asked of it yet."""
        fresh = task not in self._made
        self._watched[task] = now
        return fresh

    def figures(self, task: str) -> CopyFigures:
        """Return the last figures of the task; empty ones before the first."""
        return self._made.get(task, CopyFigures())

    def look(self, sources_of: Mapping[str, tuple[str, ...]], now: float) -> bool:
        """Ask the workers of the tasks that are watched (monotonic seconds); whether anything has changed."""
        with self._lock:
            changed = False
            for task, at in list(self._watched.items()):
                if task not in sources_of or now - at > KEPT_SECONDS:
                    self._forget(task)
                elif now - at <= WATCHED_SECONDS and self._asked(task, sources_of[task], now):
                    self._made[task] = self._figures(task, sources_of[task])
                    changed = True
            return changed

    def _asked(self, task: str, sources: Iterable[str], now: float) -> bool:
        changed = task not in self._made
        known = {source: self._known.setdefault((task, source), _Source()) for source in sources}

        def ask(source: str) -> CopyProgress | str:
            try:
                return self._ask(source, task, known[source].life, known[source].revision)
            except UnshardError as error:
                return str(error)

        with ThreadPoolExecutor(_ASKED_AT_ONCE) as pool:
            answers = list(pool.map(ask, known))
        for one, told in zip(known.values(), answers, strict=True):
            if isinstance(told, CopyProgress):
                changed |= one.take(told, now)
            else:
                changed |= one.trouble != told
                one.trouble = told
        return changed

    def _figures(self, task: str, sources: Iterable[str]) -> CopyFigures:
        before = {(one.source, one.copy.table): one for one in self.figures(task).tables}
        tables, silent = [], {}
        for source in sources:
            known = self._known[task, source]
            if known.trouble:
                silent[source] = known.trouble
            for name in sorted(known.tables):
                one, rate = known.tables[name], known.rate(name)
                kept = before.get((source, name))
                same = kept is not None and kept.copy is one and kept.rate == rate
                tables.append(kept if kept is not None and same else CopiedTable(source, one, rate))
        return CopyFigures(tuple(tables), silent)

    def _forget(self, task: str) -> None:
        self._watched.pop(task, None)
        self._made.pop(task, None)
        for key in [key for key in self._known if key[0] == task]:
            del self._known[key]


def shown_tables(figures: CopyFigures, words: str, stage: str, sort: str) -> list[CopiedTable]:
    """Return the tables with the words in the name of the source's or target's table, in the requested order."""
    words = words.lower()
    found = [
        one
        for one in figures.tables
        if stage in ("", one.copy.stage) and (words in one.copy.table.lower() or words in one.copy.target.lower())
    ]
    return sorted(found, key=SORTS.get(sort, SORTS["work"]))


def _name(one: CopiedTable) -> tuple[str, str]:
    return one.copy.table, one.source


_ORDER = {stage: number for number, stage in enumerate(("loading", "dumping", "dumped", "waiting", "loaded"))}
SORTS: dict[str, Callable[[CopiedTable], tuple[object, ...]]] = {
    "work": lambda one: (_ORDER.get(one.copy.stage, 9), *_name(one)),
    "table": _name,
    "target": lambda one: (one.copy.target, *_name(one)),
    "rows": lambda one: (-max(one.copy.rows, one.copy.rows_about or 0), *_name(one)),
    "rate": lambda one: (-(one.rate or 0), *_name(one)),
    "left": lambda one: (-((one.copy.rows_about or 0) - one.copy.rows), *_name(one)),
}
