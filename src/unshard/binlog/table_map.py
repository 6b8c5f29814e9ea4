"""The TABLE_MAP event, the binlog's own description of a table.

Body after the table id (6 bytes)::

    flags 2 · schema: length 1, name, 0 · table: length 1, name, 0 · column count (packed integer)
    · a type code per column · metadata: length (packed), bytes per type · nullable bitmap · optional fields

`table_metadata.py` reads the optional fields.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

from unshard.binlog.table_metadata import MalformedTableMap, MetadataReader, Optional, read_optional
from unshard.model.table import TableName

_TWO_BYTES = frozenset({15, 16, 246, 247, 248, 253, 254})  # VARCHAR BIT NEWDECIMAL ENUM SET VAR_STRING STRING
_ONE_BYTE = frozenset({4, 5, 17, 18, 19, 140, 242, 245, 252, 255})  # FLOAT DOUBLE times BLOB-like GEOMETRY
_COMPRESSED_VARCHAR = 141
_STRING = 254
_REMEMBERED = 4096


@dataclass(frozen=True, slots=True)
class TableMap:
    """A TABLE_MAP event: the types, metadata and nullability by column, as logged, and the optional fields."""

    name: TableName
    types: tuple[int, ...]
    metadata: tuple[bytes, ...]
    nullable: tuple[bool, ...] = ()
    optional: Optional = field(default_factory=Optional)


@lru_cache(maxsize=_REMEMBERED)
def parse_table_map(body: bytes, *, mariadb: bool | None = None) -> TableMap:
    """Read a body without its table id. Raises MalformedTableMap.

    `mariadb` is whether MariaDB wrote it, which only the collations depend on; with None they are left out.

    A table's body is the same batch after batch: with many tables, reading it again would cost more than their rows.
    """
    reader = MetadataReader(body)
    reader.take(2)
    schema, table = reader.name(), reader.name()
    types = tuple(reader.take(reader.packed()))
    fields = MetadataReader(reader.take(reader.packed()))
    metadata = tuple(fields.take(_metadata_size(code)) for code in types)
    if not types or fields.left():
        raise MalformedTableMap("the metadata does not fit the column types")
    bits = reader.take((len(types) + 7) // 8)
    nullable = tuple(bool(bits[number >> 3] >> (number & 7) & 1) for number in range(len(types)))
    real = tuple(real_type(code, meta)[0] for code, meta in zip(types, metadata, strict=True))
    return TableMap(TableName(schema, table), types, metadata, nullable, read_optional(reader, real, mariadb=mariadb))


def real_type(code: int, meta: bytes) -> tuple[int, int]:
    """Return the real type and length of STRING, which may be an ENUM or SET; other types unchanged, with 0.

    STRING's metadata is the real type and the length; a length above 255 has its two high bits turned into bits 4
    and 5 of the type, which are set in every real type.
    """
    if code != _STRING:
        return code, 0
    if meta[0] & 0x30 != 0x30:
        return meta[0] | 0x30, meta[1] | ((meta[0] & 0x30) ^ 0x30) << 4
    return meta[0], meta[1]


def _metadata_size(code: int) -> int:
    if code in _TWO_BYTES or code == _COMPRESSED_VARCHAR:
        return 2
    return 1 if code in _ONE_BYTE else 0
