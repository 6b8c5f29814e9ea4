"""The figures of a cluster on the page, as frozen dataclasses. None means unknown. `reported` computes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from unshard.api.status import ProcessError, Stage
from unshard.model.table import TableName
from unshard.web.page.validation import ValidatorFigures

LITTLE_FREE = 0.05
"""The share of a disk below which its free space is little."""
LAG_LIMIT = 60
"""Seconds: a task with more lag is not fine."""
NOT_SERVED = "CLUSTER-015"
"""The error of a source that no worker serves."""


@dataclass(frozen=True, slots=True)
class Health:
    """The health of something: a word with a sign. `kind`: `error`, `unknown`, `waits`, `works`, `fine` or `done`."""

    kind: str
    word: str

    @property
    def sign(self) -> str:
        """Sign of the kind of health."""
        return SIGNS.get(self.kind, "?")


SIGNS = {"error": "✖", "unknown": "?", "waits": "◐", "works": "↻", "fine": "●", "done": "✔"}
"""By kind of health, the worst first."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """An error, and the part that has it: a source's task, the source (`task` empty), or its relay (`of_relay`)."""

    source: str
    error: ProcessError
    task: str = ""
    of_relay: bool = False


@dataclass(frozen=True, slots=True)
class DdlLock:
    """A sharding DDL that waits on one source, in the words of `query-status`.

    `shards`: in optimistic mode, the tables of the source that wait, each of which a human can decide about.
    """

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
    shards: tuple[TableName, ...] = ()


@dataclass(frozen=True, slots=True)
class SubtaskFigures:
    """The figures of one task on one source.

    Args:
        heard: whether the worker answered.
        stage: the stage that the worker reports, or the master's record of it where the worker did not answer.
        since: when it came to its stage and unit, ISO 8601; empty while unknown.
        by_hand: somebody has paused it.
        share: the part of a copy that is done, from 0 to 1.
    """

    task: str
    source: str
    worker: str
    health: Health
    unit: str
    heard: bool
    stage: Stage = Stage.RUNNING
    since: str = ""
    by_hand: bool = False
    lag: int | None = None
    rows_per_second: int | None = None
    bytes_per_second: int | None = None
    backlog: int | None = None
    backlog_at_least: bool = False
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

    @property
    def copies(self) -> bool:
        """True while it dumps or loads."""
        return self.unit in ("dump", "load")

    @property
    def has_lag(self) -> bool:
        """True once it has come to the binlog, and where nobody says whether it has."""
        return not self.heard or self.unit == "sync"

    @property
    def work(self) -> str:
        """What it does now, in words; empty where its state says all."""
        if not self.heard:
            return "the worker does not answer"
        if self.stage is not Stage.RUNNING or self.health.kind == "error":
            return ""
        if self.note or self.doing:
            return self.note or self.doing
        return "replicates from the binlog" if self.unit == "sync" else ""


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
    subtasks: tuple[SubtaskFigures, ...]
    troubles: tuple[Trouble, ...]
    locks: tuple[DdlLock, ...]
    tables: tuple[TableFigures, ...]

    @property
    def lag(self) -> int | None:
        """The largest lag of its sources that replicate; unknown where one of them is."""
        lags = [one.lag for one in self.subtasks if one.has_lag]
        known = [lag for lag in lags if lag is not None]
        return max(known) if known and len(known) == len(lags) else None

    @property
    def copies(self) -> bool:
        """True while it dumps or loads on some source."""
        return any(one.copies for one in self.subtasks)

    @property
    def copied(self) -> float | None:
        """The part of the copy that is done, from 0 to 1, over the sources that copy; None where none does."""
        parts = [one.share for one in self.subtasks if one.copies and one.share is not None]
        return sum(parts) / len(parts) if parts else None

    @property
    def can_pause(self) -> bool:
        """True if the task runs on some source."""
        return any(one.stage in _RUNS for one in self.subtasks)

    @property
    def can_resume(self) -> bool:
        """True if the task is paused or stopped on some source, by hand or by an error."""
        return any(one.stage in _RESTS for one in self.subtasks)

    @property
    def has_lag(self) -> bool:
        """True once it has come to the binlog on some source."""
        return any(one.has_lag for one in self.subtasks)

    @property
    def replicates(self) -> bool:
        """True if the task replicates on some source, or may do so on one whose worker does not answer."""
        return any(not one.heard or (one.stage is Stage.RUNNING and one.unit == "sync") for one in self.subtasks)

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
        """The sum over the sources that replicate; unknown where one of their workers does not answer."""
        if not all(one.heard for one in self.subtasks):
            return None
        known = [one.rows_per_second for one in self.subtasks if one.rows_per_second is not None]
        return sum(known) if known else None


_RUNS = (Stage.NEW, Stage.RUNNING, Stage.RESUMING)
_RESTS = (Stage.PAUSED, Stage.STOPPED)


@dataclass(frozen=True, slots=True)
class SourceFigures:
    """The figures of a source and its worker.

    `served`: whether its worker answers; `relay` is the word for its relay's stage. `enabled`: false where an operator
    has disabled the source, with all of its tasks.
    """

    name: str
    worker: str
    health: Health
    served: bool
    relay: str
    relay_position: str
    tasks: tuple[str, ...]
    enabled: bool = True


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
    def free_workers(self) -> tuple[str, ...]:
        """Names of the workers that can take a source."""
        return tuple(str(one["name"]) for one in self.workers if one["stage"] == "free")

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


def time_left(least: float, most: float) -> str:
    """Return an estimate as a range: `40 s to 2 min`; a single time where both are the same in words."""
    low, high = duration(max(1, least)), duration(max(1, most))
    return low if low == high else f"{low} to {high}"


def duration(seconds: float) -> str:
    """Return the seconds in the largest unit that is precise enough: `40 s`, `12 min`, `3 h`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
