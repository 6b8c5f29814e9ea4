"""Where the log goes on: the next piece of work behind a location of the relay log.

| behind the location | work |
|---|---|
| whole row transactions | `TransactionRows`, up to the byte budget |
| a statement | `LoggedDdl` |
| an XA transaction that is prepared | `Prepare` |
| its commit or rollback | `Complete` |
| the end of a file, or of what a killed source left of it | `Move` to the next one |
| the end of a file that a crash of the server cut off | `Move` to the next one: what is incomplete never happened |
| nothing complete yet | None |
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from unshard.binlog.headers import read_format
from unshard.binlog.index import walk
from unshard.binlog.mapped import mapped
from unshard.binlog.transaction_range import PlainStatement, Rotate, TransactionRange
from unshard.binlog.xa import Completed, PreparedStop
from unshard.errors import BinlogError, Where
from unshard.model.gtid import GtidSet, MariadbGtidSet, MysqlGtidSet
from unshard.model.position import FIRST_OFFSET, Location, Position
from unshard.relay.gtids import gtids_before


class Log(Protocol):
    """The relay log as a reader sees it."""

    def path(self, file: str) -> Path:
        """Where the file of that upstream name lies."""

    def next_file(self, file: str) -> str | None:
        """The name of the file behind `file`, or None where there is none yet."""


class RelayFiles(Log, Protocol):
    """The relay log of one server, whole."""

    def files(self) -> tuple[str, ...]:
        """Its names, oldest first."""


class WrittenLog(Protocol):
    """A relay log with its end, which may move on."""

    @property
    def log(self) -> RelayFiles:
        """The files."""

    @property
    def written(self) -> Position:
        """The end of what can be read."""

    @property
    def upstream(self) -> str:
        """The uuid of the server whose files these are."""

    def check(self) -> None:
        """Raise the error that stopped the relay, if one did."""

    def wait_for(self, position: Position, timeout: float) -> bool:
        """Whether the log reaches `position` within `timeout` seconds."""


class Relay(WrittenLog, Protocol):
    """The relay unit as the sync unit sees it."""

    def earlier(self, uuid: str, needed: Iterable[Position]) -> WrittenLog:
        """The files that another server has left, which must hold all before `needed`. Raises RelayError 031."""


@dataclass(frozen=True, slots=True)
class TransactionRows:
    """Whole transactions from `begin` to `end`, in one file; `log_range` says what is in them.

    With an `xid`, `begin` to `end` is the commit of a prepared transaction, and `path` and `log_range` are where its
    rows lie: earlier, perhaps in an older file. With `apart` they are in several stretches of bytes, and what lies
    between them is no part of it.
    """

    begin: Position
    end: Location
    path: Path
    checksum: bool
    log_range: TransactionRange
    xid: str = ""
    apart: tuple[tuple[int, int], ...] = ()

    @property
    def stretches(self) -> tuple[tuple[int, int], ...]:
        """The bytes that hold whole transactions, in their order."""
        return self.apart or ((self.log_range.start, self.log_range.end),)

    @property
    def size(self) -> int:
        """Bytes to read and to unpack."""
        return sum(end - start for start, end in self.stretches) + self.log_range.unpacked

    def holds(self, place: Position) -> bool:
        """Whether it is a place in these transactions, of a prepared one in its commit."""
        if not self.apart:
            return self.begin <= place < self.end.position
        return place.file == self.begin.file and any(start <= place.offset < end for start, end in self.apart)

    def and_then(self, later: TransactionRows) -> TransactionRows:
        """These and others that lie behind them in the same file; of what is between them nothing."""
        mine, other = self.log_range, later.log_range
        log_range = replace(
            other,
            start=mine.start,
            transactions=mine.transactions + other.transactions,
            row_events=mine.row_events + other.row_events,
            tables=mine.tables | other.tables,
            first_timestamp=mine.first_timestamp,
            partial_images=mine.partial_images or other.partial_images,
            unpacked=mine.unpacked + other.unpacked,
        )
        return replace(self, end=later.end, log_range=log_range, apart=coalesced((*self.stretches, *later.stretches)))


@dataclass(frozen=True, slots=True)
class LoggedDdl:
    """A statement that ends a batch; `end` is the location behind it."""

    begin: Position
    end: Location
    statement: PlainStatement


@dataclass(frozen=True, slots=True)
class Move:
    """Nothing to apply up to `end`: a new file, or events without effect."""

    end: Location


@dataclass(frozen=True, slots=True)
class Prepare:
    """An XA transaction that is prepared, with a GTID of its own: nothing to apply before its commit."""

    begin: Position
    end: Location
    prepared: PreparedStop


@dataclass(frozen=True, slots=True)
class Complete:
    """The commit or rollback of an XA transaction that was prepared earlier in the log."""

    begin: Position
    end: Location
    completed: Completed


Work = TransactionRows | LoggedDdl | Move | Prepare | Complete


def next_work(log: Log, at: Location, written: Position, budget: int, source: str) -> Work | None:
    """The next work behind `at`, reading no byte at or behind `written`. Raises BinlogError for damaged bytes."""
    file = at.position.file
    if Position(file) > written:
        return None
    path = log.path(file)
    size = written.offset if file == written.file else path.stat().st_size
    offset = max(at.position.offset, FIRST_OFFSET)
    if size <= offset:
        return _past_end(log, at, written)
    where = Where(source=source, file=str(path))
    data = mapped(path, size)
    checksum = read_format(data).checksum
    log_range = walk(data, offset, size=size, budget=budget, checksum=checksum, where=where)
    end = _location(at, file, log_range.end, log_range.gtids)
    if log_range.row_events:
        return TransactionRows(Position(file, offset), end, path, checksum, log_range)
    if isinstance(log_range.stop, PlainStatement):
        stop = log_range.stop
        done = (stop.gtid,) if stop.whole else ()
        return LoggedDdl(Position(file, stop.start), _location(end, file, stop.end, done), stop)
    if isinstance(log_range.stop, PreparedStop | Completed):
        one = log_range.stop
        begin, behind = Position(file, one.start), _location(end, file, one.end, (one.gtid,))
        return Prepare(begin, behind, one) if isinstance(one, PreparedStop) else Complete(begin, behind, one)
    if isinstance(log_range.stop, Rotate):
        following = log_range.stop.next_file or log.next_file(file)
        return Move(Location(Position(following), end.gtid)) if following else None
    return Move(end) if log_range.end > offset else _past_end(log, at, written)


def coalesced(stretches: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """The same bytes, in one stretch where one begins where another ends."""
    found: list[tuple[int, int]] = []
    for start, end in stretches:
        if found and found[-1][1] == start:
            start, _ = found.pop()
        found.append((start, end))
    return tuple(found)


def _past_end(log: Log, at: Location, written: Position) -> Move | None:
    """The way out of a file that holds nothing more.

    A source that is killed ends its file without an event that names the next one, perhaps in the middle of a
    transaction; it rolled that one back, as a replica does when the next file begins.
    """
    following = log.next_file(at.position.file) if at.position.file != written.file else None
    return Move(Location(Position(following), at.gtid)) if following else None


def _location(before: Location, file: str, offset: int, gtids: tuple[str, ...]) -> Location:
    gtid = before.gtid
    for added in filter(None, gtids):
        gtid = _with_gtids(gtid, added)
    return Location(Position(file, offset), gtid)


def _with_gtids(known: str, added: str) -> str:
    """The set `known` with the ids of `added` in it, in the notation of `added`."""
    if ":" not in added:
        return str(MariadbGtidSet.parse(known).add(*MariadbGtidSet.parse(added).last))
    runs = [(origin, *run) for origin, intervals in MysqlGtidSet.parse(added).origins for run in intervals]
    return str(MysqlGtidSet.parse(known).add(*runs))


# From a GTID set to the place in the log behind it.


ONE_TRANSACTION = 1
_MANY = 64 << 20
_HEAD_BYTES = 1 << 20


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
    """The GTID set up to `place`, by the log's file up to there, which is written; "" where the file doesn't tell.

    Damage is no error here: what follows the log meets it, or begins behind it.
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
    """The set that a file of the log begins with; None while it isn't there yet."""
    end = written.offset if written.file == file else _HEAD_BYTES
    with log.path(file).open("rb") as opened:
        return gtids_before(opened.read(min(end, _HEAD_BYTES)), FIRST_OFFSET)


def holds(known: str, gtid: str) -> bool:
    """Whether the set `known` has all of the set `gtid`, both in the same notation."""
    if ":" in gtid:
        return MysqlGtidSet.parse(known).contains(MysqlGtidSet.parse(gtid))
    return MariadbGtidSet.parse(known).contains(MariadbGtidSet.parse(gtid))
