"""What a master wants of a worker, and what a worker tells it: the heartbeat.

A worker asks with each beat and brings itself in line with the answer; an order that it has carried out is no order
any more. Both sides may say the same twice.
"""

from __future__ import annotations

from typing import Any, Protocol

from pydantic import ConfigDict, Field

from unshard.api.status import Form, ProcessError, SourceReport, Stage
from unshard.errors import ClusterError, Where


class SubtaskBrief(Form):
    """What the master keeps of a subtask between two looks, and gives back to whoever serves it next.

    `revision` is that of the order that it obeys. `resume_count`, `next_resume` (ISO 8601, UTC) are auto-resume's.
    `dump_at`: the worker whose disk has the dump of an unfinished copy. `lost_dump`: this one has not, and can't go on.
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


class SubtaskOrder(Form):
    """One task on the worker's source. `config`: a `SubtaskConfig` in JSON; `revision` grows when it changes.

    It grows too when a subtask that an error has paused is to go on. `kept` is the last brief that the master has.
    `unread`: why the master can't read the task's file; `config` is empty then, and that of an earlier order counts.
    """

    task: str
    stage: Stage
    revision: int
    config: dict[str, Any]
    kept: SubtaskBrief | None = None
    unread: str = ""


class SourceOrder(Form):
    """The source that the worker serves. `config` is a `SourceConfig` in JSON.

    Of this one and a subtask's, keys at their defaults may be left out; a key that is not known is refused.

    `epoch` grows each time the source is bound to a worker: an answer to an older one has no say. `cluster` names the
    store that counts it, 0 where that is as old as the process. `unread`: as of a subtask; then all configs are empty.
    """

    source: str
    epoch: int
    cluster: int = 0
    config: dict[str, Any]
    relay_stage: Stage = Stage.RUNNING
    subtasks: tuple[SubtaskOrder, ...] = ()
    unread: str = ""


class DesiredState(Form):
    """The answer to a beat. Without it for `ttl_seconds` a worker goes on only with what the target fences.

    `order` is None for a spare.
    """

    ttl_seconds: float
    leader: str = ""
    order: SourceOrder | None = None


class Heartbeat(Form):
    """A worker's sign of life. `epoch` is that of the source it serves; 0 for a spare.

    `leaving`: its last one. It has let its source go, which moves at once. `number` grows with each beat of the
    process `life`: one that comes in behind a later one has no say.
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


def unread_source(source: str, cause: str) -> ClusterError:
    values = {"what": f"source {source}", "command": "operate-source update"}
    return ClusterError("CLUSTER-091", Where(source), cause, values)


def unread_task(task: str, cause: str) -> ClusterError:
    return ClusterError("CLUSTER-091", cause=cause, values={"what": f"task {task}", "command": "update-task"})


class PurgeWish(Form):
    """Which files of a relay log are to go; either of both may be left out.

    Those before the file `before` of the sub-directory `sub_dir` ("": the newest) and all of older ones; those that
    were last written before `time` (unix seconds; 0: none). A limit that is not known is refused.
    """

    model_config = ConfigDict(extra="forbid")

    before: str = Field(default="", max_length=512)
    sub_dir: str = Field(default="", max_length=128, pattern=r"^[^/\\\x00]*$")
    time: float = Field(default=0, ge=0)


class MasterLink(Protocol):
    """What a worker says to the master: over HTTP, or called directly within one process.

    Raises ClusterError, retryable where no leader can be reached.
    """

    def beat(self, beat: Heartbeat) -> DesiredState: ...


class WorkerLink(Protocol):
    """What the master says to a worker: over HTTP, or called directly within one process.

    Raises ClusterError where it doesn't answer within `seconds`.
    """

    def report(self, task: str | None, seconds: float) -> SourceReport:
        """What it does now, of all tasks or one."""

    def wake(self) -> None:
        """Beat now: there are new orders."""

    def purge_relay(self, wish: PurgeWish) -> str:
        """Delete files of the relay log, as far as no reader needs them; in words what went and what stays, and why.

        Raises what the worker says against it too.
        """

    def resume_relay(self) -> None:
        """Let a relay that an error has stopped go on at once, where it is to run."""
