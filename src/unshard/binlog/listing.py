"""The events of a binlog file for a reader: the contents of each, its rows, DM's name for it.

Nothing is followed or judged here. What the log refuses (statements that change rows, INCIDENT) is listed with a
remark; only bytes that can't be read end the listing. Memory holds one event at a time, of a payload all that is in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from mmap import mmap
from pathlib import PurePath

from unshard.binlog.contents import Facts, facts
from unshard.binlog.described import describe_table, undescribed
from unshard.binlog.events import REFUSED, event_of
from unshard.binlog.headers import HEADER_LENGTH, EventHeader, headers, malformed, place
from unshard.binlog.payload import NotUnpackedError, unpack
from unshard.binlog.query import Damaged, QueryEvent, read_query
from unshard.binlog.query_kind import QueryKind, classify
from unshard.binlog.row_changes import RowChanges
from unshard.binlog.rows import decode_range
from unshard.binlog.table_map import TableMap, parse_table_map
from unshard.binlog.table_metadata import MalformedTableMap
from unshard.errors import BinlogError, Where
from unshard.model.table import Table, TableName

FORMAT_DESCRIPTION, MARIADB_GTID, START_ENCRYPTION, QUERY_COMPRESSED = 15, 162, 164, 165
_NOTES = frozenset({"note", "context"})
_DM = {"WRITE": "insert", "UPDATE": "update", "PARTIAL": "update", "DELETE": "delete"}
_TABLE_ID = 6
_VERSION = 2 + 50  # of the body of FORMAT_DESCRIPTION: up to the end of the server's version
_KNOWN_MAPS = 4096  # different TABLE_MAPs whose structures are kept

Named = tuple[tuple[str, ...], tuple[TableName, ...]]
Naming = Callable[[QueryEvent], Named]
"""Gives DM's names for a statement and the tables that it is on (with an empty table name: a whole schema)."""


@dataclass(frozen=True, slots=True)
class ListingNote:
    """A note for the reader of the listing, in a line of its own between the events."""

    text: str


@dataclass(frozen=True, slots=True)
class Shown:
    """An event as the listing shows it.

    `gtid` is that of the transaction that the event belongs to, "" where there is none. `dm` are DM's names for the
    event. `rows` is None for an event without row images and for one whose rows can't be read; `problem` then says why,
    as for a payload that can't be unpacked. `remark` says that the log can't be followed past this event. `within` is
    the offset of the payload that the event was packed in; the event's own offset is then that in the unpacked bytes.
    """

    header: EventHeader
    name: str
    gtid: str = ""
    dm: tuple[str, ...] = ()
    facts: Facts = field(default_factory=dict)
    tables: tuple[TableName, ...] = ()
    rows: RowChanges | None = None
    problem: BinlogError | None = None
    remark: str = ""
    within: int | None = None


@dataclass(frozen=True, slots=True)
class ListingRange:
    """The range of events to list: from byte `start` up to the first event at or after `stop`.

    `start` need not be the begin of an event. With `table`, only events of that table are listed.
    """

    start: int = 0
    stop: int | None = None
    table: TableName | None = None


def list_events(
    data: bytes | mmap, size: int, *, checksum: bool, where: Where, choice: ListingRange, naming: Naming, growing: bool
) -> Iterator[Shown | ListingNote]:
    """Yield the chosen events of `data[:size]`, a binlog file, in order.

    With `choice.table` an event is listed if it concerns the table, and with it what frames its transaction. A file
    that ends within an event ends the listing with a note if it is `growing`, else with BINLOG-050. Raises BinlogError
    001 and 002 for damage, 004 where the rest is encrypted.
    """
    reading = _Reading(data, where, naming)
    frame = _Frame(choice.table)
    end, moved = 0, False
    for header in headers(data, size, checksum=checksum, where=where, verify_from=choice.start):
        if choice.stop is not None and header.offset >= choice.stop:
            return
        if header.code == START_ENCRYPTION:
            event = event_of(header.code)
            values = {"event": event.name, "remedy": event.remedy}
            raise BinlogError("BINLOG-004", place(header, where), event.reason, values)
        end = header.end
        if header.offset < choice.start:
            reading.pass_over(header)
            if header.end > choice.start:
                name = event_of(header.code).name
                yield ListingNote(f"{choice.start} is within the {name} event at {header.offset}: from {header.end} on")
            continue
        if header.moved and not moved:
            moved = True
            yield ListingNote(
                f"events name other places than their own from {header.offset} on: a server's relay log has them"
            )
        for item in reading.read(header, choice.table):
            yield from frame.let_through(item)
    if end and end < choice.start:
        yield ListingNote(f"the file has no event at {choice.start} or after: it ends at {end}")
    if end < size:
        yield _cut(end, size, where, growing)


