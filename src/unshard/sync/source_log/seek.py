"""The search for a location in the relay log that is known only by its GTID set."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TypeGuard

from unshard.errors import BinlogError
from unshard.model.gtid import GtidSet, MariadbGtidSet, MysqlGtidSet
from unshard.model.position import FIRST_OFFSET, Location, Position
from unshard.relay.gtids import gtids_before
from unshard.sync.source_log.reader import Complete, Log, LoggedDdl, Move, Prepare, TransactionRows, Work, next_work

Transaction = TransactionRows | LoggedDdl | Prepare | Complete
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
        if isinstance(work, Move):
            if work.end.gtid and not holds(gtid, work.end.gtid):
                return Location(at.position, gtid)  # a transaction without effect
        elif not all(holds(gtid, one) for one in _gtids(work)):
            return Location(work.begin, gtid)
        note(work)
        at = work.end
    return Location(at.position, gtid) if at.gtid and holds(at.gtid, gtid) else None


def last_held(log: Log, at: Location, end: Position, gtid: str, source: str) -> Location | None:
    """Return the location after the last transaction from `at` to `end` that the set `gtid` holds; None: it holds none.

    Raises BinlogError for damaged bytes.
    """
    found = None
    while (work := next_work(log, at, end, ONE_TRANSACTION, source)) is not None:
        at = work.end
        if not isinstance(work, Move) and any(holds(gtid, one) for one in _gtids(work)):
            found = at
    return found


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


def is_anonymous(work: Work) -> TypeGuard[Transaction]:
    """Return whether a transaction has no GTID, as MySQL logs it while its `gtid_mode` is off.

    The rows of a CREATE TABLE … SELECT have that of their statement.
    """
    inside = isinstance(work, TransactionRows) and work.log_range.inside
    return not isinstance(work, Move) and not inside and not _gtids(work)


def _gtids(work: Transaction) -> tuple[str, ...]:
    match work:
        case TransactionRows():
            return work.log_range.gtids
        case LoggedDdl():
            own = work.statement.gtid
        case Prepare():
            own = work.prepared.gtid
        case Complete():
            own = work.completed.gtid
    return (own,) if own else ()


def holds(known: str, gtid: str) -> bool:
    """Return whether the set `known` has all of the set `gtid`; both have the same notation."""
    if ":" in gtid:
        return MysqlGtidSet.parse(known).contains(MysqlGtidSet.parse(gtid))
    return MariadbGtidSet.parse(known).contains(MariadbGtidSet.parse(gtid))
