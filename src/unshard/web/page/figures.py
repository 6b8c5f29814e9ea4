"""What the page shows of a cluster, as frozen values: made of `query-status`'s forms, pure. None is "unknown"."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from unshard.api.status import ProcessError, RelayStatus, SourceReport, Stage, SubTaskStatus, UnitName
from unshard.master.status import summary

_COUNTS = ("inserted", "updated", "deleted", "filtered", "missing")


@dataclass(frozen=True, slots=True)
class Health:
    """A state in a word, with a sign beside it: `kind` is `error`, `waits`, `fine`, `done` or `unknown`."""

    kind: str
    word: str

    @property
    def sign(self) -> str:
        return {"error": "✖", "waits": "◐", "fine": "●", "done": "✔"}.get(self.kind, "?")


@dataclass(frozen=True, slots=True)
class Trouble:
    """An error with where it is: of a source's task, of the source (`task` empty), or of its relay (`of_relay`)."""

    source: str
    error: ProcessError
    task: str = ""
    of_relay: bool = False


@dataclass(frozen=True, slots=True)
class DdlLock:
    """A sharding DDL that one source waits with, in the words of `query-status`."""

    id: str
    task: str
    source: str
    target: str
    ddls: tuple[str, ...]
    owner: str
    synced: tuple[str, ...]
    unsynced: tuple[str, ...]
    since: str
    waits_for: str
    mismatch: tuple[str, ...]
    help: str
    overdue: bool


@dataclass(frozen=True, slots=True)
class SubtaskFigures:
    """One task on one source. `share` is the part of a copy that is done, from 0 to 1; `heard` is false where the
    worker did not answer and only the master's record is shown."""

    task: str
    source: str
    worker: str
    health: Health
    unit: str
    heard: bool
    lag: int | None = None
    rows_per_second: int | None = None
    bytes_per_second: int | None = None
    backlog: int | None = None
    share: float | None = None
    eta: str = ""
    position: str = ""
    doing: str = ""
    safe_mode: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class TableFigures:
    """What became of the rows of one target table, over all sources, since the task began to follow the binlogs."""

    table: str
    inserted: int
    updated: int
    deleted: int
    filtered: int
    missing: int

    @property
    def applied(self) -> int:
        return self.inserted + self.updated + self.deleted


@dataclass(frozen=True, slots=True)
class TaskFigures:
    name: str
    health: Health
    status: str
    subtasks: tuple[SubtaskFigures, ...]
    troubles: tuple[Trouble, ...]
    locks: tuple[DdlLock, ...]
    tables: tuple[TableFigures, ...]

    @property
    def lag(self) -> int | None:
        """The largest lag of its sources; unknown where one of them is."""
        lags = [one.lag for one in self.subtasks]
        known = [lag for lag in lags if lag is not None]
        return max(known) if known and len(known) == len(lags) else None

    @property
    def rows_per_second(self) -> int | None:
        known = [one.rows_per_second for one in self.subtasks if one.rows_per_second is not None]
        return sum(known) if known else None


@dataclass(frozen=True, slots=True)
class SourceFigures:
    """A source and where it runs. `relay` is the word for its relay's stage."""

    name: str
    worker: str
    health: Health
    relay: str
    relay_position: str
    tasks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ClusterFigures:
    tasks: tuple[TaskFigures, ...] = ()
    sources: tuple[SourceFigures, ...] = ()
    troubles: tuple[Trouble, ...] = ()
    leader: Mapping[str, Any] | None = None
    masters: tuple[Mapping[str, Any], ...] = ()
    workers: tuple[Mapping[str, Any], ...] = ()

    def task(self, name: str) -> TaskFigures | None:
        return next((one for one in self.tasks if one.name == name), None)

    @property
    def all_troubles(self) -> tuple[Trouble, ...]:
        return (*self.troubles, *(trouble for task in self.tasks for trouble in task.troubles))

    @property
    def locks(self) -> tuple[DdlLock, ...]:
        return tuple(lock for task in self.tasks for lock in task.locks)

    @property
    def lost_workers(self) -> tuple[str, ...]:
        """The workers that are silent though a source is bound to them."""
        return tuple(str(one["name"]) for one in self.workers if one["stage"] == "offline" and one["source"])


def cluster_figures(
    names: Iterable[str], reports: Mapping[str, SourceReport], sources_of: Mapping[str, tuple[str, ...]]
) -> ClusterFigures:
    """`names`: the tasks; `sources_of`: the sources of each."""
    tasks = tuple(_task(name, [reports[one] for one in sources_of[name] if one in reports]) for name in names)
    return ClusterFigures(
        tasks=tuple(sorted(tasks, key=lambda one: (one.health.kind not in ("error", "unknown"), one.name))),
        sources=tuple(_source(name, report) for name, report in sorted(reports.items())),
        troubles=tuple(trouble for _, report in sorted(reports.items()) for trouble in _source_troubles(report)),
    )


