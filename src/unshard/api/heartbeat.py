"""The heartbeat: the worker reports its state, and the master answers with the state that it wants.

With each beat a worker brings itself in line with the answer; an order that it has obeyed already changes nothing.
Both sides may send the same message twice.
"""

from __future__ import annotations

from typing import Any, Protocol

from pydantic import ConfigDict, Field

from unshard.api.status import CopyProgress, FigureHistory, Form, LogTail, ProcessError, SourceReport, Stage
from unshard.errors import ClusterError, Where


class SubtaskBrief(Form):
    """The state of a subtask that the master stores, and that it gives to the worker that serves the subtask next.

    Args:
        revision: that of the order that the subtask follows.
        resume_count, next_resume: the state of auto-resume; the time is ISO 8601, UTC.
        dump_at: the worker that has the dump of an unfinished copy on its disk.
        lost_dump: this worker lacks that dump, and so can't continue.
        followed: the attempt (`SubtaskConfig.attempt`) in which the target has had a checkpoint of the subtask.
    """

    task: str
    stage: Stage
    unit: str = ""
    revision: int = 0
    error: ProcessError | None = None
    resume_count: int = 0
    next_resume: str = ""
    dump_at: str = ""
    lost_dump: bool = False
    followed: str | None = None


class SubtaskOrder(Form):
    """The order for one task on the worker's source.

    Args:
        revision: grows when `config` changes, and when a subtask that an error has paused is to resume.
        config: a `SubtaskConfig` in JSON.
        kept: the last brief that the master has.
        unread: why the master can't read the task's file. `config` is then empty, and that of an earlier order applies.
        validation: changes when the worker is to read the target's record of continuous validation again.
    """

    task: str
    stage: Stage
    revision: int
    config: dict[str, Any]
    kept: SubtaskBrief | None = None
    unread: str = ""
    validation: str = ""


class SourceOrder(Form):
    """The order for the source that the worker serves.

    Args:
        epoch: grows each time the source is bound to a worker; an answer to an older one is ignored.
        cluster: identifies the store that counts the epochs; 0 for a store that is only as old as the process.
        config: a `SourceConfig` in JSON. In this one and a subtask's, keys with default values may be left out; an
            unknown key is refused.
        unread: as in `SubtaskOrder`; then all configs are empty.
    """

    source: str
    epoch: int
    cluster: int = 0
    config: dict[str, Any]
    relay_stage: Stage = Stage.RUNNING
    subtasks: tuple[SubtaskOrder, ...] = ()
    unread: str = ""


class DesiredState(Form):
    """The answer to a heartbeat. `order` is None for a spare worker, which serves no source.

    A worker without an answer for `ttl_seconds` continues only with work that the target fences.
    """

    ttl_seconds: float
    leader: str = ""
    order: SourceOrder | None = None


class Heartbeat(Form):
    """A worker's heartbeat.

    Args:
        epoch: that of the source that it serves; 0 for a spare.
        leaving: this is its last beat. The worker has released its source, which moves at once.
        life, number: `number` grows with each beat of the process `life`; a beat that arrives after a later one is
            ignored.
        version: that of Unshard there; "" where it is not reported.
        disk_free: the free share, from 0 to 1, of the disk of the source's relay log; None where that is not known.
        refused, refusal: the epoch of an order that it can't carry out, and why; 0 and None where there is none.
    """

    name: str
    addr: str
    epoch: int = 0
    source: str = ""
    relay_stage: Stage = Stage.STOPPED
    subtasks: tuple[SubtaskBrief, ...] = ()
    leaving: bool = False
    life: str = ""
    number: int = 0
    version: str = ""
    disk_free: float | None = None
    refused: int = 0
    refusal: ProcessError | None = None


def unread_source(source: str, cause: str) -> ClusterError:
    """Return CLUSTER-091 for a source whose stored file can't be read."""
    values = {"what": f"source {source}", "command": "operate-source update"}
    return ClusterError("CLUSTER-091", Where(source), cause, values)


def unread_task(task: str, cause: str) -> ClusterError:
    """Return CLUSTER-091 for a task whose stored file can't be read."""
    return ClusterError("CLUSTER-091", cause=cause, values={"what": f"task {task}", "command": "update-task"})


class PurgeWish(Form):
    """A selection of relay log files to delete; either limit may be left out.

    `before` selects the files before that one in the sub-directory `sub_dir` ("": the newest) and all files of older
    sub-directories. `time` selects the files that were last written before it (Unix seconds; 0: none). An unknown limit
    is refused.
    """

    model_config = ConfigDict(extra="forbid")

    before: str = Field(default="", max_length=512)
    sub_dir: str = Field(default="", max_length=128, pattern=r"^[^/\\\x00]*$")
    time: float = Field(default=0, ge=0)


class MasterLink(Protocol):
    """A worker's calls to the master: over HTTP, or direct within one process.

    Raises ClusterError, retryable if no leader can be reached.
    """

    def beat(self, beat: Heartbeat) -> DesiredState:
        """Send a heartbeat; return the orders for the worker."""


class WorkerLink(Protocol):
    """The master's calls to a worker: over HTTP, or direct within one process.

    Raises ClusterError if the worker doesn't answer within `seconds`.
    """

    def report(self, task: str | None, seconds: float) -> SourceReport:
        """Return the current state as the worker knows it, for all tasks or one. No source or target is asked."""

    def fresh_report(self, task: str | None, seconds: float) -> SourceReport:
        """Return the same, with what the source and the target say when the worker asks them now."""

    def copy_progress(self, task: str, life: str, since: int, seconds: float) -> CopyProgress:
        """Return the tables of the task whose copy has advanced after revision `since` of the process `life`."""

    def history(self, seconds: float) -> FigureHistory:
        """Return what the worker has kept of the figures of its source's tasks."""

    def log_tail(self, life: str, after: int, seconds: float) -> LogTail:
        """Return the newest lines of the worker's log, after line `after` of the process `life`."""

    def wake(self) -> None:
        """Make the worker send a beat now, because there are new orders."""

    def purge_relay(self, wish: PurgeWish) -> str:
        """Delete files of the relay log that no reader needs. Returns in words what was deleted, what stays, and why.

        Also raises the worker's own errors.
        """

    def resume_relay(self) -> None:
        """Resume at once a relay that an error has stopped, if it is meant to run."""