def _cut(end: int, size: int, where: Where, growing: bool) -> ListingNote:
    cause = f"the last whole event ends at {end}, {size - end} bytes follow"
    if not growing:
        file = PurePath(where.file).name if where.file else "binlog"
        raise BinlogError("BINLOG-050", replace(where, position=f"{file}:{end}"), cause)
    return ListingNote(f"{cause}: of an event that is being written, or that a crash cut off")


def concerns(item: Shown, table: TableName) -> bool:
    """Return whether the event changes the table, or its schema as a whole."""
    return table in item.tables or TableName(table.schema, "") in item.tables


@dataclass(slots=True)
class _Frame:
    """A filter that passes the events of `table` and those that frame their transactions; without a table, all events.

    `held` has the events before a transaction's first event of the table, until that one comes.
    """

    table: TableName | None
    held: list[Shown] = field(default_factory=list)
    within: bool = False

    def let_through(self, item: Shown | ListingNote) -> Iterator[Shown | ListingNote]:
        if self.table is None or isinstance(item, ListingNote):
            yield item
            return
        kind = event_of(item.header.code).kind
        if item.tables:
            if concerns(item, self.table):
                yield from self.held
                self.held, self.within = [], True
                yield item
        elif kind in ("mysql_gtid", "mariadb_gtid", "anonymous_gtid"):
            self.held, self.within = [item], False
        elif kind in _NOTES:
            self.held = [held for held in self.held if event_of(held.header.code).kind not in _NOTES] + [item]
        elif kind == "payload":
            self.held.append(item)
        elif item.gtid and kind in ("xid", "query", "xa_prepare"):
            if self.within:
                yield item
            else:
                self.held.append(item)


@dataclass(frozen=True, slots=True)
class _Mapped:
    """A TABLE_MAP that the next row events use: its bytes and its content. Equal maps share one `table` object."""

    event: bytes
    table_map: TableMap
    table: Table
    missing: frozenset[str]