def _task(name: str, reports: list[SourceReport]) -> TaskFigures:
    found = [(report, one) for report in reports for one in report.sub_task_status if one.name == name]
    troubles = [
        Trouble(report.source_status.source, error, name)
        for report, one in found
        if one.result is not None
        for error in one.result.errors
    ]
    locks = tuple(lock for report, one in found for lock in _locks(name, report.source_status.source, one))
    status = summary(name, reports)
    subtasks = tuple(_subtask(report, one) for report, one in found)
    return TaskFigures(
        name, _task_health(status, subtasks, locks), status, subtasks, tuple(troubles), locks, _tables(found)
    )


def _task_health(status: str, subtasks: tuple[SubtaskFigures, ...], locks: tuple[DdlLock, ...]) -> Health:
    kinds = {one.health.kind for one in subtasks}
    if status.startswith("Error") or "error" in kinds:
        return Health("error", "error")
    if "unknown" in kinds or not subtasks:
        return Health("unknown", "unknown")
    if status != Stage.RUNNING:
        return Health("done" if status == Stage.FINISHED else "waits", status.lower())
    return Health("waits", "waits for DDL") if locks else Health("fine", "running")


def _subtask(report: SourceReport, one: SubTaskStatus) -> SubtaskFigures:
    heard = not (report.source_status.result is not None and report.source_status.result.errors)
    errors = one.result.errors if one.result is not None else ()
    shown: dict[str, Any] = {}
    if one.sync is not None:
        shown = {
            "lag": one.sync.seconds_behind_master,
            "rows_per_second": one.sync.recent_rps,
            "backlog": one.sync.backlog_bytes,
            "position": one.sync.syncer_binlog,
            "doing": one.sync.doing,
            "safe_mode": one.sync.safe_mode,
        }
    copy = one.dump or one.load
    if copy is not None:
        share = _share(copy.progress)
        shown |= {"bytes_per_second": copy.bps, "share": share, "eta": _eta(copy.finished_bytes, copy.bps, share)}
    unit = "" if one.unit is UnitName.NONE else one.unit.value.lower()
    worker = report.source_status.worker
    return SubtaskFigures(
        one.name, report.source_status.source, worker, _stage_health(one.stage, bool(errors), heard), unit, heard,
        note=one.note, **shown,
    )  # fmt: skip


def _stage_health(stage: Stage, wrong: bool, heard: bool) -> Health:
    if wrong:
        return Health("error", "error")
    if not heard:
        return Health("unknown", "unknown")
    kind = {Stage.RUNNING: "fine", Stage.FINISHED: "done"}.get(stage, "waits")
    return Health(kind, stage.value.lower())


def _share(progress: str) -> float | None:
    try:
        return float(progress.removesuffix("%").strip()) / 100
    except ValueError:
        return None


def _eta(done: float, rate: int, share: float | None) -> str:
    """A range, by the average rate until now: copies slow down and speed up with their tables."""
    if not share or not rate or share >= 1:
        return ""
    left = done / rate * (1 - share) / share
    return f"{duration(0.7 * left)} to {duration(1.5 * left)}"


def duration(seconds: float) -> str:
    """In the largest unit that says enough: `40 s`, `12 min`, `3 h`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _locks(task: str, source: str, one: SubTaskStatus) -> Iterable[DdlLock]:
    for group in one.sync.unresolved_groups if one.sync is not None else ():
        yield DdlLock(
            id=f"{task}-{group.target}", task=task, source=source, target=group.target, ddls=group.ddls,
            owner=group.owner, synced=group.synced, unsynced=group.unsynced, since=group.since,
            waits_for=group.waits_for, mismatch=group.mismatch, help=group.help, overdue=group.overdue,
        )  # fmt: skip


def _tables(found: Iterable[tuple[SourceReport, SubTaskStatus]]) -> tuple[TableFigures, ...]:
    sums: dict[str, defaultdict[str, int]] = {}
    for _, one in found:
        for entry in one.sync.tables if one.sync is not None else ():
            total = sums.setdefault(entry.table, defaultdict(int))
            for key, count in entry.counts.items():
                total[key] += count
    return tuple(TableFigures(name, *(counts[key] for key in _COUNTS)) for name, counts in sorted(sums.items()))


def _source_troubles(report: SourceReport) -> Iterable[Trouble]:
    status = report.source_status
    if status.result is not None:
        yield from (Trouble(status.source, error) for error in status.result.errors)
    relay = status.relay_status
    if relay is not None and relay.result is not None:
        yield from (Trouble(status.source, error, of_relay=True) for error in relay.result.errors)


def _source(name: str, report: SourceReport) -> SourceFigures:
    status = report.source_status
    relay: RelayStatus | None = status.relay_status
    wrong = any(True for _ in _source_troubles(report))
    health = Health("error", "error") if wrong else Health("fine", "served")
    return SourceFigures(
        name,
        status.worker,
        health,
        relay.stage.value.lower() if relay is not None else "unknown",
        relay.relay_binlog if relay is not None else "",
        tuple(one.name for one in report.sub_task_status),
    )
