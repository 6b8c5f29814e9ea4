"""What `query-status` answers: DM's field names, and ours beside them where DM has none.

A worker fills them in (`sourceStatus`, `subTaskStatus`), the master gathers and sums up, ctl and the API show them.
"""

from __future__ import annotations

from enum import StrEnum

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

# Stages of a subtask and of a relay, with DM's names.


class Stage(StrEnum):
    """What a subtask or relay is in, or is meant to be in. The last three are passed through, never asked for."""

    NEW = "New"
    RUNNING = "Running"
    PAUSED = "Paused"
    STOPPED = "Stopped"
    FINISHED = "Finished"
    PAUSING = "Pausing"
    RESUMING = "Resuming"
    STOPPING = "Stopping"


class UnitName(StrEnum):
    """The unit that a subtask is in, with DM's names."""

    NONE = "InvalidUnit"
    CHECK = "Check"
    DUMP = "Dump"
    LOAD = "Load"
    SYNC = "Sync"
    RELAY = "Relay"


class Form(BaseModel):
    """A value of the API: frozen, camelCase on the wire. Fields that only a later version has are passed over."""

    model_config = ConfigDict(frozen=True, alias_generator=to_camel, populate_by_name=True, hide_input_in_errors=True)


class ProcessError(Form):
    """One error. `err_code` is ours (`SYNC-011`); `place` is the binlog position; `time` is ISO 8601, UTC."""

    err_code: str = Field(alias="ErrCode")
    err_class: str = Field(default="", alias="ErrClass")
    err_scope: str = Field(default="", alias="ErrScope")
    err_level: str = Field(default="high", alias="ErrLevel")
    message: str = Field(alias="Message")
    raw_cause: str = Field(default="", alias="RawCause")
    workaround: str = Field(default="", alias="Workaround")
    place: str = ""
    time: str = ""


class ProcessResult(Form):
    """Why a unit stands still. `is_canceled`: a human paused or stopped it."""

    is_canceled: bool = False
    errors: tuple[ProcessError, ...] = ()
    detail: str = ""


class RelayStatus(Form):
    """The relay of a source; positions as `(file, offset)`."""

    master_binlog: str = ""
    master_binlog_gtid: str = ""
    relay_sub_dir: str = ""
    relay_binlog: str = ""
    relay_binlog_gtid: str = ""
    relay_catch_up_master: bool = False
    stage: Stage = Stage.STOPPED
    result: ProcessResult | None = None


class DumpStatus(Form):
    """A dump in hand; `progress` as `12.34 %`."""

    total_tables: int = 0
    completed_tables: float = 0
    finished_bytes: float = 0
    finished_rows: float = 0
    estimate_total_rows: float = 0
    bps: int = 0
    progress: str = ""


class LoadStatus(Form):
    """A load in hand; `progress` as `12.34 %`."""

    finished_bytes: int = 0
    total_bytes: int = 0
    progress: str = ""
    meta_binlog: str = ""
    meta_binlog_gtid: str = Field(default="", alias="metaBinlogGTID")
    bps: int = 0


class UnresolvedGroup(Form):
    """Sharding DDL that waits: who has it, who is missing, since when, why, and what helps (from `since` on: ours).

    `owner`: the source that runs it, where one has reported it. `overdue`: it waits for longer than the task's
    `shard-wait-alert`.
    """

    target: str
    ddls: tuple[str, ...] = Field(default=(), alias="DDLs")
    first_location: str = ""
    synced: tuple[str, ...] = ()
    unsynced: tuple[str, ...] = ()
    since: str = ""
    waits_for: str = ""
    mismatch: tuple[str, ...] = ()
    help: str = ""
    overdue: bool = False
    owner: str = ""


class TableLedger(Form):
    """What became of one target table's rows; ours."""

    table: str
    counts: dict[str, int] = Field(default_factory=dict)
    filtered_by_rule: dict[str, int] = Field(default_factory=dict)


class SyncStatus(Form):
    """A sync in hand. `seconds_behind_master` is None while unknown, and grows while the task stands still."""

    total_events: int = 0
    total_tps: int = 0
    recent_tps: int = 0
    master_binlog: str = ""
    master_binlog_gtid: str = ""
    syncer_binlog: str = ""
    syncer_binlog_gtid: str = ""
    blocking_ddls: tuple[str, ...] = Field(default=(), alias="blockingDDLs")
    unresolved_groups: tuple[UnresolvedGroup, ...] = ()
    synced: bool = False
    binlog_type: str = "local"
    seconds_behind_master: int | None = None
    block_ddl_owner: str = Field(default="", alias="blockDDLOwner")
    conflict_msg: str = ""
    total_rows: int = 0
    total_rps: int = 0
    recent_rps: int = 0
    io_total_bytes: int = 0
    dump_io_total_bytes: int = Field(default=0, alias="dumpIOTotalBytes")
    backlog_bytes: int | None = None
    safe_mode: str = ""
    doing: str = ""
    tables: tuple[TableLedger, ...] = ()


class SubTaskStatus(Form):
    """One task on one source."""

    name: str
    stage: Stage
    unit: UnitName = UnitName.NONE
    result: ProcessResult | None = None
    unresolved_ddl_lock_id: str = Field(default="", alias="unresolvedDDLLockID")
    dump: DumpStatus | None = None
    load: LoadStatus | None = None
    sync: SyncStatus | None = None
    note: str = ""


class SourceStatus(Form):
    """One source, where it runs, and its relay. `result`: why it stands still, for instance not bound."""

    source: str
    worker: str = ""
    result: ProcessResult | None = None
    relay_status: RelayStatus | None = None


class SourceReport(Form):
    """A worker's whole answer about its source."""

    source_status: SourceStatus
    sub_task_status: tuple[SubTaskStatus, ...] = ()
