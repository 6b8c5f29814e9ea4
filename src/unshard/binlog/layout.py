"""The layout of each column's values in a row image, from the binlog's own type and the known structure.

Both must agree: a type, a precision or a length that differs means that the structure is not the one of this
place of the log, and reading on would turn one value into another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from unshard.binlog.table_map import TableMap, real_type
from unshard.errors import BinlogError
from unshard.model.table import Column, Table
from unshard.mysql import charsets
from unshard.mysql.types import ADDRESSES, CHARACTERS, GEOMETRIES, arrow_type

TINY, SHORT, LONG, FLOAT, DOUBLE, TIMESTAMP, LONGLONG, INT24 = 1, 2, 3, 4, 5, 7, 8, 9
DATE, TIME, DATETIME, YEAR, NEWDATE, VARCHAR, BIT = 10, 11, 12, 13, 14, 15, 16
TIMESTAMP2, DATETIME2, TIME2, JSON, NEWDECIMAL = 17, 18, 19, 245, 246
ENUM, SET, BLOB, VAR_STRING, STRING, GEOMETRY = 247, 248, 252, 253, 254, 255

COMPRESSED_BLOB, COMPRESSED_VARCHAR, VECTOR = 140, 141, 242
COMPRESSED = frozenset({COMPRESSED_BLOB, COMPRESSED_VARCHAR})

_INTEGERS = {TINY: "int8", SHORT: "int16", INT24: "int24", LONG: "int32", LONGLONG: "int64"}
_OLD_TEMPORALS = {TIME: "time", DATETIME: "datetime", TIMESTAMP: "timestamp"}
_TEMPORALS = {TIME2: "time", DATETIME2: "datetime", TIMESTAMP2: "timestamp"}

WIRE: dict[str, frozenset[int]] = {
    "tinyint": frozenset({TINY}),
    "smallint": frozenset({SHORT}),
    "mediumint": frozenset({INT24}),
    "int": frozenset({LONG}),
    "bigint": frozenset({LONGLONG}),
    "float": frozenset({FLOAT}),
    "double": frozenset({DOUBLE}),
    "decimal": frozenset({NEWDECIMAL}),
    "year": frozenset({YEAR}),
    "date": frozenset({DATE, NEWDATE}),
    "time": frozenset({TIME, TIME2}),
    "datetime": frozenset({DATETIME, DATETIME2}),
    "timestamp": frozenset({TIMESTAMP, TIMESTAMP2}),
    "bit": frozenset({BIT}),
    "json": frozenset({JSON}),
    "vector": frozenset({VECTOR, VARCHAR}),  # MySQL, MariaDB
    "enum": frozenset({ENUM}),
    "set": frozenset({SET}),
    **dict.fromkeys(("char", "binary", *ADDRESSES), frozenset({STRING})),
    **dict.fromkeys(("varchar", "varbinary"), frozenset({VARCHAR, VAR_STRING, COMPRESSED_VARCHAR})),
    **dict.fromkeys(("tinytext", "text", "mediumtext", "longtext"), frozenset({BLOB, COMPRESSED_BLOB})),
    **dict.fromkeys(("tinyblob", "blob", "mediumblob", "longblob"), frozenset({BLOB, COMPRESSED_BLOB})),
    **dict.fromkeys(GEOMETRIES, frozenset({GEOMETRY})),
}
"""By type of a structure, the type codes of the binlog that its values may have."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The row kernel's arguments for one column: see `unshard.kernels.sink.RowSink`."""

    reader: str
    width: int = 0
    size: int = 0
    scale: int = 0
    table: bytes | None = None

    def as_tuple(self) -> tuple[str, int, int, int, bytes | None]:
        """Return the layout in the form that `RowSink` takes."""
        return self.reader, self.width, self.size, self.scale, self.table


RAW_DOCUMENT = Layout("bytes", size=4)
"""A JSON column as the log's own bytes."""


