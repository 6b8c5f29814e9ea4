"""The result of scanning the log: a range of whole transactions, and the reason why the scan ended.

A range may be cut into pieces that are decoded in parallel, or into ranges that are applied one after the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from mmap import mmap

from unshard.binlog.event_kinds import KIND_TABLE
from unshard.binlog.headers import CHECKSUM_LENGTH, HEADER_LENGTH
from unshard.binlog.payload import PAYLOAD, Payload, PayloadPart
from unshard.binlog.query import QueryEvent
from unshard.binlog.xa import Completed, PreparedStop
from unshard.kernels.split import boundaries
from unshard.kernels.split import slices as cuts
from unshard.model.table import TableName


@dataclass(frozen=True, slots=True)
class EndOfData:
    """The stop at the end of the data: no whole transaction is left in it. More data may come."""


@dataclass(frozen=True, slots=True)
class BudgetReached:
    """The stop at a range that is as large as it may be, or before a transaction that needs a range of its own."""


@dataclass(frozen=True, slots=True)
class Rotate:
    """The stop at the end of the file, at `end`.

    `next_file` is None where the server was shut down: then the next file in order follows.
    """

    next_file: str | None
    end: int


@dataclass(frozen=True, slots=True)
class PlainStatement:
    """The stop at a statement that isn't a row change or a transaction bound: DDL, grants, ANALYZE, FLUSH and the like.

    `start` is where the statement's event group begins (the end of the range), `at` the QUERY event, `end` the byte
    after it. `whole`: whether the group ends with the statement: after CREATE TABLE … SELECT rows follow, and `gtid` is
    executed only with the range that begins at `end`. `timestamp` is in unix seconds, `flags` are the header's.
    """

    query: QueryEvent
    start: int
    at: int
    end: int
    timestamp: int
    gtid: str
    flags: int
    whole: bool

    @property
    def schema(self) -> str:
        """Schema of the session that ran the statement."""
        return self.query.schema

    @property
    def sql(self) -> str:
        """Text of the statement."""
        return self.query.sql

    @property
    def sql_mode(self) -> int:
        """Bits of the session's `sql_mode`."""
        return self.query.sql_mode

    @property
    def time_zone(self) -> str | None:
        """Time zone of the session; None where the log does not have it."""
        return self.query.time_zone

    @property
    def foreign_key_checks(self) -> bool:
        """True if the session checked foreign keys."""
        return self.query.foreign_key_checks


Stop = EndOfData | BudgetReached | Rotate | PlainStatement | PreparedStop | Completed


@dataclass(frozen=True, slots=True)
class TransactionRange:
    """A run of whole transactions in one file, bytes `start` to `end`, and the reason why it stops there.

    `row_events` and `tables` say what there is to decode; with no row event the bytes must not be decoded (they may
    hold a transaction that was rolled back). `partial_images`: whether a row image lacks columns of its table.
    `unpacked`: the size of the uncompressed content of compressed events, in addition to the range's own bytes.
    Timestamps are those of the first and the last commit in unix seconds, 0 without a transaction; the last has
    microseconds where the log has them (MySQL 8). `gtids` has the last GTID of each domain and server (MariaDB, in
    order of commit) or merged intervals (MySQL, `uuid:1-5`). `inside`: the range begins inside a group, behind its
    CREATE TABLE … SELECT; the GTID of the group is that of the statement, and not among them.
    """

    start: int
    end: int
    transactions: int
    row_events: int
    tables: frozenset[TableName]
    first_timestamp: int
    last_timestamp: float
    gtids: tuple[str, ...]
    stop: Stop
    partial_images: bool = False
    unpacked: int = 0
    inside: bool = False

    @property
    def size(self) -> int:
        """Bytes to read and to unpack."""
        return self.end - self.start + self.unpacked


CODE_AT = 4

Data = bytes | memoryview | mmap


def splits(data: Data, start: int, end: int, pieces: int) -> tuple[int, ...]:
    """Return offsets where decoding of `[start, end)` may begin: `start` and up to `pieces - 1` more, near equal sizes.

    Each is a transaction or the first TABLE_MAP of a statement; one statement's rows are never parted. The range must
    be (part of) an extent.
    """
    return tuple(boundaries(data, start, end, pieces, KIND_TABLE))


@dataclass(frozen=True, slots=True)
class Slice:
    """A slice of a file, bytes `start` to `end`. With `part`, only that part of the payload there.

    `maps` are the offsets of the TABLE_MAP events before the slice that its first rows need.
    """

    start: int
    end: int
    maps: tuple[int, ...] = ()
    part: PayloadPart | None = None


def slices(data: Data, start: int, end: int, size: int, *, checksum: bool) -> Iterator[Slice]:
    """Yield slices of a range that have about `size` bytes, unpacked.

    They cut through transactions and statements: each has to be applied before the next is.
    """
    found = cuts(data, start, end, size, KIND_TABLE)
    for (begin, maps), after in zip(found, [*(begin for begin, _ in found[1:]), end], strict=True):
        if data[begin + CODE_AT] == PAYLOAD:
            body = bytes(data[begin + HEADER_LENGTH : after - CHECKSUM_LENGTH * checksum])
            yield from (Slice(begin, after, part=part) for part in Payload(body).parts(size))
        else:
            yield Slice(begin, after, maps)
