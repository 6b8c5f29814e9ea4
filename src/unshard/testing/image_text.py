"""A value that a server answers a query with, as `mariadb-binlog -v` writes it in the image of a row."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from MySQLdb.constants import FIELD_TYPE, FLAG

_BITS = {FIELD_TYPE.TINY: 8, FIELD_TYPE.SHORT: 16, FIELD_TYPE.INT24: 24, FIELD_TYPE.LONG: 32, FIELD_TYPE.LONGLONG: 64}


def image_text(value: bytes | None, kind: int, flags: int, length: int) -> str:
    """`kind`, `flags` and `length` as the server tells them of the result's column, in a session whose time is UTC.

    Raises LookupError for a kind whose images are not told by the value alone: ENUM, SET, JSON, geometry.
    """
    if value is None:
        return "NULL"
    if kind in _BITS:
        return _integer(int(value), _BITS[kind], bool(flags & FLAG.UNSIGNED))
    if kind == FIELD_TYPE.BIT:
        return f"b'{int.from_bytes(value, 'big'):0{length}b}'"
    if kind not in _TEXTS or flags & (FLAG.ENUM | FLAG.SET):
        raise LookupError(f"values of type {kind} are not compared with images of a binlog")
    if kind == FIELD_TYPE.STRING and flags & FLAG.BINARY:
        value = value.rstrip(b"\0")  # a log leaves out what fills a BINARY up
    return _TEXTS[kind](value)


def _integer(value: int, bits: int, unsigned: bool) -> str:
    """A binlog doesn't tell whether a column is unsigned: both readings are shown of what they differ in."""
    if unsigned and value >> (bits - 1):
        return f"{value - (1 << bits)} ({value})"
    return f"{value} ({value + (1 << bits)})" if value < 0 else str(value)


def _quoted(value: bytes) -> str:
    shown = b"".join(b"\\x%02x" % byte if byte < 0x20 else bytes((byte,)) for byte in value)
    return f"'{shown.decode('utf-8', 'surrogateescape')}'"


def _plain(value: bytes) -> str:
    return value.decode()


def _date(value: bytes) -> str:
    return f"'{value.decode().replace('-', ':')}'"


def _timestamp(value: bytes) -> str:
    whole, dot, fraction = value.decode().partition(".")
    moment = datetime.strptime(whole, "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC)
    return f"{int(moment.timestamp())}{dot}{fraction}"


def _float(value: bytes) -> str:
    (single,) = struct.unpack("f", struct.pack("f", float(value)))
    return f"{single:<-20g}"


def _double(value: bytes) -> str:
    return f"{float(value):.20g}"


_TEXTS: Mapping[int, Callable[[bytes], str]] = {
    FIELD_TYPE.YEAR: _plain,
    FIELD_TYPE.NEWDECIMAL: _plain,
    FIELD_TYPE.FLOAT: _float,
    FIELD_TYPE.DOUBLE: _double,
    FIELD_TYPE.DATE: _date,
    FIELD_TYPE.TIME: _quoted,
    FIELD_TYPE.DATETIME: _quoted,
    FIELD_TYPE.TIMESTAMP: _timestamp,
    **dict.fromkeys(
        (
            FIELD_TYPE.VARCHAR,
            FIELD_TYPE.VAR_STRING,
            FIELD_TYPE.STRING,
            FIELD_TYPE.TINY_BLOB,
            FIELD_TYPE.BLOB,
            FIELD_TYPE.MEDIUM_BLOB,
            FIELD_TYPE.LONG_BLOB,
        ),
        _quoted,
    ),
}
