"""A subtask's and a relay's readings in the API's forms, with DM's field names. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime

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
)
from unshard.errors import UnshardError, bounded
from unshard.model.position import Location, Position
from unshard.model.progress import Progress
from unshard.relay import unit as relay_unit
from unshard.source.upstream import Upstream
from unshard.sync import status as sync_status
from unshard.worker.status import SubtaskStatus

UNITS: Mapping[str, UnitName] = {
    "": UnitName.NONE,
    "dump": UnitName.DUMP,
    "load": UnitName.LOAD,
    "sync": UnitName.SYNC,
}


def process_error(error: UnshardError, now: datetime) -> ProcessError:
    """The error as `query-status` shows it; the log has the whole of a very long one."""
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
    name: str, stage: Stage, worked: str, result: ProcessResult | None, reading: SubtaskStatus
) -> SubTaskStatus:
    """One task on the source. `worked` is the unit that it came to last."""
    dump = load = sync = None
    if reading.progress is not None and worked == "dump":
        dump = dump_form(reading.progress, reading.unit_seconds)
    elif reading.progress is not None:
        load = load_form(reading.progress, reading.unit_seconds)
    elif reading.sync is not None:
        sync = sync_form(reading.sync, reading.upstream, reading.unit_seconds, reading.backlog_bytes)
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
        note=reading.note,
    )


def dump_form(progress: Progress, seconds: float) -> DumpStatus:
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
    return LoadStatus(
        finished_bytes=progress.bytes_done,
        total_bytes=progress.bytes_total,
        progress=_share(progress.bytes_done, progress.bytes_total),
        bps=_rate(progress.bytes_done, seconds),
    )


def sync_form(
    reading: sync_status.SyncReading, upstream: Upstream | None, seconds: float, backlog: int | None
) -> SyncStatus:
    """`totalTps` and `totalRps` are averages since this run began; events are row changes here, as in DM."""
    newest = upstream.location if upstream is not None else None
    lag = reading.lag_seconds
    return SyncStatus(
        total_events=reading.rows,
        total_tps=_rate(reading.rows, seconds),
        recent_tps=round(reading.rows_per_second),
        master_binlog=place(newest),
        master_binlog_gtid=newest.gtid if newest is not None else "",
        syncer_binlog=place(reading.location),
        syncer_binlog_gtid=reading.location.gtid if reading.location is not None else "",
        synced=backlog == 0 and not reading.groups,
        unresolved_groups=reading.groups,
        blockingDDLs=next((group.ddls for group in reading.groups if group.ddls), ()),
        blockDDLOwner=next((group.owner for group in reading.groups if group.owner), ""),
        conflict_msg="\n".join(line for group in reading.groups for line in group.mismatch),
        seconds_behind_master=None if lag is None else math.ceil(lag),
        total_rows=reading.rows,
        total_rps=_rate(reading.rows, seconds),
        recent_rps=round(reading.rows_per_second),
        backlog_bytes=backlog,
        safe_mode=reading.safe_mode,
        doing=reading.doing,
        tables=tuple(
            TableLedger(table=table, counts=entry.counts, filtered_by_rule=dict(entry.rules))
            for table, entry in sorted(reading.tables.items())
        ),
    )


def relay_form(
    stage: Stage, reading: relay_unit.RelayUnitStatus | None, upstream: Upstream | None, now: datetime
) -> RelayStatus:
    """The relay of the source; `reading` is None before it was begun."""
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
    """DM's way to write a position: `(mysql-bin.000003, 1234)`."""
    position: Position | None = location.position if location is not None else None
    return f"({position.file}, {position.offset})" if position is not None else ""


def _rate(count: float, seconds: float) -> int:
    return round(count / seconds) if seconds > 0 else 0


def _share(done: float, total: float) -> str:
    return f"{min(100.0, 100 * done / total):.2f} %" if total else ""
