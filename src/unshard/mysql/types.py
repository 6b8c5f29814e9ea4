"""Column types and the Arrow types of their values, which are the same for a dump and for the binlog."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from unshard.errors import BinlogError
from unshard.model.table import Column
from unshard.mysql import charsets

INTEGERS = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint"})
CHARACTERS = frozenset({"char", "varchar", "tinytext", "text", "mediumtext", "longtext"})
BYTES = frozenset({"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob", "bit", "vector"})
MEMBERS = frozenset({"enum", "set"})
TEMPORALS = frozenset({"date", "time", "datetime", "timestamp"})
ADDRESSES = {"uuid": 16, "inet6": 16, "inet4": 4}
"""MariaDB's types with a fixed number of bytes."""

GEOMETRIES = frozenset(
    {
        "geometry",
        "point",
        "linestring",
        "polygon",
        "multipoint",
        "multilinestring",
        "multipolygon",
        "geometrycollection",
        "geomcollection",
    }
)


def zero_text(column: Column) -> str:
    """Return the text for the number 0 of an ENUM, its error value: empty, as a server shows it.

    If the ENUM has an empty member, it is a run of zeros that is no member, which the server reads as the number.
    """
    return next(text for text in ("", "0", "00", "000", "0000", "00000") if text not in column.members)


def set_text(column: Column, bits: int) -> str:
    """Return the text of a SET's number, whose bit 0 is the first member; every server reads it as this number.

    An empty member makes a difference in its place only: alone it is a comma, because an empty text is the number 0.
    """
    members = [member for bit, member in enumerate(column.members) if bits >> bit & 1]
    return "," if members == [""] else ",".join(members)


def read_by_number(column: Column) -> bool:
    """Return whether a column is a SET with an empty member, which the text that a server shows may lack."""
    return column.type == "set" and "" in column.members


def as_written(column: Column, values: pa.Array) -> pa.Array:
    """Return values in the form in which literals are made of them: those of a YEAR(2) as text of four digits.

    There number 0 is the year 2000, and only `'0000'` is the year zero.
    """
    return pc.utf8_lpad(values.cast(pa.string()), 4, "0") if column.definition == "year(2)" else values


def arrow_type(column: Column) -> pa.DataType:
    """Return the Arrow type of a column's values.

    Integers are 64 bits wide. DECIMAL, temporal values (TIMESTAMP in UTC), addresses and JSON are the server's own
    text. Text is UTF-8. VECTOR is its bytes. ENUM and SET are the members' text (`zero_text`), or their number if the
    members aren't known. Raises BinlogError BINLOG-020 for a type, BINLOG-027 for an unknown charset.
    """
    kind = column.type
    if kind in MEMBERS and not column.members:
        return pa.uint64()
    if kind in INTEGERS:
        return pa.uint64() if column.unsigned else pa.int64()
    if kind == "year":
        return pa.int64()
    if kind == "float":
        return pa.float32()
    if kind == "double":
        return pa.float64()
    if kind in ("decimal", "json") or kind in TEMPORALS or kind in MEMBERS or kind in ADDRESSES:
        return pa.string()
    if kind in BYTES or kind in GEOMETRIES or (kind in CHARACTERS and column.charset == "binary"):
        return pa.binary()
    if kind not in CHARACTERS:
        raise BinlogError("BINLOG-020", values={"column": column.name, "type": column.definition})
    if column.charset is None or not charsets.known(column.charset):
        raise BinlogError("BINLOG-027", values={"column": column.name, "charset": column.charset})
    return pa.string()
