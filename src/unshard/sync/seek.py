"""From a GTID set to the place in the log behind it."""

from __future__ import annotations

from collections.abc import Callable

from unshard.model.gtid import MariadbGtidSet, MysqlGtidSet
from unshard.model.position import Location, Position
from unshard.sync.follow import Complete, Ddl, Log, Move, Prepare, Rows, Work, next_work

ONE_TRANSACTION = 1


def seek(
    log: Log,
    file: str,
    gtid: str,
    written: Position,
    source: str,
    *,
    before: str = "",
    note: Callable[[Work], None] = lambda work: None,
) -> Location | None:
    """The location of the first transaction that `gtid` does not hold, looked for from the start of `file`.

    `before` is the set that the file begins with, as far as it is known; `note` gets each work that is passed. None
    when all that is written is in the set, but not all of the set was seen: more of the log is needed. Raises
    BinlogError for damaged bytes.
    """
    at = Location(Position(file), before)
    while (work := next_work(log, at, written, ONE_TRANSACTION, source)) is not None:
        if isinstance(work, Rows) and not all(holds(gtid, one) for one in work.extent.gtids):
            return Location(work.begin, gtid)
        if isinstance(work, Ddl) and work.statement.gtid and not holds(gtid, work.statement.gtid):
            return Location(work.begin, gtid)
        if isinstance(work, Prepare) and work.prepared.gtid and not holds(gtid, work.prepared.gtid):
            return Location(work.begin, gtid)
        if isinstance(work, Complete) and work.completed.gtid and not holds(gtid, work.completed.gtid):
            return Location(work.begin, gtid)
        if isinstance(work, Move) and work.end.gtid and not holds(gtid, work.end.gtid):
            return Location(at.position, gtid)  # a transaction without effect
        note(work)
        at = work.end
    return Location(at.position, gtid) if at.gtid and holds(at.gtid, gtid) else None


def holds(known: str, gtid: str) -> bool:
    """Whether the set `known` has all of the set `gtid`, both in the same notation."""
    if ":" in gtid:
        return MysqlGtidSet.parse(known).contains(MysqlGtidSet.parse(gtid))
    return MariadbGtidSet.parse(known).contains(MariadbGtidSet.parse(gtid))
