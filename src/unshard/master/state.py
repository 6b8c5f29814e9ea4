"""What a master knows of its cluster, as one frozen value: all of the store but the lease."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from unshard.api.heartbeat import SubtaskBrief
from unshard.api.status import Stage
from unshard.target.receipts import OLD_ORDER


@dataclass(frozen=True, slots=True)
class WorkerRow:
    """A worker that has registered, alive or not."""

    name: str
    addr: str


@dataclass(frozen=True, slots=True)
class MasterRow:
    """A master of the cluster. `alive`: it was seen by the database's clock within a few leases."""

    name: str
    addr: str
    alive: bool
    evicted: bool


@dataclass(frozen=True, slots=True)
class SourceRow:
    """A source. `text` is its file as the user wrote it; `enabled` and `relay_stage` are what was asked since.

    `relay_kept`: whether a paused relay is kept, also without a task, once it is resumed.
    """

    name: str
    text: str = field(repr=False)
    enabled: bool = True
    relay_stage: Stage = Stage.STOPPED
    last_worker: str = ""
    relay_kept: bool = False


@dataclass(frozen=True, slots=True)
class Bound:
    """A worker serves a source. `epoch` is new with each bound and never used again."""

    source: str
    worker: str
    epoch: int


@dataclass(frozen=True, slots=True)
class TaskRow:
    """A task's file as the user wrote it."""

    name: str
    text: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class SubtaskRow:
    """One source's part of a task: what is wanted of it, and the worker's last word.

    `start` is a `MetaConfig` in JSON that stands in for the file's `meta`, or empty.
    """

    task: str
    source: str
    stage: Stage
    revision: int = 1
    start: str = ""
    brief: SubtaskBrief | None = None

    @property
    def newest(self) -> int:
        """The highest revision that anybody knows of: a store that is back from a backup is behind its workers."""
        return max(self.revision, self.brief.revision if self.brief is not None else 0)

    @property
    def claimed_later(self) -> bool:
        """Whether the target turned its worker away: a later order than the worker's has claimed the source."""
        error = self.brief.error if self.brief is not None else None
        return error is not None and error.err_code == OLD_ORDER


@dataclass(frozen=True, slots=True)
class State:
    """The whole cluster. `bounds` is by source, `subtasks` by (task, source); `cluster`: as in `SourceOrder`."""

    sources: Mapping[str, SourceRow] = field(default_factory=dict)
    workers: Mapping[str, WorkerRow] = field(default_factory=dict)
    bounds: Mapping[str, Bound] = field(default_factory=dict)
    tasks: Mapping[str, TaskRow] = field(default_factory=dict)
    subtasks: Mapping[tuple[str, str], SubtaskRow] = field(default_factory=dict)
    templates: Mapping[str, TaskRow] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)
    cluster: int = 0

    def bound_to(self, worker: str) -> Bound | None:
        return next((bound for bound in self.bounds.values() if bound.worker == worker), None)

    def worker_of(self, source: str) -> str:
        """Name of the worker that serves the source, or empty."""
        bound = self.bounds.get(source)
        return bound.worker if bound is not None else ""

    def of_task(self, task: str) -> tuple[SubtaskRow, ...]:
        return tuple(row for row in self.subtasks.values() if row.task == task)

    def of_source(self, source: str) -> tuple[SubtaskRow, ...]:
        return tuple(row for row in self.subtasks.values() if row.source == source)

    def told(self, source: str, briefs: Iterable[SubtaskBrief]) -> State:
        """This one with the last words of subtasks of the source, which all are there."""
        keys = ((brief, (brief.task, source)) for brief in briefs)
        rows = {key: replace(self.subtasks[key], brief=brief) for brief, key in keys}
        return replace(self, subtasks={**self.subtasks, **rows})
