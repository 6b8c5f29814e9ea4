"""One request for each verb of `unshard ctl`, in DM's field names: the body of `POST /apis/v1alpha1/ctl/<verb>`.

Files never travel by name: a task or source file is sent as its text, and where a verb takes a task's name or its file
ctl sends the name. `sources` empty: all that the verb can mean. The answer is DM's JSON, `{"result", "msg", …}`.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import ConfigDict, Field

from unshard.api.status import Form

Role = Literal["viewer", "operator", "admin"]
PATH = "/apis/v1alpha1/ctl"


class Request(Form):
    """What a verb asks for; a field that is not known is refused. `needs`: the least role that may ask; `role` is
    that of this very request."""

    model_config = ConfigDict(extra="forbid")

    verb: ClassVar[str] = ""
    needs: ClassVar[Role] = "operator"

    @property
    def role(self) -> Role:
        return self.needs


class CheckTask(Request):
    """The checks before a start, nothing else. At most so many errors and warnings are told; `also`: opt-in items.

    More than a look: the file names the servers that the master logs in at, and the files its passwords are read from.
    """

    verb = "check-task"
    task: str = Field(repr=False)
    err_cnt: int = Field(default=10, ge=0)
    warn_cnt: int = Field(default=10, ge=0)
    start_time: str = ""
    also: tuple[str, ...] = ()


class StartTask(Request):
    """Check a task and start it on its sources, on all or none. `start_time`: `YYYY-MM-DD HH:MM:SS` or RFC 3339.

    `reset`: `do` undoes what an earlier attempt of the task did to the target before the start; `show` only tells, line
    by line in the answer's `reset`, what that would be.
    """

    verb = "start-task"
    task: str = Field(repr=False)
    sources: tuple[str, ...] = ()
    remove_meta: bool = False
    reset: Literal["", "show", "do"] = ""
    start_time: str = ""


class TaskRequest(Request):
    """A task by its name; none: all tasks of `sources`, `batch_size` of them at a time."""

    name: str = ""
    sources: tuple[str, ...] = ()
    batch_size: int = Field(default=5, ge=1)


class StopTask(TaskRequest):
    """End the task and forget it. What the target has on record of it stays."""

    verb = "stop-task"


class PauseTask(TaskRequest):
    """Let it stand still until it is resumed."""

    verb = "pause-task"


class ResumeTask(TaskRequest):
    """Let it go on, after a pause or an error."""

    verb = "resume-task"


class UpdateTask(Request):
    """Put another text in the place of a task's, as far as it may change while the task is paused."""

    verb = "update-task"
    task: str = Field(repr=False)
    sources: tuple[str, ...] = ()


class QueryStatus(Request):
    """All tasks in short, or everything about one. `more`: everything about all."""

    verb = "query-status"
    needs = "viewer"
    name: str = ""
    sources: tuple[str, ...] = ()
    more: bool = False


class ShardDdlLock(Request):
    """Sharding DDL that waits."""

    verb = "shard-ddl-lock"
    needs = "viewer"
    task: str = ""
    sources: tuple[str, ...] = ()


class ShardDdlLockUnlock(Request):
    """Settle a lock by hand. `owner` stands in for its owner; `database`, `table`, `action` are of optimistic mode."""

    verb = "shard-ddl-lock-unlock"
    id: str
    owner: str = ""
    force_remove: bool = False
    action: Literal["skip", "exec"] = "skip"
    database: str = ""
    table: str = ""
    sources: tuple[str, ...] = ()


class OperateSource(Request):
    """Sources made known, shown or let go. `config`: texts of source files; `source_id`: names in place of them."""

    verb = "operate-source"
    op: Literal["create", "update", "stop", "show"]
    config: tuple[str, ...] = Field(default=(), repr=False)
    source_id: tuple[str, ...] = ()
    worker: str = ""

    @property
    def role(self) -> Role:
        return "viewer" if self.op == "show" else self.needs


class UpdateSource(Request):
    """Put another text in the place of a source's, while its tasks are paused."""

    verb = "update-source"
    config: str = Field(repr=False)


