"""The search for a location in the relay log that is known only by its GTID set."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TypeGuard

from unshard.binlog.groups import Data, Group, group_around, next_group
from unshard.binlog.headers import mapped, read_format
from unshard.binlog.index import REFUSALS
from unshard.errors import BinlogError, RelayError, Where
from unshard.model.gtid import GtidSet, MariadbGtidSet, MysqlGtidSet
from unshard.model.position import FIRST_OFFSET, Location, Position
from unshard.relay.gtids import gtids_before
from unshard.sync.source_log.reader import (
    Complete,
    Log,
    LoggedDdl,
    Move,
    Prepare,
    TransactionRows,
    Work,
    location_after,
    next_work,
    past_end,
)

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
    needed. Raises BinlogError for damaged bytes, and for a refused event whose group is not in the set.
    """
    at = Location(Position(file), before)
    while True:
        try:
            work = next_work(log, at, written, ONE_TRANSACTION, source)
        except BinlogError as error:
            work = _past_refused(log, at, written, gtid, source, error)
        if work is None:
            return Location(at.position, gtid) if at.gtid and holds(at.gtid, gtid) else None
        if isinstance(work, Move):
            if work.end.gtid and not holds(gtid, work.end.gtid):
                return Location(at.position, gtid)  # a transaction without effect
        elif not all(holds(gtid, one) for one in _gtids(work)):
            return Location(work.begin, gtid)
        note(work)
        at = work.end


def _past_refused(log: Log, at: Location, written: Position, gtid: str, source: str, error: BinlogError) -> Work | None:
    """Return the move past the group at `at`, where `error` was raised, if the set `gtid` has it: it is applied.

    None while the group's end is not written. Raises `error` as `past_refused`.
    """

    def applied(group: Group, _: Data) -> bool:
        return bool(group.gtid) and holds(gtid, group.gtid)

    return past_refused(log, at, written, source, error, applied)


def work_past_refused(
    log: Log, at: Location, written: Position, budget: int, source: str, passes: Callable[[Group, Data], bool]
) -> Work | None:
    """Do as `next_work`, but move past a group with a refused event that `passes`. Raises BinlogError."""
    try:
        return next_work(log, at, written, budget, source)
    except BinlogError as error:
        if error.code not in REFUSALS:
            raise
    try:
        return next_work(log, at, written, ONE_TRANSACTION, source)  # what lies before the event
    except BinlogError as error:
        return past_refused(log, at, written, source, error, passes)


def past_refused(
    log: Log, at: Location, written: Position, source: str, error: BinlogError, passes: Callable[[Group, Data], bool]
) -> Work | None:
    """Return the move past the group at `at`, where `error` was raised, if it `passes`, given its file's bytes.

    None while the group's end is not written. Raises `error` for any other group, an event outside of groups, or
    damaged bytes.
    """
    if error.code not in REFUSALS:
        raise error
    file, offset = at.position.file, max(at.position.offset, FIRST_OFFSET)
    path = log.path(file)
    size = written.offset if file == written.file else path.stat().st_size
    data = mapped(path, size)
    checksum = read_format(data).checksum
    begin = next_group(data, offset, size=size)
    first = offset if begin == offset else FIRST_OFFSET
    group = group_around(data, offset, size=size, checksum=checksum, first=first)
    if group is None and begin is not None:
        return next_work(log, at, Position(file, begin), ONE_TRANSACTION, source)  # the events before the next group
    if group is None or not passes(group, data):
        raise error
    if group.end is None:
        return past_end(log, at, written)
    return Move(location_after(at, file, group.end, (group.gtid,) if group.gtid else ()))


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

    The set has what is refused before `place`. Damaged bytes are no error here: the reader that follows the log meets
    them, or begins after them.
    """

    def known(group: Group, _: Data) -> bool:
        return bool(group.gtid)

    try:
        head = head_gtids(log, place.file, place)
        at = Location(Position(place.file), str(head or ""))
        while at.position < place and (work := work_past_refused(log, at, place, _MANY, source, known)) is not None:
            at = work.end
    except BinlogError:
        return ""
    return at.gtid if head is not None and at.position == place else ""


def logged_at(log: Log, place: Location, source: str, *, compare: bool) -> Location:
    """Return `place` with all transactions of MySQL in its set that its file has before it.

    A start's set may lack some: a transaction is in `gtid_executed` only after its commit, which follows its log entry.

    Raises RelayError 009, if asked to `compare`, where the log before `place` has other transactions than the set.
    Compared are the last numbers of the origins, or domains, that both name: a server may be told to forget a domain
    (`DELETE_DOMAIN_ID`), or to know transactions that its log never had (`gtid_purged`). Nothing is compared where the
    file gives no set.
    """
    logged = gtids_at(log, place.position, source) if place.gtid else ""
    if not logged or (":" in logged) != (":" in place.gtid):
        return place
    head = head_gtids(log, place.position.file, place.position)
    mysql = MysqlGtidSet.parse(logged).without(head) if isinstance(head, MysqlGtidSet) else None
    known, there = _last(place.gtid), _last(logged)
    in_file = _last(str(mysql)) if mysql is not None else there
    differs = (there[name] < last or in_file.get(name, last) > last for name, last in known.items() if name in there)
    if compare and any(differs):
        cause = f"known: {place.gtid}; there: {logged}"
        raise RelayError("RELAY-009", Where(source=source, position=str(place.position)), cause)
    if mysql is None or (whole := MysqlGtidSet.parse(place.gtid)).contains(mysql):
        return place
    runs = ((origin, *run) for origin, intervals in mysql.origins for run in intervals)
    return Location(place.position, str(whole.add(*runs)))


def _last(gtid: str) -> dict[str, int]:
    """Return the last number of each origin (MySQL) or domain (MariaDB) of a GTID set."""
    if ":" in gtid or not gtid:
        return {origin: intervals[-1][1] for origin, intervals in MysqlGtidSet.parse(gtid).origins}
    return {str(domain): number for domain, _, number in MariadbGtidSet.parse(gtid).last}


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
