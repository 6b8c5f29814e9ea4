"""The body of a QUERY event."""

from __future__ import annotations

import re
from dataclasses import dataclass
from struct import error as TooShort
from struct import unpack_from

from unshard.mysql.charsets import PLAIN, statement_text
from unshard.mysql.collations import charset_of

_FIXED = 13
_UTF8MB4, _BINARY = 45, 63  # collation ids
_NO_FOREIGN_KEY_CHECKS = 1 << 26
_RELAXED_UNIQUE_CHECKS = 1 << 27
_NOT_AUTOCOMMIT = 1 << 19
_MANY_SCHEMAS = 254
_ALTER_NUMBERED = 4 | 8

# Bytes of the status variables whose length is fixed, by code.
_FLAGS2, _SQL_MODE, _AUTO_INCREMENT, _CHARSET, _TIME_ZONE, _CHARSET_DATABASE, _MICROSECONDS = 0, 1, 3, 4, 5, 8, 13
_EXPLICIT_DEFAULTS, _DEFAULT_COLLATION, _HRNOW = 16, 18, 128
_LENGTHS = {
    _FLAGS2: 4, _SQL_MODE: 8, _AUTO_INCREMENT: 4, _CHARSET: 6, 7: 2, _CHARSET_DATABASE: 2, 9: 8, 10: 4,
    _MICROSECONDS: 3, _EXPLICIT_DEFAULTS: 1, 17: 8, _DEFAULT_COLLATION: 2, 19: 1, 20: 1, 21: 1, _HRNOW: 3, 129: 8,
}  # fmt: skip
_CATALOG, _CATALOG_NZ, _INVOKER, _SCHEMAS, _GTID_FLAGS, _COLLATIONS, _PADDING = 2, 6, 11, 12, 130, 131, 255


class Damaged(ValueError):
    """An event body that can't be read; the text says what is wrong. `index.py` turns it into a BinlogError."""


@dataclass(frozen=True, slots=True)
class QueryEvent:
    """The body of a QUERY event.

    `sql_mode` is a bit mask with the server's numbers. The charset fields are collation ids. These are None where the
    server doesn't log them: `database_collation`, `utf8mb4_collation` (MySQL 8's default collation of utf8mb4),
    `charset_collations` (those that MariaDB's character_set_collations names) and `explicit_defaults` (MySQL's
    explicit_defaults_for_timestamp). `time_zone` is None where the statement doesn't depend on it. `error_code` is the
    error with which the statement failed on the source after it had done part of its work. `auto_increment` has the
    increment and the offset of the AUTO_INCREMENT values that the statement generates.
    """

    schema: str
    sql: str
    error_code: int = 0
    flags2: int = 0
    sql_mode: int = 0
    client_charset: int = _UTF8MB4
    connection_collation: int = _UTF8MB4
    server_collation: int = _UTF8MB4
    database_collation: int | None = None
    utf8mb4_collation: int | None = None
    charset_collations: tuple[int, ...] | None = None
    explicit_defaults: bool | None = None
    time_zone: str | None = None
    microseconds: int | None = None
    auto_increment: tuple[int, int] = (1, 1)

    @property
    def foreign_key_checks(self) -> bool:
        """True if the statement's session checked foreign keys."""
        return not self.flags2 & _NO_FOREIGN_KEY_CHECKS

    @property
    def unique_checks(self) -> bool:
        """True if the statement's session checked secondary unique keys."""
        return not self.flags2 & _RELAXED_UNIQUE_CHECKS

    @property
    def autocommit(self) -> bool:
        """True if the statement's session committed by itself."""
        return not self.flags2 & _NOT_AUTOCOMMIT


def read_query(body: bytes) -> QueryEvent:
    """Return the query in `body`: the event without its header and checksum. Raises Damaged."""
    try:
        _, _, schema_length, error_code, status_length = unpack_from("<IIBHH", body)
    except TooShort as error:
        raise Damaged(f"{len(body)} bytes are too few for a QUERY") from error
    schema_at = _FIXED + status_length
    sql_at = schema_at + schema_length + 1
    if sql_at > len(body):
        raise Damaged(f"its schema and status variables need {sql_at} bytes, {len(body)} are there")
    status = _status(body[_FIXED:schema_at])
    client, connection, server = _charsets(status.get(_CHARSET))
    return QueryEvent(
        schema=_utf8(body[schema_at : sql_at - 1], "schema"),
        sql=_statement(body[sql_at:], client),
        error_code=error_code,
        flags2=_number(status.get(_FLAGS2)) or 0,
        sql_mode=_number(status.get(_SQL_MODE)) or 0,
        client_charset=client,
        connection_collation=connection,
        server_collation=server,
        database_collation=_number(status.get(_CHARSET_DATABASE)),
        utf8mb4_collation=_number(status.get(_DEFAULT_COLLATION)),
        charset_collations=_second_of_pairs(status[_COLLATIONS]) if _COLLATIONS in status else None,
        explicit_defaults=bool(status[_EXPLICIT_DEFAULTS][0]) if _EXPLICIT_DEFAULTS in status else None,
        time_zone=_utf8(status[_TIME_ZONE], "time zone") if status.get(_TIME_ZONE) else None,
        microseconds=_number(status.get(_MICROSECONDS, status.get(_HRNOW))),
        auto_increment=_pair(status.get(_AUTO_INCREMENT)),
    )


