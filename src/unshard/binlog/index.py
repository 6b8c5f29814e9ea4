"""The index of a binlog file: which bytes hold which whole transactions, and what comes next.

`walk` is called by the driver for each batch. It reads no row image; it verifies every checksum, so that what is
decoded later is what the server wrote.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from mmap import mmap
from pathlib import PurePath
from struct import unpack_from

from unshard.binlog.event_kinds import KIND_TABLE
from unshard.binlog.events import EventType, event_of
from unshard.binlog.gtids import alter_flags, commit_time, gtid_text, gtid_texts
from unshard.binlog.headers import CHECKSUM_LENGTH, HEADER_LENGTH
from unshard.binlog.payload import NotUnpackedError, Payload, unpack
from unshard.binlog.query import Damaged, QueryEvent, read_query
from unshard.binlog.query_kind import QueryKind, as_truncate, classify, makes_temporary_table
from unshard.binlog.transaction_range import BudgetReached, EndOfData, PlainStatement, Rotate, Stop, TransactionRange
from unshard.binlog.xa import Completed, PreparedStop, read_prepare, read_statement
from unshard.errors import BinlogError, Where
from unshard.kernels.scan import REASONS, Scanner
from unshard.model.position import FIRST_OFFSET
from unshard.model.table import TableName

Data = bytes | memoryview | mmap

_TRANSACTIONAL = 0x04
_START_ALTER, _ROLLBACK_ALTER = 0x02, 0x08
_QUERY_COMPRESSED = 165
_PIECE = 16 << 20  # bytes of a payload that are unpacked at a time
_REASON = {number: name for name, number in REASONS.items()}

_ROW_FORMAT = (
    "a session that does not log in ROW format made it in a transaction that had changed rows: set binlog_format=ROW on"
    " the source (globally, and in sessions that are open, or end them), then begin anew by `unshard run TASK.yaml"
    " --reset` (a cluster: `stop-task`, then `start-task --reset`)"
)
REFUSALS = frozenset({"BINLOG-004", "BINLOG-005", "BINLOG-007", "BINLOG-031", "BINLOG-032", "BINLOG-033"})
"""The errors of a walk at bytes that are what the server wrote, but that can't be followed."""


def walk(data: Data, start: int, *, size: int, budget: int, checksum: bool, where: Where) -> TransactionRange:
    """Return the range of transactions from `start`, an event boundary that an earlier walk or the file's format gave.

    It takes whole transactions until `budget` bytes are used, packed and unpacked (one at least, however large), a
    statement, an XA transaction that is prepared or completed, the file's end, or the last whole transaction of
    `data[:size]`. A transaction that isn't complete yet is left for a later walk and is never an error. `where` names
    the source and the file for errors. An error is raised only when it is first in the walk: whole transactions
    before it come as an extent of their own.

    Raises BinlogError: 001 and 002 for damage, 004 for an event or statement that is refused, 005 for rows changed by
    a statement, 006 for events out of order, 007 for a rolled-back part that can't be left out, 030 to 032 for a
    compressed event that can't be unpacked, 033 for an XA statement that can't be read. No reference to `data` is kept.
    """
    if start < FIRST_OFFSET:
        raise ValueError(f"start {start} lies before the first event")
    scanner = Scanner(data, start, min(size, len(data)), budget, checksum, KIND_TABLE)
    steps = _Walk(data, start, checksum, where, scanner)
    try:
        return steps.log_range()
    except BinlogError:
        if not scanner.transactions:
            raise
        return steps.before_fault()
    finally:
        scanner.close()


