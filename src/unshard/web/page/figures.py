"""The page's figures of a cluster, as frozen values, made of the forms of `query-status`. Pure. None is "unknown"."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from operator import add
from typing import Any

from unshard.api.status import ProcessError, RelayStatus, SourceReport, Stage, SubTaskStatus, UnitName
from unshard.master.status import summary
from unshard.web.page.validation import ValidatorFigures, validator_figures

_COUNTED = ("inserted", "updated", "deleted", "filtered", "missing")
LITTLE_FREE = 0.05
"""The share of a disk below which its free space is little."""


@dataclass(frozen=True, slots=True)
class Health:
    """A state in a word, with a sign beside it: `kind` is `error`, `waits`, `fine`, `done` or `unknown`."""

    kind: str
    word: str

    @property
    def sign(self) -> str:
        """Sign of the kind of health."""
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
    """The figures of one task on one source.

    `share` is the part of a copy that is done, from 0 to 1; `heard` is false where the worker did not answer and only
    the master's record is shown.
    """

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
    batches: int | None = None
    batch_seconds: float = 0.0
    step_seconds: tuple[tuple[str, float], ...] = ()
    validator: ValidatorFigures | None = None


@dataclass(frozen=True, slots=True)
class TableFigures:
    """The row counts of one target table, over all sources, since the task began to follow the binlogs."""

    table: str
    inserted: int
    updated: int
    deleted: int
    filtered: int
    missing: int

    @property
    def applied(self) -> int:
        """Count of all applied changes."""
        return self.inserted + self.updated + self.deleted


@dataclass(frozen=True, slots=True)
class TaskFigures:
    """The figures of one task over its sources."""

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
    def copied(self) -> float | None:
        """The part of the copy that is done, from 0 to 1, over the sources that copy; None where none does."""
        parts = [one.share for one in self.subtasks if one.unit in ("dump", "load") and one.share is not None]
        return sum(parts) / len(parts) if parts else None

    @property
    def runs(self) -> bool:
        """True if the task runs on some source, so that it can be paused."""
        return any(one.health.kind in ("fine", "unknown") for one in self.subtasks)

    @property
    def rests(self) -> bool:
        """True if the task does not run on some source, so that it can be resumed."""
        return any(one.health.kind != "fine" for one in self.subtasks)

    @property
    def validators(self) -> tuple[ValidatorFigures, ...]:
        """Validators of the sources that have one."""
        return tuple(one.validator for one in self.subtasks if one.validator is not None)

    @property
    def differing(self) -> int:
        """Rows that the validators have found to differ and nobody has decided about."""
        return sum(one.new or 0 for one in self.validators)

    @property
    def rows_per_second(self) -> int | None:
        """The sum over its sources; unknown where one of their workers does not answer."""
        if not all(one.heard for one in self.subtasks):
            return None
        known = [one.rows_per_second for one in self.subtasks if one.rows_per_second is not None]
        return sum(known) if known else None


@dataclass(frozen=True, slots=True)
class SourceFigures:
    """A source and where it runs. `served`: whether its worker answers; `relay` is the word for its relay's stage."""

    name: str
    worker: str
    health: Health
    served: bool
    relay: str
    relay_position: str
    tasks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ClusterFigures:
    """The figures of the whole cluster, for one page."""

    tasks: tuple[TaskFigures, ...] = ()
    sources: tuple[SourceFigures, ...] = ()
    troubles: tuple[Trouble, ...] = ()
    leader: Mapping[str, Any] | None = None
    masters: tuple[Mapping[str, Any], ...] = ()
    workers: tuple[Mapping[str, Any], ...] = ()

    def task(self, name: str) -> TaskFigures | None:
        """Return the figures of the task; None where there is none of that name."""
        return next((one for one in self.tasks if one.name == name), None)

    @property
    def all_troubles(self) -> tuple[Trouble, ...]:
        """Troubles of the cluster, then those of each task."""
        return (*self.troubles, *(trouble for task in self.tasks for trouble in task.troubles))

    @property
    def locks(self) -> tuple[DdlLock, ...]:
        """Sharding DDL locks of all tasks."""
        return tuple(lock for task in self.tasks for lock in task.locks)

    @property
    def differing(self) -> int:
        """Count of the rows that differ, over all tasks."""
        return sum(task.differing for task in self.tasks)

    @property
    def lost_workers(self) -> tuple[str, ...]:
        """The workers that are silent while a source has no worker."""
        return self.silent_workers if not all(one.served for one in self.sources) else ()

    @property
    def silent_workers(self) -> tuple[str, ...]:
        """Names of the workers that send no heartbeats."""
        return tuple(str(one["name"]) for one in self.workers if one["stage"] == "offline")

    @property
    def silent_masters(self) -> tuple[str, ...]:
        """Names of the masters that have not looked at the lease lately."""
        return tuple(str(one["name"]) for one in self.masters if not one["alive"])

    @property
    def full_disks(self) -> tuple[tuple[str, int], ...]:
        """The workers whose relay log is on a disk with little free space, with the percentage in use."""
        free = [(str(one["name"]), one.get("disk_free")) for one in self.workers if one["stage"] != "offline"]
        return tuple((name, int(100 * (1 - left))) for name, left in free if left is not None and left < LITTLE_FREE)

    @property
    def versions(self) -> Mapping[str, tuple[str, ...]]:
        """The versions of Unshard that run, each with the names of the leader and the workers that have it."""
        found: dict[str, tuple[str, ...]] = {}
        alive = [one for one in self.workers if one["stage"] != "offline"]
        for one in (*((self.leader,) if self.leader is not None else ()), *alive):
            if one.get("version"):
                found[one["version"]] = (*found.get(one["version"], ()), str(one["name"]))
        return dict(sorted(found.items()))


def cluster_figures(
    names: Iterable[str], reports: Mapping[str, SourceReport], sources_of: Mapping[str, tuple[str, ...]]
) -> ClusterFigures:
    """Return the figures of the cluster. `names`: the tasks; `sources_of`: the sources of each."""
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
            "batches": one.sync.batches,
            "batch_seconds": one.sync.batch_seconds,
            "step_seconds": tuple(one.sync.step_seconds.items()),
        }
    if one.validation is not None:
        shown["validator"] = validator_figures(one.validation, str(shown.get("position", "")))
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
    """Return a range for the rest of a copy, by its average rate: copies slow down and speed up with their tables."""
    if not share or not rate or share >= 1:
        return ""
    left = done / rate * (1 - share) / share
    return f"{duration(0.7 * left)} to {duration(1.5 * left)}"


def duration(seconds: float) -> str:
    """Return the seconds in the largest unit that is precise enough: `40 s`, `12 min`, `3 h`."""
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
    sums: dict[str, tuple[int, ...]] = {}
    for _, one in found:
        for entry in one.sync.tables if one.sync is not None else ():
            counts = tuple(entry.counts.get(kind, 0) for kind in _COUNTED)
            known = sums.get(entry.table)
            sums[entry.table] = counts if known is None else tuple(map(add, known, counts))
    return tuple(TableFigures(name, *sums[name]) for name in sorted(sums))


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
    served = bool(status.worker) and not (status.result is not None and status.result.errors)
    wrong = any(True for _ in _source_troubles(report))
    health = Health("error", "error" if served else "not served") if wrong else Health("fine", "served")
    return SourceFigures(
        name,
        status.worker,
        health,
        served,
        relay.stage.value.lower() if relay is not None else "unknown",
        relay.relay_binlog if relay is not None else "",
        tuple(one.name for one in report.sub_task_status),
    )
