"""Converts the status of a subtask and of a relay to the messages of the API, with DM's field names."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime

from unshard.api.status import (
    DumpStatus,
    LoadStatus,
    ProcessError,
    ProcessResult,
    RelayStatus,
    Stage,
    SubTaskStatus,
    SyncStatus,
    TableLedger,
    UnitName,
    ValidationStatus,
)
from unshard.errors import UnshardError, bounded
from unshard.model.position import Location, Position
from unshard.model.progress import Progress
from unshard.operate.validation import validation_form
from unshard.relay import unit as relay_unit
from unshard.source.upstream import Upstream
from unshard.worker.status import SubtaskStatus

UNITS: Mapping[str, UnitName] = {
    "": UnitName.NONE,
    "dump": UnitName.DUMP,
    "load": UnitName.LOAD,
    "sync": UnitName.SYNC,
}


def process_error(error: UnshardError, now: datetime) -> ProcessError:
    """Return the error in the form of `query-status`, shortened where it is very long; the log has it whole."""
    message = f"{error.message} [{error.where}]" if str(error.where) else error.message
    return ProcessError(
        ErrCode=error.code,
        ErrClass=error.code.partition("-")[0].lower(),
        ErrScope=error.scope,
        Message=bounded(message),
        RawCause=bounded(error.cause),
        Workaround=bounded(error.hint),
        place=error.where.position or "",
        time=now.isoformat(timespec="seconds"),
    )


def subtask_form(
    name: str,
    stage: Stage,
    worked: str,
    result: ProcessResult | None,
    reading: SubtaskStatus,
    since: datetime | None = None,
) -> SubTaskStatus:
    """Return the status of one task on the source. `worked` is the unit that it came to last.

    `since`: when it came to this stage and unit.
    """
    dump = load = sync = None
    if reading.progress is not None and worked == "dump":
        dump = dump_form(reading.progress, reading.unit_seconds)
    elif reading.progress is not None:
        load = load_form(reading.progress, reading.unit_seconds)
    elif reading.sync is not None:
        sync = sync_form(reading)
    groups = sync.unresolved_groups if sync is not None else ()
    return SubTaskStatus(
        name=name,
        stage=stage,
        unit=UNITS[worked],
        result=result,
        dump=dump,
        load=load,
        sync=sync,
        unresolvedDDLLockID=next((f"{name}-{group.target}" for group in groups if group.owner), ""),
        validation=_validation(name, reading),
        note=reading.note,
        since=since.isoformat(timespec="seconds") if since is not None else "",
    )


def _validation(name: str, reading: SubtaskStatus) -> ValidationStatus | None:
    told = reading.validation
    if told is None:
        return None
    result = None
    if told.fault is not None:
        result = ProcessResult(errors=(process_error(told.fault, datetime.now(UTC)),))
    return validation_form(name, reading.source, told.state, told.pending, told.errors, result, told.full_load)


def dump_form(progress: Progress, seconds: float) -> DumpStatus:
    """Return the figures of a dump in the form of `query-status`. `seconds` is the time that it has taken."""
    return DumpStatus(
        total_tables=progress.tables_total,
        completed_tables=progress.tables_done,
        finished_bytes=progress.bytes_done,
        finished_rows=progress.rows_done,
        estimate_total_rows=progress.rows_total_estimate,
        bps=_rate(progress.bytes_done, seconds),
        progress=_share(progress.rows_done, progress.rows_total_estimate),
    )


def load_form(progress: Progress, seconds: float) -> LoadStatus:
    """Return the figures of a load in the form of `query-status`. `seconds` is the time that it has taken."""
    return LoadStatus(
        finished_bytes=progress.bytes_done,
        total_bytes=progress.bytes_total,
        progress=_share(progress.bytes_done, progress.bytes_total),
        bps=_rate(progress.bytes_done, seconds),
    )


def sync_form(status: SubtaskStatus) -> SyncStatus:
    """Return the figures of a subtask that syncs: `totalTps`, `totalRps` are averages of this run.

    Events are row changes, as in DM.
    """
    reading, seconds = status.sync, status.unit_seconds
    assert reading is not None
    newest = status.upstream.location if status.upstream is not None else None
    lag, backlog = reading.lag_seconds, status.backlog_bytes
    return SyncStatus(
        total_events=reading.rows,
        total_tps=_rate(reading.rows, seconds),
        recent_tps=round(reading.rows_per_second),
        master_binlog=place(newest),
        master_binlog_gtid=newest.gtid if newest is not None else "",
        syncer_binlog=place(reading.location),
        syncer_binlog_gtid=reading.location.gtid if reading.location is not None else "",
        synced=backlog == 0 and not status.backlog_at_least and not reading.groups,
        unresolved_groups=reading.groups,
        blockingDDLs=next((group.ddls for group in reading.groups if group.ddls), ()),
        blockDDLOwner=next((group.owner for group in reading.groups if group.owner), ""),
        conflict_msg="\n".join(line for group in reading.groups for line in group.mismatch),
        seconds_behind_master=None if lag is None else math.ceil(lag),
        total_rows=reading.rows,
        total_rps=_rate(reading.rows, seconds),
        recent_rps=round(reading.rows_per_second),
        backlog_bytes=backlog,
        backlog_at_least=status.backlog_at_least,
        safe_mode=reading.safe_mode,
        doing=reading.doing,
        batches=sum(reading.batch_seconds.counts) if reading.batch_seconds is not None else 0,
        batch_seconds=round(reading.batch_seconds.total, 3) if reading.batch_seconds is not None else 0,
        step_seconds={step: round(seconds, 3) for step, seconds in reading.step_seconds.items()},
        tables=tuple(
            TableLedger(table=table, counts=entry.counts, filtered_by_rule=dict(entry.rules))
            for table, entry in sorted(reading.tables.items())
        ),
    )


def relay_form(
    stage: Stage, reading: relay_unit.RelayUnitStatus | None, upstream: Upstream | None, now: datetime
) -> RelayStatus:
    """Return the figures of the source's relay in the form of `query-status`.

    `reading` is None before its first start.
    """
    if reading is None:
        return RelayStatus(stage=stage)
    newest = upstream.location if upstream is not None else None
    result = None
    if reading.stage == "Paused" and reading.trouble is not None:
        result = ProcessResult(errors=(process_error(reading.trouble, reading.stopped_at or now),))
    written = reading.location
    return RelayStatus(
        master_binlog=place(newest),
        master_binlog_gtid=newest.gtid if newest is not None else "",
        relay_sub_dir=reading.sub_directory,
        relay_binlog=place(written),
        relay_binlog_gtid=written.gtid if written is not None else "",
        relay_catch_up_master=written is not None and newest is not None and written.position >= newest.position,
        stage=stage,
        result=result,
    )


def place(location: Location | None) -> str:
    """Return a position in DM's form: `(mysql-bin.000003, 1234)`."""
    position: Position | None = location.position if location is not None else None
    return f"({position.file}, {position.offset})" if position is not None else ""


def _rate(count: float, seconds: float) -> int:
    return round(count / seconds) if seconds > 0 else 0


def _share(done: float, total: float) -> str:
    return f"{min(100.0, 100 * done / total):.2f} %" if total else ""