def _pair(value: bytes | None) -> tuple[int, int]:
    first, second = (1, 1) if value is None else unpack_from("<HH", value)
    return first, second


def _status(block: bytes) -> dict[int, bytes]:
    """Return the status variables by code. Each has its own length, so an unknown code can't be stepped over."""
    found: dict[int, bytes] = {}
    at = 0
    while at < len(block):
        code = block[at]
        at += 1
        if code == _PADDING:
            break
        length = _length(code, block, at)
        if at + length > len(block):
            raise Damaged(f"status variable {code} goes beyond the {len(block)} bytes of its block")
        value = block[at : at + length]
        found[code] = value[1:] if code == _TIME_ZONE else value
        at += length
    return found


def _length(code: int, block: bytes, at: int) -> int:
    """Return the size of the value of status variable `code` at `at`, its own length fields included."""
    if code in _LENGTHS:
        return _LENGTHS[code]
    if code not in (_TIME_ZONE, _CATALOG, _CATALOG_NZ, _INVOKER, _SCHEMAS, _GTID_FLAGS, _COLLATIONS):
        raise Damaged(f"status variable {code} is unknown, so the session of the statement can't be told")
    if at >= len(block):
        raise Damaged(f"status variable {code} has no value")
    first = block[at]
    if code == _CATALOG:
        return first + 2
    if code == _INVOKER:
        host_at = at + 1 + first
        if host_at >= len(block):
            raise Damaged("the invoker has no host")
        return 1 + first + 1 + block[host_at]
    if code == _SCHEMAS:
        return 1 if first == _MANY_SCHEMAS else _strings(block, at + 1, first) - at
    if code == _GTID_FLAGS:
        return 9 if first & _ALTER_NUMBERED else 1
    if code == _COLLATIONS:
        return 1 + 4 * first
    return 1 + first


def _strings(block: bytes, at: int, count: int) -> int:
    """Return the offset after `count` NUL-terminated strings."""
    for _ in range(count):
        end = block.find(b"\0", at)
        if end < 0:
            raise Damaged("a schema name in the status variables has no end")
        at = end + 1
    return at


def _second_of_pairs(value: bytes) -> tuple[int, ...]:
    """Return the second collation of each pair (a collation for a charset, that charset's default).

    The pairs follow their length.
    """
    return tuple(unpack_from("<H", value, 1 + 4 * pair + 2)[0] for pair in range(value[0]))


def _number(value: bytes | None) -> int | None:
    return None if value is None else int.from_bytes(value, "little")


def _charsets(value: bytes | None) -> tuple[int, int, int]:
    if value is None:
        return _UTF8MB4, _UTF8MB4, _UTF8MB4
    client, connection, server = unpack_from("<HHH", value)
    return client, connection, server


def _statement(value: bytes, collation: int) -> str:
    """Return the statement as the server reads it: its bytes are in the client's charset."""
    if collation == _BINARY:
        return _utf8(value, "statement")
    try:
        charset = charset_of(collation)
        text = statement_text(value, charset)
    except KeyError:
        raise Damaged(f"its client's collation id {collation} is unknown, so its text can't be told") from None
    except UnicodeDecodeError as error:
        raise Damaged(f"the statement is not {charset} text: {error}") from None
    if charset not in PLAIN and _INTRODUCED.search(text):
        raise Damaged(f"it names a charset before a literal, whose bytes are lost when {charset} becomes utf8mb4")
    return text


_INTRODUCED = re.compile(r"""(?<![\w`$])_[a-z]\w*\s*(?:'[^']*[^\x00-\x7f']|"[^"]*[^\x00-\x7f"])""", re.IGNORECASE)
"""A literal like _latin1'é'. The server takes its bytes as they stand, whatever the client's charset is."""


def _utf8(value: bytes, what: str) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError as error:
        raise Damaged(f"the {what} is not utf-8 text: {error}") from error
