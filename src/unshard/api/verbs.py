"""The requests of `unshard ctl`, one for each verb, in DM's field names: the body of `POST /apis/v1alpha1/ctl/<verb>`.

Files are sent as text, never by name: a task or source file is sent as its contents, and if a verb takes a task's name
or its file, ctl sends the name. Empty `sources` mean all sources that the verb can apply to. The answer has the shape
of DM's: `result`, `msg` and a list of sources.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, Literal

from pydantic import ConfigDict, Field

from unshard.api.status import Form

Role = Literal["viewer", "operator", "admin"]
PATH = "/apis/v1alpha1/ctl"


class Request(Form):
    """The base of all requests; an unknown field is refused.

    `needs` is the least role that may send it; `role` is the one that this request needs.
    """

    model_config = ConfigDict(extra="forbid")

    verb: ClassVar[str] = ""
    needs: ClassVar[Role] = "operator"

    @property
    def role(self) -> Role:
        """Role that the request needs."""
        return self.needs


class CheckTask(Request):
    """Run the checks before a start, and nothing else.

    `err_cnt` and `warn_cnt` limit the listed findings; `also`: opt-in items. This needs more than the role of a viewer:
    the file names the servers at which the master logs in, and the files from which its passwords are read.
    """

    verb = "check-task"
    task: str = Field(repr=False)
    err_cnt: int = Field(default=10, ge=0)
    warn_cnt: int = Field(default=10, ge=0)
    start_time: str = ""
    also: tuple[str, ...] = ()


class StartTask(Request):
    """Check a task and start it on its sources, either on all or on none.

    `start_time`: `YYYY-MM-DD HH:MM:SS` in the time zone of each source, or RFC 3339 with its zone; `msg` of the answer
    names the binlog position found for it in each source, and its time in UTC. `reset`: `do` undoes the effects of the
    task's earlier attempt on the target before the start; `show` only lists them by lines in the answer's `reset`.
    """

    verb = "start-task"
    task: str = Field(repr=False)
    sources: tuple[str, ...] = ()
    remove_meta: bool = False
    reset: Literal["", "show", "do"] = ""
    start_time: str = ""


class TaskRequest(Request):
    """The base of requests on one task by its name or, without a name, on all tasks of `sources`.

    Without a name, `batch_size` subtasks are changed at a time.
    """

    name: str = ""
    sources: tuple[str, ...] = ()
    batch_size: int = Field(default=5, ge=1)


class StopTask(TaskRequest):
    """End the task and remove it. Its records in the target stay."""

    verb = "stop-task"


class PauseTask(TaskRequest):
    """Pause the task until it is resumed."""

    verb = "pause-task"


class ResumeTask(TaskRequest):
    """Resume the task after a pause or an error."""

    verb = "resume-task"


class UpdateTask(Request):
    """Replace a task's file, as far as it may change while the task is paused."""

    verb = "update-task"
    task: str = Field(repr=False)
    sources: tuple[str, ...] = ()


class QueryStatus(Request):
    """Show all tasks in short, or everything about one. `more`: everything about all.

    `service` of an answer's `sourceStatus` is `Served`; `Refused` where the worker can't carry out its order;
    `NoAnswer` where it does not answer; `NoWorker` where no worker has the source.
    """

    verb = "query-status"
    needs = "viewer"
    name: str = ""
    sources: tuple[str, ...] = ()
    more: bool = False


class ShardDdlLock(Request):
    """Show sharding DDL that waits."""

    verb = "shard-ddl-lock"
    needs = "viewer"
    task: str = ""
    sources: tuple[str, ...] = ()


class ShardDdlLockUnlock(Request):
    """Resolve a lock by hand.

    `owner` replaces the lock's owner; `database`, `table`, `action` are for optimistic mode.
    """

    verb = "shard-ddl-lock-unlock"
    id: str
    owner: str = ""
    force_remove: bool = False
    action: Literal["skip", "exec"] = "skip"
    database: str = ""
    table: str = ""
    sources: tuple[str, ...] = ()


