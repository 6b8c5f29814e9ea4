"""Prepared XA transactions: recorded at XA PREPARE, applied at XA COMMIT, dropped at XA ROLLBACK.

| if the process dies | then |
|---|---|
| before the checkpoint passes the prepare | the prepare is read again |
| after it | the record is in the target beside the checkpoint |
| in the batch of the commit | the same batch is finished from its plan, which names the prepared bytes |
| after that batch is closed | the record was deleted in the same transaction |

The rows have the tables' structures at the commit, because a prepared transaction locks its tables against DDL.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from unshard.binlog.groups import Data, Group, may_be_xa
from unshard.binlog.headers import mapped, read_format
from unshard.binlog.index import walk
from unshard.binlog.transaction_range import BudgetReached, TransactionRange
from unshard.binlog.xa import PreparedStop
from unshard.errors import BinlogError, Where
from unshard.model.position import Location, Position
from unshard.sync.batch.stored_plan import RowsRecord
from unshard.sync.source_log.reader import Complete, Log, Prepare, TransactionRows, Work
from unshard.sync.source_log.seek import work_past_refused
from unshard.target.prepared_xa import PreparedXa
from unshard.target.receipts import OpenBatch

_BUDGET = 64 << 20


@dataclass(slots=True)
class PreparedXas:
    """The prepared XA transactions of one source, by xid. Used by the sync unit's thread.

    `known` are the transactions that the target has on record.
    """

    source: str
    known: dict[str, PreparedXa] = field(default_factory=dict)

    def record(self, work: Prepare, gtid: str) -> PreparedXa:
        """Return the record to keep of a prepare; `gtid` is the set before it."""
        prepared = PreparedXa(work.prepared.xid, Location(work.begin, gtid), work.prepared.end)
        self.known[prepared.xid] = prepared
        return prepared

    def rows(self, log: Log, work: Complete) -> TransactionRows:
        """Return the rows of a commit whose prepare is on record. Raises BinlogError BINLOG-035."""
        stamp = work.completed.timestamp
        return rows_of(log, self.known[work.completed.xid], work.begin, work.end, stamp, self.source)

    def rows_again(self, log: Log, batch: OpenBatch) -> TransactionRows:
        """Return the rows of an open batch that is a commit. Raises BinlogError BINLOG-035."""
        record = RowsRecord.of(batch)
        end = Location(batch.end, record.end_gtid)
        return rows_of(log, self.known[record.xid], batch.begin, end, 0, self.source)


def rows_of(log: Log, kept: PreparedXa, begin: Position, end: Location, timestamp: int, source: str) -> TransactionRows:
    """Return the rows that were prepared as `kept` and are committed by the bytes from `begin` to `end`.

    Raises BinlogError BINLOG-035 where the log no longer has them, or holds something else there.
    """
    file = kept.begin.position.file
    path = log.path(file)
    try:
        log_range, checksum = _walk_one(path, kept, source)
    except (OSError, ValueError, BinlogError) as error:
        raise _lost(kept, begin, path, str(error), source) from error
    stop = log_range.stop
    if not isinstance(stop, PreparedStop) or (stop.xid, stop.end) != (kept.xid, kept.end):
        raise _lost(kept, begin, path, "another transaction stands there", source)
    whole = replace(
        log_range,
        start=kept.begin.position.offset,
        end=stop.end,
        transactions=1,
        row_events=stop.row_events,
        tables=stop.tables,
        partial_images=stop.partial_images,
        unpacked=stop.unpacked,
        first_timestamp=timestamp or stop.timestamp,
        last_timestamp=timestamp or stop.timestamp,
        stop=BudgetReached(),
    )
    return TransactionRows(begin, end, path, checksum, whole, kept.xid)


def look_back(log: Log, work: Complete, source: str, since: Position | None = None) -> PreparedXa | None:
    """Return the prepare of a commit that has none on record, because it lies before the task's start.

    The search begins after `since`, where that lies in the commit's own file. Then it goes through the files from there
    back to the oldest of the log. None where the prepare lies before all of them. Raises BinlogError BINLOG-034 where
    the last event of the xid is another commit or rollback, or bytes before it are damaged.
    """
    if since is not None and since.file == work.begin.file:
        found, seen = _last_in(log, since, work, source)
        if seen:
            return _there(found, work, source)
    file: str | None = work.begin.file
    while file is not None and log.path(file).exists():
        found, seen = _last_in(log, Position(file), work, source)
        if seen:
            return _there(found, work, source)
        file = _before(file)
    return None


def rows_behind(work: Work, log: Log, since: Position, source: str) -> TransactionRows | None:
    """Return the rows of a range that is read again, or of the prepared transaction that it commits.

    `since` is where the re-sync begins: what lies before it need not be readable. None for all other work, and for a
    transaction that was prepared before all that remains of the log (`TableState.since`): it has no row of a held
    table, because it would have blocked the DDL.
    """
    if isinstance(work, TransactionRows):
        return work
    if not isinstance(work, Complete) or not work.completed.committed:
        return None
    found = look_back(log, work, source, since)
    if found is None:
        return None
    return rows_of(log, found, work.begin, work.end, work.completed.timestamp, source)


def _there(found: PreparedXa | None, work: Complete, source: str) -> PreparedXa:
    if found is None:
        raise no_prepare(work, source)
    return found


def no_prepare(work: Complete, source: str) -> BinlogError:
    """Return the error for a commit whose prepare `look_back` does not find."""
    where = Where(source=source, position=str(work.begin))
    return BinlogError("BINLOG-034", where, values={"xid": work.completed.xid})


def _last_in(log: Log, start: Position, work: Complete, source: str) -> tuple[PreparedXa | None, bool]:
    """Return the xid's last prepare in a file from `start` to the commit, and whether any event there names it.

    Refused events are passed over: the task, which is at the commit, has begun behind them.
    """
    xid, file, at = work.completed.xid, start.file, Location(start)
    found: PreparedXa | None = None
    seen = False
    while at.position.file == file and at.position < work.begin:
        try:
            one = work_past_refused(log, at, work.begin, _BUDGET, source, _no_xa)
        except BinlogError:
            return None, True  # what comes after the damaged bytes, or what the event is of, can't be read
        if one is None:
            break
        if isinstance(one, Prepare) and one.prepared.xid == xid:
            found, seen = PreparedXa(xid, Location(one.begin), one.prepared.end), True
        elif isinstance(one, Complete) and one.completed.xid == xid:
            found, seen = None, True
        at = one.end
    return found, seen


def _no_xa(group: Group, data: Data) -> bool:
    return not may_be_xa(data, group)


def _before(file: str) -> str | None:
    """Return the name of the file before this one, as a server numbers them."""
    base, _, number = file.rpartition(".")
    return f"{base}.{int(number) - 1:06d}" if int(number) > 1 else None


def _walk_one(path: Path, kept: PreparedXa, source: str) -> tuple[TransactionRange, bool]:
    where = Where(source=source, file=str(path))
    data = mapped(path, kept.end)
    checksum = read_format(data).checksum
    start = kept.begin.position.offset
    return walk(data, start, size=kept.end, budget=_BUDGET, checksum=checksum, where=where), checksum


def _lost(kept: PreparedXa, begin: Position, path: Path, cause: str, source: str) -> BinlogError:
    values: dict[str, Any] = {"prepared": str(kept.begin.position)}
    return BinlogError("BINLOG-035", Where(source=source, position=str(begin), file=str(path)), cause, values)
