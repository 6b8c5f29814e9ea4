"""From a GTID set to the place in the log behind it."""

from __future__ import annotations

from unshard.model.gtid import MariadbGtidSet, MysqlGtidSet
from unshard.model.position import Location, Position
from unshard.sync.follow import Complete, Ddl, Log, Prepare, Rows, next_work

ONE_TRANSACTION = 1


def seek(log: Log, file: str, gtid: str, written: Position, source: str) -> Location | None:
    """The location of the first transaction that `gtid` does not hold, looked for from the start of `file`.

    None when all that is written is in the set: more of the log is needed. Raises BinlogError for damaged bytes.
    """
    at = Location(Position(file))
    while (work := next_work(log, at, written, ONE_TRANSACTION, source)) is not None:
        if isinstance(work, Rows) and not all(_holds(gtid, one) for one in work.extent.gtids):
            return Location(work.begin, gtid)
        if isinstance(work, Ddl) and work.statement.gtid and not _holds(gtid, work.statement.gtid):
            return Location(work.begin, gtid)
        if isinstance(work, Prepare) and work.prepared.gtid and not _holds(gtid, work.prepared.gtid):
            return Location(work.begin, gtid)
        if isinstance(work, Complete) and work.completed.gtid and not _holds(gtid, work.completed.gtid):
            return Location(work.begin, gtid)
        at = work.end
    return Location(at.position, gtid) if at.gtid and _holds(at.gtid, gtid) else None


def _holds(known: str, gtid: str) -> bool:
    if ":" in gtid:
        return MysqlGtidSet.parse(known).contains(MysqlGtidSet.parse(gtid))
    return MariadbGtidSet.parse(known).contains(MariadbGtidSet.parse(gtid))