class TransferSource(Request):
    """Move a source to another worker."""

    verb = "transfer-source"
    source: str
    worker: str


class RelayRequest(Request):
    """The relay of a source. `workers`: DM's old way, a relay on workers by name."""

    sources: tuple[str, ...]
    workers: tuple[str, ...] = ()


class StartRelay(RelayRequest):
    """Keep a relay log also while no task needs it."""

    verb = "start-relay"


class StopRelay(RelayRequest):
    """Keep a relay log only while a task needs it."""

    verb = "stop-relay"


class PauseRelay(Request):
    """Let the relay stand still."""

    verb = "pause-relay"
    sources: tuple[str, ...]


class ResumeRelay(Request):
    """Let the relay go on."""

    verb = "resume-relay"
    sources: tuple[str, ...]


class PurgeRelay(Request):
    """Delete the relay log's files before `filename`, or last written before `time`, as far as nobody needs them.

    `time`: `YYYY-MM-DD HH:MM:SS` in UTC, or RFC 3339. One of both has to be given.
    """

    verb = "purge-relay"
    sources: tuple[str, ...]
    filename: str = ""
    sub_dir: str = ""
    time: str = ""


class OfflineMember(Request):
    """Forget a member that is gone."""

    verb = "offline-member"
    needs = "admin"
    type: Literal["master", "worker"]
    name: str


class OperateLeader(Request):
    """`evict`: the master that leads lets another lead; `cancel-evict`: it may lead again."""

    verb = "operate-leader"
    needs = "admin"
    op: Literal["evict", "cancel-evict"]


class ListMember(Request):
    """Members of the cluster; none of the three: all kinds."""

    verb = "list-member"
    needs = "viewer"
    leader: bool = False
    master: bool = False
    worker: bool = False
    names: tuple[str, ...] = ()


class Binlog(Request):
    """What is to be done with a place of the log. `binlog_pos` as `file:offset`, empty: where the task has stopped.

    `every` lists operators that are used or reverted too.
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
        return "viewer" if self.op == "list" else self.needs


class BinlogSchema(Request):
    """The tracked structure of a source's table. `schema_text`: a CREATE TABLE, of `update`.

    `flush` and `sync` are taken for DM's sake: what is set is always saved, and sync has to do with optimistic mode.
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
        return "viewer" if self.op == "list" else self.needs


class Config(Request):
    """One configuration that is in force, passwords as `******`. The answer's `cfg` is its text."""

    verb = "config"
    needs = "viewer"
    type: Literal["task", "source", "master", "worker", "task-template"]
    name: str


class ConfigExport(Request):
    """Every task and source as it was given, to be taken in elsewhere: passwords as they are kept.

    The answer: `tasks` and `sources`, texts by name, and `relayWorkers`, names of workers by source.
    """

    verb = "config-export"
    needs = "admin"


class Encrypt(Request):
    """A password in the form that it may have in a file. The answer's `ciphertext` is that form."""

    verb = "encrypt"
    plaintext: str = Field(repr=False)


class LogLevel(Request):
    """How much members log; empty: tell it. `names`: of masters and workers, none: all."""

    verb = "log-level"
    needs = "admin"
    level: Literal["", "debug", "info", "warn", "error"] = ""
    names: tuple[str, ...] = ()

    @property
    def role(self) -> Role:
        return self.needs if self.level else "viewer"


REQUESTS: dict[str, type[Request]] = {
    kind.verb: kind
    for kind in (
        *(CheckTask, StartTask, StopTask, PauseTask, ResumeTask, UpdateTask, QueryStatus),
        *(ShardDdlLock, ShardDdlLockUnlock, Binlog, BinlogSchema),
        *(OperateSource, UpdateSource, TransferSource),
        *(StartRelay, StopRelay, PauseRelay, ResumeRelay, PurgeRelay),
        *(OfflineMember, OperateLeader, ListMember, Config, ConfigExport, Encrypt, LogLevel),
    )
}
"""Every verb that a master answers. `Master` has a method for each, with `_` for `-`."""
