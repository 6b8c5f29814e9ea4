"""The TABLE_MAP event: what the binlog itself says of a table.

Body behind the table id (6 bytes)::

    flags 2 · schema: length 1, name, 0 · table: length 1, name, 0 · column count (packed integer)
    · a type code per column · metadata: length (packed), bytes per type · nullable bitmap · optional fields

Optional fields (type 1, length packed, value) are there when `binlog_row_metadata` asks for them.
"""

from __future__ import annotations

from dataclasses import dataclass

from unshard.model.table import TableName

_TWO_BYTES = frozenset({15, 16, 246, 247, 248, 253, 254})  # VARCHAR BIT NEWDECIMAL ENUM SET VAR_STRING STRING
_ONE_BYTE = frozenset({4, 5, 17, 18, 19, 140, 242, 245, 252, 255})  # FLOAT DOUBLE times BLOB-like GEOMETRY
_COMPRESSED_VARCHAR = 141
_NUMERIC = frozenset({1, 2, 3, 4, 5, 8, 9, 13, 246})
_SIGNEDNESS, _NAMES = 1, 4


class MalformedTableMap(ValueError):
    """A TABLE_MAP that ends early or contradicts itself."""


@dataclass(frozen=True, slots=True)
class TableMap:
    """Types and metadata by column, as they stand in the event; `unsigned` and `names` None where not logged.

    `unsigned` has a value for each numeric column and None for the others.
    """

    name: TableName
    types: tuple[int, ...]
    metadata: tuple[bytes, ...]
    unsigned: tuple[bool | None, ...] | None = None
    names: tuple[str, ...] | None = None


def parse_table_map(body: bytes) -> TableMap:
    """Read a body without its table id. Raises MalformedTableMap."""
    reader = _Reader(body)
    reader.take(2)
    schema, table = reader.name(), reader.name()
    types = tuple(reader.take(reader.packed()))
    fields = _Reader(reader.take(reader.packed()))
    metadata = tuple(fields.take(_metadata_size(code)) for code in types)
    if not types or fields.left():
        raise MalformedTableMap("the metadata does not fit the column types")
    reader.take((len(types) + 7) // 8)
    unsigned: tuple[bool | None, ...] | None = None
    names: tuple[str, ...] | None = None
    while reader.left():
        kind = reader.take(1)[0]
        value = reader.take(reader.packed())
        if kind == _SIGNEDNESS:
            unsigned = _signedness(value, types)
        elif kind == _NAMES:
            names = _names(value, len(types))
    return TableMap(TableName(schema, table), types, metadata, unsigned, names)


def _metadata_size(code: int) -> int:
    if code in _TWO_BYTES or code == _COMPRESSED_VARCHAR:
        return 2
    return 1 if code in _ONE_BYTE else 0


def _signedness(value: bytes, types: tuple[int, ...]) -> tuple[bool | None, ...]:
    """One bit per numeric column, the highest bit of the first byte first."""
    bits = (bool(byte & (0x80 >> bit)) for byte in value for bit in range(8))
    try:
        return tuple(next(bits) if code in _NUMERIC else None for code in types)
    except (StopIteration, RuntimeError):
        raise MalformedTableMap("the signedness field is too short") from None


def _names(value: bytes, count: int) -> tuple[str, ...]:
    reader = _Reader(value)
    names = []
    while reader.left():
        names.append(reader.text(reader.packed()))
    if len(names) != count:
        raise MalformedTableMap(f"{len(names)} column names for {count} columns")
    return tuple(names)


class _Reader:
    """Reads forward; whatever goes beyond the end raises MalformedTableMap."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def left(self) -> int:
        return len(self._data) - self._at

    def take(self, size: int) -> bytes:
        if size > self.left():
            raise MalformedTableMap("the event ends early")
        self._at += size
        return self._data[self._at - size : self._at]

    def packed(self) -> int:
        """A packed integer: one byte up to 250, else 252, 253 or 254 and two, three or eight bytes."""
        first = self.take(1)[0]
        if first <= 250:
            return first
        sizes = {252: 2, 253: 3, 254: 8}
        if first not in sizes:
            raise MalformedTableMap("251 and 255 begin no packed integer")
        return int.from_bytes(self.take(sizes[first]), "little")

    def name(self) -> str:
        text = self.text(self.take(1)[0])
        if self.take(1) != b"\0":
            raise MalformedTableMap("a name has no end")
        return text

    def text(self, size: int) -> str:
        try:
            return self.take(size).decode()
        except UnicodeDecodeError:
            raise MalformedTableMap("a name is not UTF-8") from None
