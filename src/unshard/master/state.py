"""A master's knowledge of its cluster, as one frozen value: all of the store but the lease. Pure.

Two operators may be at work at once. Checks of both ends, the trial of a new login and the drop of records in the
target take seconds; the cluster's lock is free by then. So a verb reads the state, does its work, and asks within
its change (`refuse_changed`) whether everything that concerns it is still as it was when it was planned.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from unshard.api.heartbeat import SubtaskBrief
from unshard.api.status import Stage
from unshard.errors import ClusterError, Where
from unshard.target.receipts import OLD_ORDER


@dataclass(frozen=True, slots=True)
class WorkerRow:
    """A worker that has registered, alive or not. `addr` is the address at which it is reached."""

    name: str
    addr: str


@dataclass(frozen=True, slots=True)
class MasterRow:
    """A master of the cluster.

    `alive`: it was seen within the last few leases, by the database's clock. `evicted`: it may not lead.
    """

    name: str
    addr: str
    alive: bool
    evicted: bool


@dataclass(frozen=True, slots=True)
class SourceRow:
    """A source. `text` is its file as the user wrote it.

    `enabled` and `relay_stage` are what users have asked for since. `relay_kept`: whether a paused relay is kept, also
    without a task, once it is resumed. `last_worker` is the worker that served the source last.
    """

    name: str
    text: str = field(repr=False)
    enabled: bool = True
    relay_stage: Stage = Stage.STOPPED
    last_worker: str = ""
    relay_kept: bool = False


@dataclass(frozen=True, slots=True)
class Bound:
    """The assignment of a source to a worker. `epoch` is new with each one and never used again."""

    source: str
    worker: str
    epoch: int


@dataclass(frozen=True, slots=True)
class TaskRow:
    """A task: its file as the user wrote it."""

    name: str
    text: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class SubtaskRow:
    """One source's part of a task: its wanted stage, and the worker's last report.

    `revision` grows when the subtask is started or resumed, or its file changes. `start` is a `MetaConfig` in JSON that
    replaces the file's `meta`, or empty. `brief` is the report.
    """

    task: str
    source: str
    stage: Stage
    revision: int = 1
    start: str = ""
    brief: SubtaskBrief | None = None

    @property
    def newest(self) -> int:
        """The highest known revision: a store that is restored from a backup has older ones than its workers."""
        return max(self.revision, self.brief.revision if self.brief is not None else 0)

    @property
    def claimed_later(self) -> bool:
        """True if the target refused its worker: a later order than the worker's has claimed the source."""
        error = self.brief.error if self.brief is not None else None
        return error is not None and error.err_code == OLD_ORDER


@dataclass(frozen=True, slots=True)
class State:
    """The state of the whole cluster. `bounds` is by source, `subtasks` by (task, source), all others by name.

    `texts` are those of `store`'s table of texts; `cluster`: as in `SourceOrder`.
    """

    sources: Mapping[str, SourceRow] = field(default_factory=dict)
    workers: Mapping[str, WorkerRow] = field(default_factory=dict)
    bounds: Mapping[str, Bound] = field(default_factory=dict)
    tasks: Mapping[str, TaskRow] = field(default_factory=dict)
    subtasks: Mapping[tuple[str, str], SubtaskRow] = field(default_factory=dict)
    templates: Mapping[str, TaskRow] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)
    cluster: int = 0

    def bound_to(self, worker: str) -> Bound | None:
        """Return the binding by which the worker serves a source; None where it serves none."""
        return next((bound for bound in self.bounds.values() if bound.worker == worker), None)

    def worker_of(self, source: str) -> str:
        """Return the name of the worker that serves the source, or ""."""
        bound = self.bounds.get(source)
        return bound.worker if bound is not None else ""

    def of_task(self, task: str) -> tuple[SubtaskRow, ...]:
        """Return the task's subtasks."""
        return tuple(row for row in self.subtasks.values() if row.task == task)

    def of_source(self, source: str) -> tuple[SubtaskRow, ...]:
        """Return the source's subtasks."""
        return tuple(row for row in self.subtasks.values() if row.source == source)

    def told(self, source: str, briefs: Iterable[SubtaskBrief]) -> State:
        """Return this state with new reports of subtasks of the source, all of which must exist."""
        keys = ((brief, (brief.task, source)) for brief in briefs)
        rows = {key: replace(self.subtasks[key], brief=brief) for brief, key in keys}
        return replace(self, subtasks={**self.subtasks, **rows})


def known(state: State, source: str) -> SourceRow:
    """Return the row of a source. Raises ClusterError CLUSTER-008 for an unknown one."""
    row = state.sources.get(source)
    if row is None:
        raise ClusterError("CLUSTER-008", Where(source))
    return row


def refuse_changed(before: State, now: State, task: str = "", sources: Iterable[str] = ()) -> None:
    """Raise ClusterError CLUSTER-083 where the task's file or subtasks, or a source's file, differ from before.

    Which worker serves a source, and what it reports of a subtask, may change at any time and is no change.
    """
    if task and (before.tasks.get(task) != now.tasks.get(task) or _wanted(before, task) != _wanted(now, task)):
        raise ClusterError("CLUSTER-083", values={"what": f"task {task}"})
    for name in sources:
        if _file(before, name) != _file(now, name):
            raise ClusterError("CLUSTER-083", Where(name), values={"what": f"source {name}"})


def _wanted(state: State, task: str) -> set[tuple[str, str, int]]:
    return {(row.source, row.stage.value, row.revision) for row in state.of_task(task)}


def _file(state: State, name: str) -> tuple[str, bool] | None:
    row = state.sources.get(name)
    return (row.text, row.enabled) if row is not None else None
