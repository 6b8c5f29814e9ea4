"""Row events made by hand: a table map and images, byte by byte."""

from __future__ import annotations

from collections.abc import Sequence
from struct import pack

from made_events import File

from unshard.binlog.rows import Decoded, RoutedStatement, decode_range
from unshard.errors import Where
from unshard.model.table import Column, Table, TableName

NAME = TableName("s", "t")
WHERE = Where(source="s1", file="mysql-bin.000001")


def int_column(name: str = "v") -> Column:
    return Column(name, "int", "int(11)")


def table_of(*columns: Column, name: TableName = NAME) -> Table:
    return Table(name, columns)


def packed(number: int) -> bytes:
    return bytes([number]) if number < 251 else b"\xfc" + pack("<H", number)


def map_table(
    file: File,
    types: Sequence[int],
    metadata: bytes = b"",
    *,
    name: TableName = NAME,
    number: int = 1,
    optional: bytes = b"",
) -> int:
    schema, table = name.schema.encode(), name.table.encode()
    names = bytes([len(schema)]) + schema + b"\0" + bytes([len(table)]) + table + b"\0"
    nullable = b"\xff" * ((len(types) + 7) // 8)
    columns = packed(len(types)) + bytes(types) + packed(len(metadata)) + metadata + nullable
    return file.event(19, pack("<IHH", number, 0, 1) + names + columns + optional)


def rows(
    file: File,
    images: bytes,
    *,
    columns: int = 1,
    code: int = 23,
    number: int = 1,
    extra: bytes = b"",
    last: bool = True,
) -> int:
    """A row event of full images, the `last` of its statement.

    Codes from 30 on (version 2) have extra data behind its length, itself counted.
    """
    present = b"\xff" * ((columns + 7) // 8)
    head = pack("<IHH", number, 0, last)
    if code >= 30:
        head += pack("<H", 2 + len(extra)) + extra
    return file.event(code, head + packed(columns) + present * (2 if code in (24, 31) else 1) + images)


def decode(file: File, wanted: RoutedStatement, *, seq_base: int = 0) -> Decoded:
    """Everything behind the file's FORMAT_DESCRIPTION event."""
    data = bytes(file.data)
    start = 4 + int.from_bytes(data[13:17], "little")
    return decode_range(data, start, len(data), checksum=file.checksum, wanted=wanted, seq_base=seq_base, where=WHERE)


def value(column: Column, code: int, metadata: bytes, image: bytes) -> object:
    """The one value of a one-column table."""
    file = File()
    map_table(file, [code], metadata)
    rows(file, b"\x00" + image)  # no NULL, then the value
    table = table_of(column)
    ((_, batch),) = decode(file, lambda table_map, offset: table)
    return batch.column(2).to_pylist()[0]
