"""The search for a location in the relay log that is known only by its GTID set."""

from __future__ import annotations

import os
from collections.abc import Callable

from unshard.errors import BinlogError
from unshard.model.gtid import GtidSet, MariadbGtidSet, MysqlGtidSet
from unshard.model.position import FIRST_OFFSET, Location, Position
from unshard.relay.gtids import gtids_before
from unshard.sync.source_log.reader import Complete, Log, LoggedDdl, Move, Prepare, TransactionRows, Work, next_work

ONE_TRANSACTION = 1
_MANY = 64 << 20


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
    """Return the location of the first transaction that `gtid` does not hold, searching from the start of `file`.

    `before` is the set that the file begins with, as far as it is known. `note` is called with each work that is
    passed. None when everything that is written is in the set, but some of the set was not seen: more of the log is
    needed. Raises BinlogError for damaged bytes.
    """
    at = Location(Position(file), before)
    while (work := next_work(log, at, written, ONE_TRANSACTION, source)) is not None:
        if isinstance(work, TransactionRows) and not all(holds(gtid, one) for one in work.log_range.gtids):
            return Location(work.begin, gtid)
        if isinstance(work, LoggedDdl) and work.statement.gtid and not holds(gtid, work.statement.gtid):
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


def gtids_at(log: Log, place: Position, source: str) -> str:
    """Return the GTID set up to `place`, which is written, from the log's file; "" where the file doesn't have it.

    Damaged bytes are no error here: the reader that follows the log meets them, or begins after them.
    """
    try:
        head = head_gtids(log, place.file, place)
        at = Location(Position(place.file), str(head or ""))
        while at.position < place and (work := next_work(log, at, place, _MANY, source)) is not None:
            at = work.end
    except BinlogError:
        return ""
    return at.gtid if head is not None and at.position == place else ""


def head_gtids(log: Log, file: str, written: Position) -> GtidSet | None:
    """Return the GTID set that a file of the log begins with; None while it is not written yet."""
    with log.path(file).open("rb") as opened:

        def head(length: int) -> bytes:
            return os.pread(opened.fileno(), min(length, written.offset) if written.file == file else length, 0)

        return gtids_before(head, FIRST_OFFSET)


def holds(known: str, gtid: str) -> bool:
    """Return whether the set `known` has all of the set `gtid`; both have the same notation."""
    if ":" in gtid:
        return MysqlGtidSet.parse(known).contains(MysqlGtidSet.parse(gtid))
    return MariadbGtidSet.parse(known).contains(MariadbGtidSet.parse(gtid))