class OperateSource(Request):
    """Create, update, stop or show sources. `config`: texts of source files; `source_id`: names instead of files."""

    verb = "operate-source"
    op: Literal["create", "update", "stop", "show"]
    config: tuple[str, ...] = Field(default=(), repr=False)
    source_id: tuple[str, ...] = ()
    worker: str = ""

    @property
    def role(self) -> Role:
        """Role that the request needs: `show` changes nothing."""
        return "viewer" if self.op == "show" else self.needs


class UpdateSource(Request):
    """Replace a source's file while its tasks are paused."""

    verb = "update-source"
    config: str = Field(repr=False)


class TransferSource(Request):
    """Move a source to another worker."""

    verb = "transfer-source"
    source: str
    worker: str


class RelayRequest(Request):
    """The base of requests on the relay logs of sources. `workers`: DM's old form, which names the workers too."""

    sources: tuple[str, ...]
    workers: tuple[str, ...] = ()


class StartRelay(RelayRequest):
    """Write a relay log even while no task needs it."""

    verb = "start-relay"


class StopRelay(RelayRequest):
    """Write a relay log only while a task needs it."""

    verb = "stop-relay"


class PauseRelay(Request):
    """Pause the relay."""

    verb = "pause-relay"
    sources: tuple[str, ...]


class ResumeRelay(Request):
    """Resume the relay."""

    verb = "resume-relay"
    sources: tuple[str, ...]


class PurgeRelay(Request):
    """Delete the relay log's files before `filename`, or last written before `time`, unless they are still needed.

    `time`: `YYYY-MM-DD HH:MM:SS` in UTC, or RFC 3339. One of the two has to be given.
    """

    verb = "purge-relay"
    sources: tuple[str, ...]
    filename: str = ""
    sub_dir: str = ""
    time: str = ""


class OfflineMember(Request):
    """Remove a member that is not alive."""

    verb = "offline-member"
    needs = "admin"
    type: Literal["master", "worker"]
    name: str


class OperateLeader(Request):
    """Evict the leader, or cancel the eviction.

    `evict`: the leader gives up its role and does not lead again; `cancel-evict`: it may lead again.
    """

    verb = "operate-leader"
    needs = "admin"
    op: Literal["evict", "cancel-evict"]


class ListMember(Request):
    """List members of the cluster; without `leader`, `master` and `worker`, those of all kinds."""

    verb = "list-member"
    needs = "viewer"
    leader: bool = False
    master: bool = False
    worker: bool = False
    names: tuple[str, ...] = ()


class Binlog(Request):
    """Tell a task what to do at a binlog position. `binlog_pos` as `file:offset`; empty: where the task has stopped.

    `every` also lists operators that are used or reverted.
    """

    verb = "binlog"
    op: Literal["skip", "replace", "revert", "inject", "list"]
    task: str
    sources: tuple[str, ...] = ()
    binlog_pos: str = ""
    sqls: tuple[str, ...] = ()
    every: bool = False

    @property
    def role(self) -> Role:
        """Role that the request needs: `list` changes nothing."""
        return "viewer" if self.op == "list" else self.needs


class BinlogSchema(Request):
    """Show, set or delete the tracked structure of a source's table. `schema_text`: the CREATE TABLE for `update`.

    `flush` and `sync` are accepted for DM's sake and have no effect: a structure is always saved, and `sync` is for
    optimistic mode.
    """

    verb = "binlog-schema"
    op: Literal["list", "update", "delete"]
    task: str
    database: str
    table: str
    sources: tuple[str, ...] = ()
    schema_text: str = Field(default="", alias="schema")
    from_source: bool = False
    from_target: bool = False
    flush: bool = True
    sync: bool = True

    @property
    def role(self) -> Role:
        """Role that the request needs: `list` changes nothing."""
        return "viewer" if self.op == "list" else self.needs


