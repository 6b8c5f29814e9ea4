"""Row events of one byte range of a binlog file, decoded to Arrow record batches.

Pure over the bytes: no I/O, no connection. Called in Spark tasks; may be repeated, with the same result.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from mmap import mmap
from pathlib import PurePath
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from unshard.binlog.columns import UndecodableValue, build_array
from unshard.binlog.events import REFUSED, event_of
from unshard.binlog.headers import CHECKSUM_LENGTH
from unshard.binlog.layout import JSON, RAW_DOCUMENT, Layout, plan_layouts
from unshard.binlog.table_map import TableMap, parse_table_map
from unshard.binlog.table_metadata import MalformedTableMap
from unshard.errors import BinlogError, Where
from unshard.kernels.partial import PartialSink
from unshard.kernels.rows import read_events
from unshard.kernels.sink import LeftOut, RowFault, RowSink
from unshard.model.change import IMAGE_FIELDS, Op
from unshard.model.table import Column, Table, TableName
from unshard.mysql.types import arrow_type

if TYPE_CHECKING:
    from unshard.binlog.images import PartialImages, Present
    from unshard.binlog.payload import PayloadPart

RoutedStatement = Callable[[TableMap, int], Table | None]
"""Asked at every TABLE_MAP with what it says and the event's offset; None leaves its rows out.