@dataclass(slots=True)
class _Reading:
    data: bytes | mmap
    where: Where
    naming: Naming
    gtid: str = ""
    mapped: dict[int, _Mapped] = field(default_factory=dict)
    known: dict[bytes, _Mapped] = field(default_factory=dict)
    told: set[str] = field(default_factory=set)
    packed: bool = False
    mariadb: bool = False

    def pass_over(self, header: EventHeader) -> None:
        """Keep what later events depend on."""
        kind = event_of(header.code).kind
        if header.code == FORMAT_DESCRIPTION:
            self._product(header)
        elif kind == "table_map":
            self._map(header)
        elif kind.endswith("gtid"):
            self._gtid(header, self._facts(header))
        elif kind == "between_groups":
            self.gtid = ""

    def read(self, header: EventHeader, only: TableName | None) -> Iterator[Shown | ListingNote]:
        event = event_of(header.code)
        if header.code == FORMAT_DESCRIPTION:
            self._product(header)
        if event.kind == "table_map":
            mapped = self._map(header)
            shown = Shown(header, event.name, self.gtid, tables=(mapped.table.name,))
            if only in (None, mapped.table.name):
                yield from self._tell(mapped)
            yield replace(shown, facts={"table_id": self._table_id(header), "columns": len(mapped.table.columns)})
        elif event.kind == "rows":
            yield self._rows(header, only)
        elif event.kind == "payload" and not self.packed:
            yield from self._payload(header, only)
        else:
            yield self._other(header)

    def _payload(self, header: EventHeader, only: TableName | None) -> Iterator[Shown | ListingNote]:
        """Yield the event, then the events in it. Table ids end with it."""
        shown = self._other(header)
        here = place(header, self.where)
        try:
            plain = self._unpacked(header)
        except BinlogError as error:
            yield replace(shown, problem=error)
            return
        yield shown
        inner = _Reading(plain, self.where, self.naming, self.gtid, told=self.told, packed=True, mariadb=self.mariadb)
        end = 0
        try:
            for each in headers(plain, len(plain), checksum=False, where=self.where, first=0):
                end = each.end
                for item in inner.read(each, only):
                    yield item if isinstance(item, ListingNote) else _within(item, header.offset, here)
        except BinlogError as error:
            raise BinlogError(error.code, here, error.cause, error.values) from None
        if end < len(plain):
            raise malformed(header, self.where, "what is packed in it ends within an event")

    def _other(self, header: EventHeader) -> Shown:
        event = event_of(header.code)
        found = self._facts(header)
        if event.kind.endswith("gtid"):
            found = self._gtid(header, found)
        elif event.kind in ("between_groups", "rotate", "stop"):
            self.gtid = ""
        shown = Shown(header, event.name, self.gtid, facts=found)
        if event.kind == REFUSED:
            return replace(shown, remark=event.reason)
        return self._query(shown) if event.kind == "query" else shown

    def _gtid(self, header: EventHeader, found: Facts) -> Facts:
        if header.code == MARIADB_GTID:
            domain, number = found.pop("domain"), found.pop("number")
            found = {"gtid": f"{domain}-{header.server_id}-{number}", **found}
        self.gtid = str(found.get("gtid", ""))
        self.mapped.clear()
        return found

    def _query(self, shown: Shown) -> Shown:
        query = read_query(self._body(shown.header))
        match classify(query.sql):
            case QueryKind.STATEMENT:
                names, tables = self.naming(query)
                return replace(shown, dm=names, tables=tables)
            case QueryKind.CHANGE:
                return replace(shown, remark="rows were changed by a statement")
        return shown

    def _rows(self, header: EventHeader, only: TableName | None) -> Shown:
        event = event_of(header.code)
        shown = Shown(header, event.name, self.gtid, dm=(_DM[event.name.split("_")[0]],))
        mapped = self.mapped.get(self._table_id(header))
        if mapped is None:
            return replace(shown, problem=BinlogError("BINLOG-026", place(header, self.where)))
        shown = replace(shown, tables=(mapped.table.name,))
        if only not in (None, mapped.table.name):
            return shown
        try:
            return replace(shown, rows=self._images(header, mapped))
        except BinlogError as error:
            where = replace(place(header, self.where), table=error.where.table)
            return replace(shown, problem=BinlogError(error.code, where, error.cause, error.values))

    def _images(self, header: EventHeader, mapped: _Mapped) -> RowChanges:
        """Return the rows of one event.

        They are decoded as a range of its TABLE_MAP and itself, so that memory has one event at a time.
        """
        pair = mapped.event + bytes(self.data[header.offset : header.end])
        decoded = decode_range(
            pair,
            0,
            len(pair),
            checksum=bool(header.trailer),
            wanted=lambda table_map, offset: mapped.table,
            where=self.where,
        )
        return RowChanges(
            mapped.table, tuple(batch for _, batch in decoded), "charsets" in mapped.missing, decoded.partial
        )

    def _product(self, header: EventHeader) -> None:
        """Keep which product wrote what follows: a server's relay log has its own format first, then the source's."""
        self.mariadb = b"mariadb" in self._raw(header, _VERSION).lower()
        self.known.clear()

    def _map(self, header: EventHeader) -> _Mapped:
        body = self._body(header)
        meaning = body[_TABLE_ID:]
        if meaning not in self.known:
            if len(self.known) >= _KNOWN_MAPS:
                self.known.clear()
            try:
                table_map = parse_table_map(meaning, mariadb=self.mariadb)
            except MalformedTableMap as error:
                raise malformed(header, self.where, str(error)) from None
            event = bytes(self.data[header.offset : header.end])
            table = describe_table(table_map, place(header, self.where))
            self.known[meaning] = _Mapped(event, table_map, table, undescribed(table_map))
        mapped = replace(self.known[meaning], event=bytes(self.data[header.offset : header.end]))
        self.mapped[int.from_bytes(body[:_TABLE_ID], "little")] = mapped
        return mapped

    def _tell(self, mapped: _Mapped) -> Iterator[ListingNote]:
        """Yield one note for each thing that the log does not have."""
        new = sorted(mapped.missing - self.told)
        if new:
            self.told.update(new)
            yield ListingNote(
                f"not logged (binlog_row_metadata isn't FULL): {', '.join(_UNKNOWN[fact] for fact in new)}"
            )

    def _table_id(self, header: EventHeader) -> int:
        body = self._raw(header, _TABLE_ID)
        if len(body) < _TABLE_ID:
            raise malformed(header, self.where, "it ends within its table id")
        return int.from_bytes(body, "little")

    def _facts(self, header: EventHeader) -> Facts:
        try:
            return facts(header.code, self._body(header))
        except Damaged as error:
            raise malformed(header, self.where, str(error)) from None

    def _unpacked(self, header: EventHeader) -> bytes:
        try:
            return unpack(header.code, self._raw(header))
        except NotUnpackedError as error:
            values = {"event": event_of(header.code).name, **error.values}
            raise BinlogError(error.code, place(header, self.where), str(error), values) from None

    def _body(self, header: EventHeader) -> bytes:
        return self._unpacked(header) if header.code == QUERY_COMPRESSED else self._raw(header)

    def _raw(self, header: EventHeader, most: int | None = None) -> bytes:
        start = header.offset + HEADER_LENGTH
        end = header.end - header.trailer
        return bytes(self.data[start : end if most is None else min(end, start + most)])


def _within(item: Shown, payload: int, here: Where) -> Shown:
    """Return an event of a payload; an error in it gets the payload's place in the file."""
    problem = item.problem
    if problem is not None:
        where = replace(here, table=problem.where.table)
        problem = BinlogError(problem.code, where, problem.cause, problem.values)
    return replace(item, within=payload, problem=problem)


_UNKNOWN = {
    "names": "column names (shown as @1, @2 …)",
    "signs": "signs of integers (all shown as signed)",
    "charsets": "character sets (shown as text where it is UTF-8, else as bytes)",
    "members": "members of ENUM and SET (shown as numbers)",
}