class Validation(Request):
    """Control continuous validation of a task, or of all tasks with `all_task`.

    `mode` is a parameter of `start`, `table_stage` of `status`, `error` and `limit` (the most errors in the answer) of
    `show-error`, `id` and `all` of the operations that settle errors.
    """

    verb = "validation"
    op: Literal["start", "stop", "status", "show-error", "ignore-error", "resolve-error", "clear-error", "update"]
    task: str = ""
    sources: tuple[str, ...] = ()
    all_task: bool = False
    mode: Literal["fast", "full"] = "full"
    start_time: str = ""
    table_stage: Literal["", "running", "stopped"] = ""
    error: Literal["unprocessed", "ignored", "resolved", "all"] = "unprocessed"
    limit: int = Field(default=10_000, ge=1, le=10_000)
    id: int = Field(default=0, ge=0)
    all: bool = False
    cutover_binlog_pos: str = ""
    cutover_binlog_gtid: str = ""

    @property
    def role(self) -> Role:
        """Role that the request needs: `status` changes nothing."""
        return "viewer" if self.op == "status" else self.needs


class Config(Request):
    """Show one configuration that is in force, passwords as `******`. The answer's `cfg` is its text."""

    verb = "config"
    needs = "viewer"
    type: Literal["task", "source", "master", "worker", "task-template"]
    name: str


class ConfigExport(Request):
    """Export the texts of all tasks and sources, to be imported elsewhere, with passwords as they are stored.

    The answer has `tasks` and `sources`, texts by name, and `relayWorkers`, names of workers by source.
    """

    verb = "config-export"
    needs = "admin"


class Encrypt(Request):
    """Encrypt a password for a file. The answer's `ciphertext` is the encrypted form."""

    verb = "encrypt"
    plaintext: str = Field(repr=False)


class LogLevel(Request):
    """Set the log level of members, or show it if `level` is empty. `names`: of masters and workers; none: all."""

    verb = "log-level"
    needs = "admin"
    level: Literal["", "debug", "info", "warn", "error"] = ""
    names: tuple[str, ...] = ()

    @property
    def role(self) -> Role:
        """Role that the request needs: without a level it changes nothing."""
        return self.needs if self.level else "viewer"


REQUESTS: dict[str, type[Request]] = {
    kind.verb: kind
    for kind in (
        *(CheckTask, StartTask, StopTask, PauseTask, ResumeTask, UpdateTask, QueryStatus),
        *(ShardDdlLock, ShardDdlLockUnlock, Binlog, BinlogSchema, Validation),
        *(OperateSource, UpdateSource, TransferSource),
        *(StartRelay, StopRelay, PauseRelay, ResumeRelay, PurgeRelay),
        *(OfflineMember, OperateLeader, ListMember, Config, ConfigExport, Encrypt, LogLevel),
    )
}
"""Every verb that a master answers. `Master` has a method for each, with `_` for `-`."""


Answer = dict[str, Any]


def answer(sources: Iterable[Answer] = (), msg: str = "", **more: Any) -> Answer:
    """Return an answer over sources, good if each is. Keys of `more` come first in it, as DM's `op` does."""
    listed = list(sources)
    good = all(source["result"] for source in listed)
    return {**more, "result": good, "msg": msg, "sources": listed}


def plain(msg: str = "", **more: Any) -> Answer:
    """Return a good answer that is about no source."""
    return {"result": True, "msg": msg, **more}


def refused(error: Exception) -> Answer:
    """Return the answer for a verb that failed as a whole."""
    return {"result": False, "msg": str(error)}


def of_source(source: str, worker: str = "", msg: str = "", *, good: bool = True) -> Answer:
    """Return the answer for one source, in DM's form."""
    return {"result": good, "msg": msg, "source": source, "worker": worker}
