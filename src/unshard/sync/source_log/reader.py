"""Reads the relay log: `next_work` returns what comes after a location.

| after the location | work |
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

from unshard.binlog.groups import gtid_before
from unshard.binlog.headers import mapped, read_format
from unshard.binlog.index import walk
from unshard.binlog.transaction_range import Data, EndOfData, PlainStatement, Rotate, TransactionRange
from unshard.binlog.xa import Completed, PreparedStop
from unshard.errors import RelayError, Where
from unshard.model.gtid import MariadbGtidSet, MysqlGtidSet
from unshard.model.position import FIRST_OFFSET, Location, Position


class Log(Protocol):
    """The relay log as a reader sees it."""

    def path(self, file: str) -> Path:
        """Return the path of the file that has this name upstream."""

    def next_file(self, file: str) -> str | None:
        """Return the name of the file after `file`, or None if there is none yet."""


class RelayFiles(Log, Protocol):
    """The complete relay log of one server."""

    def files(self) -> tuple[str, ...]:
        """Return the names of its files, oldest first."""


class WrittenLog(Protocol):
    """A relay log that may still grow."""

    @property
    def log(self) -> RelayFiles:
        """The files."""

    @property
    def written(self) -> Position:
        """The position up to which the log can be read."""

    @property
    def upstream(self) -> str:
        """The uuid of the server whose files these are."""

    def check(self) -> None:
        """Raise the error that stopped the relay, if one did."""

    def wait_for(self, position: Position, timeout: float) -> bool:
        """Return whether the log reaches `position` within `timeout` seconds."""


class Relay(WrittenLog, Protocol):
    """The relay unit as the sync unit sees it."""

    def earlier(self, uuid: str, needed: Iterable[Position]) -> WrittenLog:
        """Return the relay log of another server, which must hold everything before `needed`. Raises RelayError 031."""


@dataclass(frozen=True, slots=True)
class TransactionRows:
    """Whole transactions from `begin` to `end`, in one file; `log_range` describes their contents.

    With an `xid` they are a prepared XA transaction: `begin` to `end` is its commit, and `path` and `log_range` are
    where its rows lie, earlier in the log, perhaps in an older file. `checksum`: the file's events end with one.
    `apart`: the byte ranges of the transactions, where other events lie between them.
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
        """The stretches of bytes that hold the transactions, in order."""
        return self.apart or ((self.log_range.start, self.log_range.end),)

    @property
    def size(self) -> int:
        """The bytes to read and to decompress."""
        return sum(end - start for start, end in self.stretches) + self.log_range.unpacked

    def holds(self, place: Position) -> bool:
        """Return whether a position is in these transactions; for a prepared one, in its commit."""
        if not self.apart:
            return self.begin <= place < self.end.position
        return place.file == self.begin.file and any(start <= place.offset < end for start, end in self.apart)

    def and_then(self, later: TransactionRows) -> TransactionRows:
        """Return these transactions and later ones of the same file, without what lies between them."""
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
    """A statement that ends a batch. It begins at `begin`; `end` is the location after it."""

    begin: Position
    end: Location
    statement: PlainStatement


@dataclass(frozen=True, slots=True)
class Move:
    """A range up to `end` without anything to apply: the rest of a file, or events without effect."""

    end: Location


@dataclass(frozen=True, slots=True)
class Prepare:
    """The prepare of an XA transaction, with a GTID of its own. Nothing is applied before the transaction's commit.

    `begin`, `end`: where the whole transaction lies, its rows included.
    """

    begin: Position
    end: Location
    prepared: PreparedStop


@dataclass(frozen=True, slots=True)
class Complete:
    """The commit or rollback of an XA transaction that was prepared earlier in the log.

    `begin`, `end`: where this commit or rollback lies in the log.
    """

    begin: Position
    end: Location
    completed: Completed


Work = TransactionRows | LoggedDdl | Move | Prepare | Complete