class _Differs(ValueError):
    """The type of a column in the binlog is not that of the structure; the text says what the binlog has."""


def plan_layouts(table: Table, mapped: TableMap) -> tuple[Layout, ...]:
    """Return a layout for each column of the table.

    Raises BinlogError without a place: BINLOG-020 (type), 027 (charset) for what is not handled yet, and BINLOG-022
    where structure and TABLE_MAP differ.
    """
    if len(table.columns) != len(mapped.types):
        raise _mismatch(table, mapped, f"{len(table.columns)} columns against {len(mapped.types)}")
    layouts = []
    for number, column in enumerate(table.columns):
        code, size = real_type(mapped.types[number], mapped.metadata[number])
        try:
            arrow_type(column)
            _check_logged(column, mapped, number)
            layouts.append(_layout(column, code, size, mapped.metadata[number]))
        except _Differs as error:
            raise _mismatch(table, mapped, f"column {column.name} is {column.definition}: {error}") from None
    return tuple(layouts)


def describe(mapped: TableMap) -> str:
    """Return the table's columns as the binlog has them, for error texts."""
    pairs = zip(mapped.types, mapped.metadata, strict=True)
    return ", ".join(f"{code}({meta.hex()})" if meta else str(code) for code, meta in pairs)


def _mismatch(table: Table, mapped: TableMap, cause: str) -> BinlogError:
    known = ", ".join(column.definition for column in table.columns)
    return BinlogError("BINLOG-022", cause=cause, values={"known": known, "logged": describe(mapped)})


def _check_logged(column: Column, mapped: TableMap, number: int) -> None:
    """Check the structure against the facts that `binlog_row_metadata` adds to types."""
    logged = mapped.optional
    if logged.names is not None and logged.names[number].lower() != column.name.lower():
        raise _Differs(f"the binlog calls it {logged.names[number]}")
    _check_members(column, logged.members[number] if logged.members is not None else None)
    unsigned = logged.unsigned[number] if logged.unsigned is not None else None
    if unsigned is not None and unsigned != column.unsigned and column.type != "year":
        raise _Differs(f"the binlog has it {'unsigned' if unsigned else 'signed'}")


def _check_members(column: Column, logged: Sequence[bytes] | None) -> None:
    """Refuse members that the structure may not show right. Raises BinlogError BINLOG-045.

    A server shows letters beyond three bytes of UTF-8 as `?` in its structures, so a `?` may replace one. Only
    `binlog_row_metadata=FULL` has the members.
    """
    if column.charset in charsets.BEYOND_THREE_BYTES and any("?" in member for member in column.members):
        known = tuple(charsets.to_text(member, column.charset) for member in logged or ())
        if known != column.members:
            raise BinlogError("BINLOG-045", values={"column": column.name, "type": column.definition})


def _layout(column: Column, code: int, size: int, meta: bytes) -> Layout:
    if code not in WIRE[column.type] or column.compressed != (code in COMPRESSED):
        raise _Differs(f"the binlog has type code {code}")
    if code in _INTEGERS:
        name = _INTEGERS[code]
        return Layout("u" + name if column.unsigned else name, width=8)
    return _BY_CODE[code](column, code, size, meta)


def _plain(reader: str, width: int) -> Callable[[Column, int, int, bytes], Layout]:
    return lambda column, code, size, meta: Layout(reader, width=width)


def _decimal(column: Column, code: int, size: int, meta: bytes) -> Layout:
    precision, scale = meta
    if (precision, scale) != (column.precision, column.scale) or not 0 < precision <= 65 or scale > precision:
        raise _Differs(f"the binlog has decimal({precision},{scale})")
    return Layout("decimal", size=precision - scale, scale=scale)


def _old_temporal(column: Column, code: int, size: int, meta: bytes) -> Layout:
    """Return the layout of an old temporal type, whose number of digits only the structure has."""
    return Layout(_OLD_TEMPORALS[code] + ("_hires" if column.fsp else "_old"), scale=column.fsp)