@dataclass(slots=True)
class _Walk:
    """One walk over the events of `data`, which handles the events at which the scanner stops for a decision.

    `outer` is the offset of the payload that `data` was packed in. `inside`: as the scanner's, of a query.
    """

    data: Data
    start: int
    checksum: bool
    where: Where
    scanner: Scanner
    outer: int | None = None
    inside: bool = False

    def log_range(self) -> TransactionRange:
        while True:
            reason = _REASON[self.scanner.run()]
            if reason == "end":
                return self._extent(EndOfData())
            if reason == "budget":
                return self._extent(BudgetReached())
            if reason == "rotate":
                return self._extent(self._rotate())
            if reason == "stop":
                return self._extent(Rotate(None, self._after()), self._after())
            if reason == "payload" and self.outer is None:
                found = self._payload()
            elif reason in ("query", "xa"):
                found = self._query() if reason == "query" else self._prepared()
            else:
                raise self._fault(reason)
            if found is not None:
                return found

    def before_fault(self) -> TransactionRange:
        """Return the range of whole transactions before the event that the scanner stopped at."""
        return self._extent(BudgetReached())

    def _extent(self, stop: Stop, end: int | None = None) -> TransactionRange:
        scanner = self.scanner
        return TransactionRange(
            start=self.start,
            end=scanner.end if end is None else end,
            transactions=scanner.transactions,
            row_events=scanner.row_events,
            tables=frozenset(self._table(*names) for names in scanner.tables),
            first_timestamp=scanner.first_timestamp,
            last_timestamp=self._committed(),
            gtids=gtid_texts(scanner.gtids()),
            stop=stop,
            partial_images=bool(scanner.partial_images),
            unpacked=scanner.unpacked,
            inside=self.inside or bool(scanner.inside),
        )

    def _committed(self) -> float:
        """Return the commit time of the last whole group; its GTID event may have it to the microsecond."""
        scanner = self.scanner
        exact = commit_time(self.data, scanner.last_start) if scanner.transactions and self.outer is None else None
        return scanner.last_timestamp if exact is None else exact

    def _table(self, schema: bytes, table: bytes) -> TableName:
        try:
            return TableName(schema.decode(), table.decode())
        except UnicodeDecodeError as error:
            cause = f"the name {schema!r}.{table!r} is not utf-8 text"
            raise self._error("BINLOG-002", cause, event="TABLE_MAP") from error

    def _rotate(self) -> Rotate:
        body = self._body()
        if len(body) < 9:
            raise self._error("BINLOG-002", f"{len(body)} bytes are too few for a ROTATE", event="ROTATE")
        return Rotate(body[8:].decode("utf-8", "replace"), self._after())

    def _payload(self) -> TransactionRange | None:
        """Take a group that was packed into one event, by a walk of its own over what is in it, piece by piece."""
        try:
            payload = Payload(self._body())
            if self.scanner.exceeds(payload.size):
                return self._extent(BudgetReached())
            pieces = payload.pieces(_PIECE)
            first = next(pieces, b"")
            if not first:
                raise self._fault("payload")
            inner = _Walk(
                first, 0, False, self.where, Scanner(first, 0, len(first), 1, False, KIND_TABLE), self.scanner.offset
            )
            try:
                return self._take(inner, pieces, payload.size)
            finally:
                inner.scanner.close()
        except NotUnpackedError as error:
            raise self._not_unpacked(error) from None

    def _take(self, inner: _Walk, pieces: Iterator[bytes], size: int) -> TransactionRange | None:
        found = inner.log_range()
        for piece in pieces:
            if found.stop != EndOfData() or found.transactions or inner.scanner.offset != len(inner.data):
                raise inner._fault("unexpected")
            inner.data = piece
            inner.scanner.go_on(piece)
            found = inner.log_range()
        stop = found.stop
        if isinstance(stop, PreparedStop) and not found.transactions and stop.end == len(inner.data):
            return self._packed_prepare(replace(stop, unpacked=size))
        whole = found.end == len(inner.data) and found.transactions == 1 and not found.gtids
        if not whole or stop != BudgetReached():
            raise inner._fault("unexpected")
        self.scanner.take_group(inner.scanner, size)
        return None

    def _packed_prepare(self, packed: PreparedStop) -> TransactionRange:
        """Return the range of an XA transaction whose first part was packed: one stop, at the payload's place."""
        scanner = self.scanner
        if scanner.transactions:
            return self._extent(BudgetReached())
        gtid = gtid_text(scanner.group_gtid())
        return self._extent(replace(packed, start=scanner.group_start, end=self._after(), gtid=gtid))

    def _unpacked(self) -> bytes:
        """Return the unpacked content of the event at the scanner's offset."""
        try:
            return unpack(self.scanner.event, self._body())
        except NotUnpackedError as error:
            raise self._not_unpacked(error) from None

    def _not_unpacked(self, error: NotUnpackedError) -> BinlogError:
        event = event_of(self.scanner.event).name
        return self._error(error.code, str(error), event=event, **error.values)

    def _query(self) -> TransactionRange | None:
        """Handle a query by its text; return a range where the query ends one."""
        scanner = self.scanner
        try:
            query = read_query(self._unpacked() if scanner.event == _QUERY_COMPRESSED else self._body())
        except Damaged as error:
            raise self._error("BINLOG-002", str(error), event="QUERY") from error
        kind = classify(query.sql)
        if kind is QueryKind.CHANGE:
            truncate = "" if scanner.in_group else as_truncate(query.sql)
            if not truncate:
                raise self._error("BINLOG-005", statement=query.sql[:200])
            return self._statement(replace(query, sql=truncate))
        if kind is QueryKind.XA:
            return self._xa(query)
        if kind is QueryKind.STATEMENT:
            return self._statement(query)
        if kind is QueryKind.BEGIN:
            if scanner.group_rows:
                raise self._fault("unexpected")
            scanner.open_group()
        elif kind is QueryKind.NOISE:
            self._pass_over()
        elif not scanner.in_group:
            self._enter(kind)
        elif kind is QueryKind.ROLLBACK:
            return self._rollback()
        elif kind is QueryKind.ROLLBACK_TO and scanner.group_rows:
            raise self._error("BINLOG-007", query.sql)
        elif kind is QueryKind.COMMIT:
            scanner.close_group()
        else:
            scanner.skip()
        return None

    def _enter(self, kind: QueryKind) -> None:
        """Handle the end of a group, or a savepoint in it, where the group's begin must lie before the walk."""
        scanner = self.scanner
        if scanner.grouped or scanner.offset != self.start or self.outer is not None:
            raise self._fault("unexpected")
        self.inside = True
        if kind in (QueryKind.COMMIT, QueryKind.ROLLBACK):
            scanner.close_group()
        else:
            scanner.open_group()

    def _pass_over(self) -> None:
        """Skip a query without effect: it is part of an open group, else a transaction by itself."""
        if self.scanner.in_group:
            self.scanner.skip()
        else:
            self.scanner.close_group()

    def _rollback(self) -> TransactionRange | None:
        """End a rolled-back group; None where it had no rows.

        A server logs such a group where it could not drop it, for a temporary table or for MyISAM rows. All of it is
        void when only transactional tables are in it. It then gets a range to itself, without rows.
        """
        scanner = self.scanner
        if not scanner.group_rows:
            scanner.close_group()
            return None
        if not scanner.group_flags & _TRANSACTIONAL:
            raise self._error("BINLOG-007", "ROLLBACK")
        if not scanner.transactions:
            scanner.drop_group_rows()
            scanner.close_group()
        return self._extent(BudgetReached())

    def _statement(self, query: QueryEvent) -> TransactionRange | None:
        scanner = self.scanner
        if scanner.group_rows:
            if makes_temporary_table(query.sql):
                raise self._error("BINLOG-004", query.sql[:300], event="CREATE TEMPORARY TABLE", remedy=_ROW_FORMAT)
            raise self._fault("unexpected")
        start = scanner.group_start if scanner.grouped else scanner.offset
        if alter_flags(self.data, start, scanner.offset, checksum=self.checksum) & (_START_ALTER | _ROLLBACK_ALTER):
            scanner.close_group()  # a two-phase ALTER comes again when it is complete
            return None
        (flags,) = unpack_from("<H", self.data, scanner.offset + 17)
        stop = PlainStatement(
            query=query,
            start=start,
            at=scanner.offset,
            end=self._after(),
            timestamp=scanner.timestamp,
            gtid=gtid_text(scanner.group_gtid()),
            flags=flags,
            whole=not scanner.in_group,
        )
        return self._extent(stop)

    def _prepared(self) -> TransactionRange | None:
        """Return the range that ends with the first part of an XA transaction; None for one of a single phase."""
        scanner = self.scanner
        try:
            xid, one_phase = read_prepare(self._body())
        except Damaged as error:
            raise self._error("BINLOG-002", str(error), event="XA_PREPARE") from error
        if one_phase:
            scanner.close_group()
            return None
        if scanner.transactions:
            return self._extent(BudgetReached())
        return self._extent(
            PreparedStop(
                xid=xid,
                start=scanner.group_start,
                end=self._after(),
                row_events=scanner.group_rows,
                tables=frozenset(self._table(*names) for names in scanner.group_tables),
                timestamp=scanner.timestamp,
                gtid=gtid_text(scanner.group_gtid()),
                partial_images=bool(scanner.group_partial),
                unpacked=scanner.group_unpacked,
            )
        )

    def _xa(self, query: QueryEvent) -> TransactionRange | None:
        scanner = self.scanner
        found = read_statement(query.sql)
        if found is None:
            raise self._error("BINLOG-033", statement=query.sql[:300])
        verb, xid = found
        if verb == "END":
            if not scanner.in_group:
                raise self._fault("unexpected")
            scanner.skip()
            return None
        if scanner.in_group:
            raise self._fault("unexpected")
        if verb == "START":
            scanner.open_group()
            return None
        start = scanner.group_start if scanner.grouped else scanner.offset
        gtid = gtid_text(scanner.group_gtid())
        return self._extent(Completed(xid, verb == "COMMIT", start, self._after(), scanner.timestamp, gtid))

    def _body(self) -> bytes:
        end = self._after() - (CHECKSUM_LENGTH if self.checksum else 0)
        return bytes(self.data[self.scanner.offset + HEADER_LENGTH : end])

    def _after(self) -> int:
        return int(self.scanner.offset + self.scanner.length)

    def _fault(self, reason: str) -> BinlogError:
        scanner = self.scanner
        event = event_of(scanner.event)
        if reason == "refused":
            return self._refused(event)
        if reason == "bad_checksum":
            return self._error("BINLOG-001", event=event.name)
        if reason in ("unexpected", "payload"):
            within = f"within the transaction from {scanner.group_start}" if scanner.in_group else "outside any"
            if self.outer is not None:
                within = "within a compressed transaction"
            return self._error("BINLOG-006", event=event.name, within=within)
        cause = {
            "bad_length": f"its length {scanner.length} can't be",
            "bad_position": f"its length {scanner.length} and its end position don't agree with where it stands",
            "bad_body": "its body is too short for what it says it holds",
        }[reason]
        return self._error("BINLOG-002", cause, event=event.name)

    def _refused(self, event: EventType) -> BinlogError:
        return self._error("BINLOG-004", event.reason, event=event.name, remedy=event.remedy)

    def _error(self, code: str, cause: str = "", **values: str) -> BinlogError:
        offset = self.scanner.offset if self.outer is None else self.outer
        file = PurePath(self.where.file).name if self.where.file else ""
        return BinlogError(code, replace(self.where, position=f"{file}:{offset}"), cause, values)
