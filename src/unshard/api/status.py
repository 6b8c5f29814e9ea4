"""A worker's answers: to `query-status`, the copy by table, the lines of its log.

The answer to `query-status` has DM's field names, with our own fields beside them. A worker fills in `sourceStatus` and
`subTaskStatus`, the master collects and sums up, ctl and the API show the result. Of the copy by table a worker tells
only what has changed since the last answer.
"""

from __future__ import annotations

from enum import StrEnum

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel


class Stage(StrEnum):
    """The present or the wanted stage of a subtask or relay. The last three are transitional and are never wanted."""

    NEW = "New"
    RUNNING = "Running"
    PAUSED = "Paused"
    STOPPED = "Stopped"
    FINISHED = "Finished"
    PAUSING = "Pausing"
    RESUMING = "Resuming"
    STOPPING = "Stopping"


class UnitName(StrEnum):
    """The present unit of a subtask, with DM's names."""

    NONE = "InvalidUnit"
    CHECK = "Check"
    DUMP = "Dump"
    LOAD = "Load"
    SYNC = "Sync"
    RELAY = "Relay"


class Form(BaseModel):
    """A value of the API: frozen, camelCase on the wire.

    Unknown fields, which a later version may send, are ignored.
    """

    model_config = ConfigDict(frozen=True, alias_generator=to_camel, populate_by_name=True, hide_input_in_errors=True)


class ProcessError(Form):
    """One error. `err_code` is our code (`SYNC-011`); `place` is the binlog position; `time` is ISO 8601, UTC."""

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
    """The reason why a unit does not run. `is_canceled`: a user paused or stopped it."""

    is_canceled: bool = False
    errors: tuple[ProcessError, ...] = ()
    detail: str = ""


class RelayStatus(Form):
    """The relay of a source. Positions have the form `(file, offset)`."""

    master_binlog: str = ""
    master_binlog_gtid: str = ""
    relay_sub_dir: str = ""
    relay_binlog: str = ""
    relay_binlog_gtid: str = ""
    relay_catch_up_master: bool = False
    stage: Stage = Stage.STOPPED
    result: ProcessResult | None = None


class DumpStatus(Form):
    """A dump in progress; `progress` as `12.34 %`."""

    total_tables: int = 0
    completed_tables: float = 0
    finished_bytes: float = 0
    finished_rows: float = 0
    estimate_total_rows: float = 0
    bps: int = 0
    progress: str = ""


class LoadStatus(Form):
    """A load in progress; `progress` as `12.34 %`."""

    finished_bytes: int = 0
    total_bytes: int = 0
    progress: str = ""
    meta_binlog: str = ""
    meta_binlog_gtid: str = Field(default="", alias="metaBinlogGTID")
    bps: int = 0


