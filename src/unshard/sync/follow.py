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

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from unshard.binlog.extent import Extent, PlainStatement, Rotate
from unshard.binlog.format import read_format
from unshard.binlog.index import walk
from unshard.binlog.mapped import mapped
from unshard.binlog.xa import Completed, PreparedStop
from unshard.errors import Where
from unshard.model.gtid import MariadbGtidSet, MysqlGtidSet
from unshard.model.position import FIRST_OFFSET, Location, Position


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
    """Whole transactions from `begin` to `end`, in one file; `extent` says what is in them.

    With an `xid`, `begin` to `end` is the commit of a prepared transaction, and `path` and `extent` are where its
    rows lie: earlier, perhaps in an older file. With `apart` they are in several stretches of bytes, and what lies
    between them is no part of it.
    """

    begin: Position
    end: Location
    path: Path
    checksum: bool
    extent: Extent
    xid: str = ""
    apart: tuple[tuple[int, int], ...] = ()

    @property
    def stretches(self) -> tuple[tuple[int, int], ...]:
        """The bytes that hold whole transactions, in their order."""
        return self.apart or ((self.extent.start, self.extent.end),)

    @property
    def size(self) -> int:
        """Bytes to read and to unpack."""
        return sum(end - start for start, end in self.stretches) + self.extent.unpacked

    def holds(self, place: Position) -> bool:
        """Whether it is a place in these transactions, of a prepared one in its commit."""
        if not self.apart:
            return self.begin <= place < self.end.position
        return place.file == self.begin.file and any(start <= place.offset < end for start, end in self.apart)

    def and_then(self, later: TransactionRows) -> TransactionRows:
        """These and others that lie behind them in the same file; of what is between them nothing."""
        mine, other = self.extent, later.extent
        extent = replace(
            other,
            start=mine.start,
            transactions=mine.transactions + other.transactions,
            row_events=mine.row_events + other.row_events,
            tables=mine.tables | other.tables,
            first_timestamp=mine.first_timestamp,
            partial_images=mine.partial_images or other.partial_images,
            unpacked=mine.unpacked + other.unpacked,
        )
        return replace(self, end=later.end, extent=extent, apart=coalesced((*self.stretches, *later.stretches)))


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
    extent = walk(data, offset, size=size, budget=budget, checksum=checksum, where=where)
    end = _location(at, file, extent.end, extent.gtids)
    if extent.row_events:
        return TransactionRows(Position(file, offset), end, path, checksum, extent)
    if isinstance(extent.stop, PlainStatement):
        stop = extent.stop
        done = (stop.gtid,) if stop.whole else ()
        return LoggedDdl(Position(file, stop.start), _location(end, file, stop.end, done), stop)
    if isinstance(extent.stop, PreparedStop | Completed):
        one = extent.stop
        begin, behind = Position(file, one.start), _location(end, file, one.end, (one.gtid,))
        return Prepare(begin, behind, one) if isinstance(one, PreparedStop) else Complete(begin, behind, one)
    if isinstance(extent.stop, Rotate):
        following = extent.stop.next_file or log.next_file(file)
        return Move(Location(Position(following), end.gtid)) if following else None
    return Move(end) if extent.end > offset else _past_end(log, at, written)


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