def _temporal(column: Column, code: int, size: int, meta: bytes) -> Layout:
    if meta[0] != column.fsp or meta[0] > 6:
        raise _Differs(f"the binlog has {meta[0]} fraction digits")
    return Layout(_TEMPORALS[code], scale=meta[0])


def _bit(column: Column, code: int, size: int, meta: bytes) -> Layout:
    bits = 8 * meta[1] + meta[0]
    if bits != column.precision or meta[0] > 7 or not 0 < bits <= 64:
        raise _Differs(f"the binlog has bit({bits})")
    return Layout("fixed", size=(bits + 7) // 8, scale=meta[0])


def _members(column: Column, code: int, size: int, meta: bytes) -> Layout:
    size = size or meta[1]
    count = len(column.members)
    if not count:  # described by the binlog alone, which doesn't always name them
        return Layout("number", width=8, size=size)
    enum_size = 1 if count < 256 else 2
    set_size = (count + 7) // 8 if count <= 32 else 8
    needed = enum_size if code == ENUM else set_size
    if size != needed:
        raise _Differs(f"the binlog packs its members in {size} bytes, {count} of them need {needed}")
    return Layout("number", width=8, size=size)


def _string(column: Column, code: int, size: int, meta: bytes) -> Layout:
    """Return the layout of CHAR, BINARY, VARCHAR, VARBINARY: the length has two bytes where the column may pass 255."""
    if column.type in ADDRESSES:
        return _address(column, size)
    if code != STRING:
        size = int.from_bytes(meta, "little")
    binary = column.type in ("binary", "varbinary")
    own = column.length + column.compressed  # a compressed value has its header byte
    if size < own or (binary and size != own):
        raise _Differs(f"the binlog has {size} bytes for it")
    prefix = 2 if size > 255 else 1
    if column.type == "binary":
        return Layout("padded", size=prefix, scale=size)
    return _text(column, prefix)


def _address(column: Column, size: int) -> Layout:
    if size != ADDRESSES[column.type]:
        raise _Differs(f"the binlog has {size} bytes for it")
    return Layout(column.type, size=size)


def _blob(column: Column, code: int, size: int, meta: bytes) -> Layout:
    longest = {"tiny": 1, "medium": 3, "long": 4}
    expected = next((size for name, size in longest.items() if column.type.startswith(name)), 2)
    if code in (GEOMETRY, JSON, VECTOR):
        expected = 4
    if meta[0] != expected:
        raise _Differs(f"the binlog has a length of {meta[0]} bytes before it")
    return Layout("json") if code == JSON else _text(column, meta[0])


def _text(column: Column, prefix: int) -> Layout:
    if column.type not in CHARACTERS or column.compressed or column.charset in (None, "binary"):
        return Layout("bytes", size=prefix)
    reader, table = charsets.decoding(column.charset)
    return Layout(reader, size=prefix, table=table)


_BY_CODE: dict[int, Callable[[Column, int, int, bytes], Layout]] = {
    FLOAT: _plain("float", 4),
    DOUBLE: _plain("double", 8),
    YEAR: _plain("year", 8),
    NEWDECIMAL: _decimal,
    DATE: _plain("date", 0),
    NEWDATE: _plain("date", 0),
    **dict.fromkeys(_OLD_TEMPORALS, _old_temporal),
    **dict.fromkeys(_TEMPORALS, _temporal),
    BIT: _bit,
    ENUM: _members,
    SET: _members,
    STRING: _string,
    VARCHAR: _string,
    VAR_STRING: _string,
    COMPRESSED_VARCHAR: _string,
    BLOB: _blob,
    COMPRESSED_BLOB: _blob,
    GEOMETRY: _blob,
    JSON: _blob,
    VECTOR: _blob,
}