def next_work(
    log: Log, at: Location, written: Position, budget: int, source: str, *, planned: bool = False
) -> Work | None:
    """Return the next work after `at`, reading no byte at or after `written`.

    A statement inside a group is returned when the group's end is written too; one that is `planned` without that.
    Raises BinlogError for damaged bytes, RelayError 009 where a finished file ends before `at`.
    """
    file = at.position.file
    if Position(file) > written:
        return None
    path = log.path(file)
    size = written.offset if file == written.file else path.stat().st_size
    offset = max(at.position.offset, FIRST_OFFSET)
    where = Where(source=source, file=str(path))
    if size < at.position.offset and file != written.file:
        where = Where(source=source, file=str(path), position=str(at.position))
        raise RelayError("RELAY-009", where, f"the file ends at byte {size}")
    if size <= offset:
        return past_end(log, at, written)
    data = mapped(path, size)
    checksum = read_format(data).checksum
    log_range = walk(data, offset, size=size, budget=budget, checksum=checksum, where=where)
    gtids = log_range.gtids
    if log_range.inside and log_range.transactions:
        gtids = (gtid_before(data, offset, checksum=checksum), *gtids)
    end = location_after(at, file, log_range.end, gtids)
    if log_range.row_events:
        return TransactionRows(Position(file, offset), end, path, checksum, log_range)
    if isinstance(log_range.stop, PlainStatement):
        stop = log_range.stop
        if not (stop.whole or planned or _has_end(data, stop.end, size=size, checksum=checksum, where=where)):
            return Move(end) if log_range.end > offset else past_end(log, at, written)
        done = (stop.gtid,) if stop.whole else ()
        return LoggedDdl(Position(file, stop.start), location_after(end, file, stop.end, done), stop)
    if isinstance(log_range.stop, PreparedStop | Completed):
        one = log_range.stop
        begin, behind = Position(file, one.start), location_after(end, file, one.end, (one.gtid,))
        return Prepare(begin, behind, one) if isinstance(one, PreparedStop) else Complete(begin, behind, one)
    if isinstance(log_range.stop, Rotate):
        following = log_range.stop.next_file or log.next_file(file)
        return Move(Location(Position(following), end.gtid)) if following else None
    return Move(end) if log_range.end > offset else past_end(log, at, written)


def _has_end(data: Data, at: int, *, size: int, checksum: bool, where: Where) -> bool:
    """Return whether the group of the statement before `at` has an end.

    If the log ends before it, the source was killed in the group and has rolled the statement back with it.
    """
    while True:
        found = walk(data, at, size=size, budget=1, checksum=checksum, where=where)
        if found.transactions or not isinstance(found.stop, PlainStatement):
            return bool(found.transactions) or not isinstance(found.stop, EndOfData | Rotate)
        at = found.stop.end


def coalesced(stretches: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Return the same bytes, with adjacent stretches joined into one."""
    found: list[tuple[int, int]] = []
    for start, end in stretches:
        if found and found[-1][1] == start:
            start, _ = found.pop()
        found.append((start, end))
    return tuple(found)


def past_end(log: Log, at: Location, written: Position) -> Move | None:
    """Return the move out of a file that has nothing more; None where the file is not finished.

    A source that is killed ends its file without an event that names the next one, perhaps in the middle of a
    transaction. The source has rolled that transaction back; a replica does so when the next file begins.
    """
    following = log.next_file(at.position.file) if at.position.file != written.file else None
    return Move(Location(Position(following), at.gtid)) if following else None


def location_after(before: Location, file: str, offset: int, gtids: tuple[str, ...]) -> Location:
    """Return the location at `offset`, with the set of `before` and the ids or intervals `gtids`."""
    gtid = before.gtid
    for added in filter(None, gtids):
        gtid = _with_gtids(gtid, added)
    return Location(Position(file, offset), gtid)


def _with_gtids(known: str, added: str) -> str:
    """Return the set `known` with the ids of `added` in it, in the notation of `added`."""
    if ":" not in added:
        return str(MariadbGtidSet.parse(known).add(*MariadbGtidSet.parse(added).last))
    runs = [(origin, *run) for origin, intervals in MysqlGtidSet.parse(added).origins for run in intervals]
    return str(MysqlGtidSet.parse(known).add(*runs))
