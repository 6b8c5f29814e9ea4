"""Reads the work of an open batch, left by an earlier process, again from the log by its stored plan."""

from __future__ import annotations

from dataclasses import replace

from unshard.errors import SyncError, Where
from unshard.model.position import Location, Position
from unshard.sync.batch.stored_plan import RowsRecord
from unshard.sync.source_log.reader import Log, LoggedDdl, TransactionRows, coalesced, next_work
from unshard.target.receipts import OpenBatch

WHOLE = 1 << 62


def rows_end(batch: OpenBatch) -> Position:
    """Return the position up to which the log is needed for an open batch of rows."""
    return Position(batch.begin.file, max(one.end for one in RowsRecord.of(batch).ranges))


def rows_again(log: Log, batch: OpenBatch, source: str) -> TransactionRows:
    """Return the rows of an open batch. Raises SyncError SYNC-008 where the log has something else there."""
    begin = Position(batch.begin.file, RowsRecord.of(batch).ranges[0].start)
    work = next_work(log, Location(begin), rows_end(batch), WHOLE, source)
    if not isinstance(work, TransactionRows) or work.end.position != batch.end:
        raise _differs(batch, source)
    # the checkpoint may lie before moves that were never saved, and with it its GTIDs
    return replace(work, end=Location(batch.end, batch.plan["end_gtid"]))


def stretches_again(log: Log, batch: OpenBatch, source: str) -> list[TransactionRows]:
    """Return the stretches of an open batch that has statements between its rows, in order; at least one.

    Raises SyncError SYNC-008 as `rows_again`.
    """
    found: list[TransactionRows] = []
    ranges = RowsRecord.of(batch).ranges
    file = ranges[0].file
    for start, end in coalesced((one.start, one.end) for one in ranges):
        work = next_work(log, Location(Position(file, start)), Position(file, end), WHOLE, source)
        if not isinstance(work, TransactionRows) or work.end.position != Position(file, end):
            raise _differs(batch, source)
        found.append(work)
    if found[-1].end.position != batch.end:
        raise _differs(batch, source)
    return [*found[:-1], replace(found[-1], end=Location(batch.end, batch.plan["end_gtid"]))]


def statement_again(log: Log, batch: OpenBatch, begin: Position, gtid: str, source: str) -> LoggedDdl:
    """Return the statement of an open batch; it begins at `begin`, after the transactions of `gtid`.

    Raises SyncError SYNC-008 as `rows_again`.
    """
    work = next_work(log, Location(begin, gtid), batch.end, WHOLE, source, planned=True)
    if not isinstance(work, LoggedDdl) or work.end.position != batch.end:
        raise _differs(batch, source)
    return replace(work, end=Location(batch.end, batch.plan["end_gtid"]))


def _differs(batch: OpenBatch, source: str) -> SyncError:
    return SyncError("SYNC-008", Where(source=source, position=f"{batch.begin} to {batch.end}"))