class UnresolvedGroup(Form):
    """A sharding DDL that waits: which tables have met it, which are missing, since when, why, and how to help.

    The fields from `since` on are ours. `owner`: the source that runs the DDL, if one has reported it. `overdue`: the
    DDL waits for longer than the task's `shard-wait-alert`. `mode`: as in the task's `shard-mode`; in optimistic mode
    each table of `synced` waits for itself.
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
    mode: str = ""


class TableLedger(Form):
    """The row counts of one target table; not in DM."""

    table: str
    counts: dict[str, int] = Field(default_factory=dict)
    filtered_by_rule: dict[str, int] = Field(default_factory=dict)


class SyncStatus(Form):
    """A sync in progress.

    `seconds_behind_master` is None while it is unknown, and grows while the task does not run. `backlog_at_least`: the
    source may have more than `backlog_bytes`, because the relay has to catch up itself.
    `batches`, their seconds, and the seconds of their steps (all Spark tasks together) count since this run began.
    """

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
    backlog_at_least: bool = False
    safe_mode: str = ""
    doing: str = ""
    batches: int = 0
    batch_seconds: float = 0
    step_seconds: dict[str, float] = Field(default_factory=dict)
    tables: tuple[TableLedger, ...] = ()


class ValidationStatus(Form):
    """Continuous validation of one task on one source. Figures are written as DM writes them.

    `full_load_rows_status` is ours: how many loaded rows are compared; empty where none are to be. So is
    `cutover_status`: whether all rows up to the place of the cut-over are judged; empty where none is on record.
    """

    task: str
    source: str
    mode: str = ""
    stage: str = ""
    validator_binlog: str = ""
    validator_binlog_gtid: str = ""
    result: ProcessResult | None = None
    processed_rows_status: str = ""
    pending_rows_status: str = ""
    error_rows_status: str = ""
    full_load_rows_status: str = ""
    cutover_binlog_pos: str = ""
    cutover_binlog_gtid: str = ""
    cutover_status: str = ""


class SubTaskStatus(Form):
    """One task on one source. `since` is ours: since when it has this stage and unit, ISO 8601, UTC; empty: unknown."""

    name: str
    stage: Stage
    unit: UnitName = UnitName.NONE
    result: ProcessResult | None = None
    unresolved_ddl_lock_id: str = Field(default="", alias="unresolvedDDLLockID")
    dump: DumpStatus | None = None
    load: LoadStatus | None = None
    sync: SyncStatus | None = None
    validation: ValidationStatus | None = None
    note: str = ""
    since: str = ""


class Service(StrEnum):
    """The service of a source by its worker, as the master knows it when it answers.

    `Served`: the worker answers; it may still refuse a newer order, and `result` says why. `Refused`: it can't carry
    out its order. `NoAnswer`: it does not answer. `NoWorker`: no worker that is alive has the source.
    """

    SERVED = "Served"
    REFUSED = "Refused"
    NO_ANSWER = "NoAnswer"
    NO_WORKER = "NoWorker"


class SourceStatus(Form):
    """One source, its worker and its relay. `result`: why it does not run, for instance because it is not bound.

    `service` is ours. The master fills it in; it is None in a worker's own answer.
    """

    source: str
    worker: str = ""
    service: Service | None = None
    result: ProcessResult | None = None
    relay_status: RelayStatus | None = None


class SourceReport(Form):
    """A worker's whole answer about its source."""

    source_status: SourceStatus
    sub_task_status: tuple[SubTaskStatus, ...] = ()


class TableCopy(Form):
    """The copy of one source table: its target table, its stage (`CopyStage`), its rows and the bytes of its files.

    `rows` are the rows copied so far, of about `rows_about` rows; None while that number is unknown.
    """

    table: str
    target: str
    stage: str
    rows: int = 0
    rows_about: int | None = None
    size: int = 0


class CopyProgress(Form):
    """The progress of a task's copy: the tables that have changed after revision `since`, or with `whole` all tables.

    `life` identifies the worker's count of revisions. If it is another one than the caller knows, the count has begun
    anew, and all tables are sent.
    """

    life: str = ""
    revision: int = 0
    whole: bool = True
    tables: tuple[TableCopy, ...] = ()


class FigurePoint(Form):
    """The figures of a task on a source at the unix time `at`, with the meaning that they have in `SyncStatus`.

    A figure is None while it is unknown.
    """

    at: int
    lag: int | None = None
    rows_per_second: int | None = None
    batches: int = 0
    batch_seconds: float = 0
    step_seconds: dict[str, float] = Field(default_factory=dict)


class TaskHistory(Form):
    """The recorded figures of one task on the worker's source, the oldest first."""

    task: str
    points: tuple[FigurePoint, ...] = ()


class FigureHistory(Form):
    """The recorded figures of all tasks on the worker's source."""

    tasks: tuple[TaskHistory, ...] = ()


MOST_LINES = 500


class LogLine(Form):
    """One line of a process's log.

    `number` counts the lines of the process; `more` has the fields that have no name here.
    """

    number: int
    time: str = ""
    level: str = ""
    logger: str = ""
    event: str = ""
    task: str = ""
    source: str = ""
    more: dict[str, str] = Field(default_factory=dict)


class LogTail(Form):
    """The newest lines of a process's log, after the line that was asked for.

    `life` identifies the process: two workers may be in one process.
    """

    life: str = ""
    lines: tuple[LogLine, ...] = ()