For equal TABLE_MAPs it gives the same Table object, so that all of a table's rows come in one batch.
"""

OFFSET_FIELD = pa.field("offset", pa.int64(), nullable=False)

_AFTER = (Op.INSERT, Op.UPDATE_AFTER)
_READ_HERE = frozenset({REFUSED, "rows", "table_map", "payload"})
_PASSED = bytes(event_of(code).kind not in _READ_HERE for code in range(256))
"""Which event codes hold no rows: the index has judged them, by the same table."""


@dataclass(frozen=True, slots=True)
class OpaqueDocuments:
    """The changes after which one JSON column holds documents with opaque values: values of types that JSON lacks.

    Opaque values are DECIMALs, dates and times, and binary data. A VAR_STRING is not one, because a JSON string equals
    it. `seqs` are the numbers of the changes, ascending.
    """

    table: Table
    column: str
    seqs: pa.Array


@dataclass(frozen=True, slots=True)
class Decoded:
    """The result of decoding a range. Iterating over it gives the batches.

    A table has one batch: `op`, `seq`, then its columns in table order. (A column of the table may have one of those
    two names as well; the images' own are always number 0 and 1.) A table has a second batch only where `wanted` gave a
    second structure for it. Images that lack columns are in `partial`; their `seq` is of the same count. `opaque` has
    the changes after which a JSON document's text does not say everything; images before a change and DELETEs are not
    among them. `changes` counts an UPDATE once, `events` counts the decoded row events, `left_out` by table the row
    events that were not wanted.
    """

    batches: tuple[tuple[Table, pa.RecordBatch], ...]
    changes: int
    events: int
    left_out: Mapping[TableName, int]
    partial: tuple[PartialImages, ...] = ()
    opaque: tuple[OpaqueDocuments, ...] = ()

    @property
    def skipped(self) -> int:
        """All row events that were left out."""
        return sum(self.left_out.values())

    def __iter__(self) -> Iterator[tuple[Table, pa.RecordBatch]]:
        return iter(self.batches)


def decode_range(
    data: memoryview | mmap | bytes,
    start: int,
    end: int,
    *,
    checksum: bool,
    wanted: RoutedStatement,
    seq_base: int = 0,
    offsets: bool = False,
    maps: tuple[int, ...] = (),
    part: PayloadPart | None = None,
    mariadb: bool | None = None,
    where: Where,
) -> Decoded:
    """Decode every row event between two event boundaries of one binlog file.

    The range begins at a transaction or at the first TABLE_MAP of a statement; where it begins between the rows of a
    statement, `maps` has the offsets of the statement's TABLE_MAPs. Where it is one payload, `part` may say how much
    of it. `seq` numbers the changes from
    `seq_base` on, in the order of the log over all tables; the two images of an UPDATE are adjacent rows with one
    `seq`. Compressed events may hold more changes than bytes: bases must lie far apart.
    `mariadb` is whether MariaDB wrote the file; with None the TABLE_MAPs that `wanted` gets have no collations.
    With `offsets` a batch has one more column, after the table's: the offset of each row's event.
    Checksums are not verified again (the index did). `where` needs source and file; offsets are added to it.

    Raises BinlogError: BINLOG-020, 027 (not handled yet), 021 (a value), 022 (structure), 023 (broken event), 024
    (event type), 026 (rows without a TABLE_MAP), 030 to 032 (compressed events), 037 (row images without a column),
    038 (changes of a document that is not logged).
    """
    sinks = _Sinks(wanted, where, offsets=offsets, part=part, mariadb=mariadb)
    try:
        counts = read_events(data, start, end, CHECKSUM_LENGTH if checksum else 0, _PASSED, sinks, seq_base, maps)
    except RowFault as fault:
        raise _error(fault, where) from None
    batches, partial = tuple(sinks.finish()), tuple(sinks.partial())
    return Decoded(batches, counts.changes, counts.events, sinks.left_out(), partial, tuple(sinks.opaque))


@dataclass(slots=True)
class _Mapped:
    """One distinct TABLE_MAP of the range, with the last answer of `wanted` for it."""

    table_map: TableMap
    table: Table | None = None
    sink: RowSink | None = None
    left_out: LeftOut = field(default_factory=LeftOut)


@dataclass(frozen=True, slots=True)
class _Target:
    """The label of a RowSink: the table whose rows it collects. `present` is None where images have all columns.

    `documents` maps the place in `columns` of each JSON column that may hold diffs to its number among all JSON
    columns.
    """

    table: Table
    layouts: tuple[Layout, ...]
    columns: tuple[Column, ...]
    present: Present | None = None
    documents: dict[int, int] = field(default_factory=dict)


class _Sinks:
    """The resolver for the row kernel, with one sink for each structure, whatever table ids are mapped to it."""

    def __init__(
        self,
        wanted: RoutedStatement,
        where: Where,
        *,
        offsets: bool,
        part: PayloadPart | None = None,
        mariadb: bool | None = None,
    ) -> None:
        self._wanted = wanted
        self._where = where
        self._offsets = offsets
        self._part = part
        self._mariadb = mariadb
        self._parsed: dict[bytes, _Mapped] = {}
        self._by_table: dict[int, list[RowSink]] = {}
        self._special: dict[tuple[RowSink, Present, bool], PartialSink] = {}
        self.opaque: list[OpaqueDocuments] = []

    def parse(self, body: bytes, offset: int) -> _Mapped:
        if body not in self._parsed:
            try:
                self._parsed[body] = _Mapped(parse_table_map(body, mariadb=self._mariadb))
            except MalformedTableMap as error:
                raise BinlogError("BINLOG-023", _at(self._where, offset), f"TABLE_MAP: {error}") from None
        return self._parsed[body]

    def choose(self, mapped: _Mapped, offset: int) -> RowSink | LeftOut:
        table = self._wanted(mapped.table_map, offset)
        if table is not mapped.table:
            mapped.table = table
            mapped.sink = None if table is None else self._sink(table, mapped.table_map, offset)
        return mapped.left_out if mapped.sink is None else mapped.sink

    def left_out(self) -> dict[TableName, int]:
        found: Counter[TableName] = Counter()
        for mapped in self._parsed.values():
            if mapped.left_out.events:
                found[mapped.table_map.name] += mapped.left_out.events
        return dict(found)

    def special(
        self, mapped: _Mapped, before: bytes | None, after: bytes | None, diffs: bool, offset: int
    ) -> PartialSink:
        if mapped.sink is None or mapped.table is None:
            raise ValueError("rows of a table that was not chosen")
        from unshard.binlog.images import Present, present_columns  # few sources log such images

        count = len(mapped.table.columns)
        present = Present(present_columns(before, count), present_columns(after, count))
        key = mapped.sink, present, diffs
        if key not in self._special:
            self._special[key] = self._special_sink(mapped.sink.label, present, mapped.table_map, diffs)
        return self._special[key]

    def _special_sink(self, whole: _Target, present: Present, table_map: TableMap, diffs: bool) -> PartialSink:
        from unshard.mysql.structure import is_hash_column  # few sources log such images

        hidden = frozenset(number for number, column in enumerate(whole.columns) if is_hash_column(column))
        partial = present.lacks_columns(len(whole.columns), but=hidden)
        numbers = present.either(len(whole.columns)) if partial else tuple(range(len(whole.columns)))
        json = [number for number, code in enumerate(table_map.types) if diffs and code == JSON]
        documents = {place: json.index(number) for place, number in enumerate(numbers) if number in json}
        label = _Target(
            whole.table,
            tuple(RAW_DOCUMENT if number in json else whole.layouts[number] for number in numbers),
            tuple(whole.columns[number] for number in numbers),
            present if partial else None,
            documents,
        )
        before, after = (bytes(columns is not None and number in columns for number in numbers) for columns in present)
        return PartialSink([layout.as_tuple() for layout in label.layouts], label, before, after, len(json))

    def unpack(self, code: int, body: bytes, offset: int) -> bytes:
        from unshard.binlog.payload import NotUnpackedError, Payload, unpack  # few sources compress their log

        try:
            return unpack(code, body) if self._part is None else Payload(body).part(self._part)
        except NotUnpackedError as error:
            values = {"event": event_of(code).name, **error.values}
            raise BinlogError(error.code, _at(self._where, offset), str(error), values) from None

    def finish(self) -> Iterator[tuple[Table, pa.RecordBatch]]:
        """Yield a batch for each sink of whole images that has rows."""
        plain: list[RowSink] = [sink for sinks in self._by_table.values() for sink in sinks]
        special: list[RowSink] = list(self._special.values())
        for sink in plain + special:
            if sink.rows and sink.label.present is None:
                yield sink.label.table, self._batch(sink)

    def partial(self) -> Iterator[PartialImages]:
        """Yield the images of each sink whose images lack columns."""
        if not self._special:
            return
        from unshard.binlog.images import PartialImages

        for sink in self._special.values():
            if sink.label.present is not None and sink.rows:
                first = sink.offset_of(0)
                yield PartialImages(sink.label.table, sink.label.present, sink.label.columns, self._batch(sink), first)

    def _sink(self, table: Table, table_map: TableMap, offset: int) -> RowSink:
        try:
            layouts = plan_layouts(table, table_map)
        except BinlogError as error:
            raise error.at(**asdict(_at(self._where, offset, table))) from None
        sinks = self._by_table.setdefault(id(table), [])
        for sink in sinks:
            if sink.label.layouts == layouts:
                return sink
        sinks.append(RowSink([layout.as_tuple() for layout in layouts], _Target(table, layouts, table.columns)))
        return sinks[-1]

    def _batch(self, sink: RowSink) -> pa.RecordBatch:
        table: Table = sink.label.table
        offsets = sink.offsets() if self._offsets else None
        documents = [place for place, column in enumerate(sink.label.columns) if column.type == "json"]
        opaque = {place: sink.opaque(place) for place in documents}
        rows, ops, seqs, columns = sink.take()
        fields = list(IMAGE_FIELDS)
        pairs = zip(fields, (ops, seqs), strict=True)
        arrays = [pa.Array.from_buffers(field.type, rows, [None, data]) for field, data in pairs]
        for place, (column, buffers) in enumerate(zip(sink.label.columns, columns, strict=True)):
            try:
                if isinstance(sink, PartialSink) and place in sink.label.documents:
                    from unshard.binlog.json_diff import document_buffers  # few sources log changes of documents

                    buffers, found = document_buffers(rows, buffers, self._changed(sink, place))
                    opaque[place] = pa.py_buffer(np.array(found, np.int64))
                arrays.append(build_array(column, rows, buffers))
            except UndecodableValue as error:
                where = _at(self._where, sink.offset_of(error.row), table)
                raise BinlogError("BINLOG-021", where, str(error), {"column": column.name}) from None
            fields.append(pa.field(column.name, arrow_type(column)))
        for place, numbers in opaque.items():
            self._note_opaque(table, sink.label.columns[place].name, numbers, arrays[0], arrays[1])
        if offsets is not None:
            arrays.append(pa.Array.from_buffers(pa.int64(), rows, [None, offsets]))
            fields.append(OFFSET_FIELD)
        return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))

    def _note_opaque(self, table: Table, column: str, rows: pa.Buffer, ops: pa.Array, seqs: pa.Array) -> None:
        """Keep the changes whose images after are among these rows, numbers of 8 bytes."""
        if not rows.size:
            return
        numbers = pa.Array.from_buffers(pa.int64(), rows.size >> 3, [None, rows])
        after = pc.is_in(ops.take(numbers), pa.array(_AFTER, pa.int8()))
        found = seqs.take(numbers.filter(after))
        if len(found):
            self.opaque.append(OpaqueDocuments(table, column, found))

    def _changed(self, sink: PartialSink, place: int) -> list[int]:
        """Return the rows of a PartialSink whose document in that column is diffs."""
        from unshard.binlog.json_diff import changes_document

        label: _Target = sink.label
        number = label.documents[place]
        changed = [row for row, bitmap in sink.diffs if changes_document(bitmap, number)]
        column = label.columns[place]
        if (
            changed
            and label.present is not None
            and label.table.columns.index(column) not in (label.present.before or ())
        ):
            where = _at(self._where, sink.offset_of(changed[0]), label.table)
            raise BinlogError("BINLOG-038", where, values={"column": column.name})
        return changed


def _at(where: Where, offset: int, table: Table | None = None) -> Where:
    file = PurePath(where.file).name if where.file else "binlog"
    return replace(where, position=f"{file}:{offset}", table=str(table.name) if table else where.table)


def _error(fault: RowFault, where: Where) -> BinlogError:
    table: Table | None = fault.sink.label.table if fault.sink is not None else None
    place = _at(where, fault.offset, table)
    if fault.kind == "type":
        number = int(fault.reason)
        return BinlogError("BINLOG-024", place, values={"event": event_of(number).name})
    if fault.kind == "value" and fault.sink is not None:
        column = fault.sink.label.columns[fault.column]
        return BinlogError("BINLOG-021", place, f"the value {fault.reason}", {"column": column.name})
    code = {"image": "BINLOG-037", "unmapped": "BINLOG-026"}.get(fault.kind, "BINLOG-023")
    return BinlogError(code, place, fault.reason)
