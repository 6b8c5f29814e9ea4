"""The time zone in which a statement runs on the target: it means the moments that it meant on the source.

A TIMESTAMP is a moment. A statement that brings it to another type, or a constant to it, does so by the session's time
zone, with the offset that the zone had at each moment.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from unshard.ddl.context import Context
from unshard.ddl.cursor import tokens_of
from unshard.errors import DdlError
from unshard.mysql.connection import rows
from unshard.mysql.tidb import is_tidb
from unshard.schema.lex import Token, TokenKind
from unshard.schema.zoned import CLOCK, is_utc
from unshard.source.system_zone import offset_text

_OFFSET = re.compile(r"[+-]\d{1,2}:\d\d")
_OF_ROWS = frozenset({"MODIFY", "CHANGE", "AS"})
"""Words without one of which an ALTER computes no value from another value of the row."""
_DATE = re.compile(r"['\"]?\d[\d:.T /-]{3,}['\"]?")
"""A constant that may be a date."""
_OF_EPOCH = frozenset({"UNIX_TIMESTAMP", "FROM_UNIXTIME"})
_CONVERTING = """
SELECT COUNT(*) FROM information_schema.COLUMNS
WHERE TABLE_NAME IN ({names}) AND GENERATION_EXPRESSION LIKE '%%convert_tz(%%'
"""
_STAMPS = """
SELECT COUNT(*) FROM information_schema.COLUMNS
WHERE TABLE_NAME IN ({names}) AND COLUMN_NAME IN ({names}) AND DATA_TYPE = 'timestamp'
"""


def session_zone(connection: Any, context: Context, statement: str) -> str:
    """Return the time zone for the session on the target.

    A server may not know the names of time zones. Then it is the offset that the zone had when the statement ran, if no
    other moment counts: it gives the value of NOW(). It is UTC on TiDB for a statement that depends on no zone, and for
    a table with generated columns that convert from UTC (`schema.zoned`), which a server computes anew as it copies the
    table. Raises DdlError DDL-009 where it isn't known which zone the statement had, DDL-043 where the target does not
    know it, DDL-056 where such a table needs it.
    """
    zone = context.time_zone or context.default_zone or "+00:00"
    if is_utc(zone) or (is_tidb(connection) and not depends_on_zone(tokens_of(statement, context))):
        return "+00:00"
    if not is_tidb(connection) and _converts_from_utc(connection, found := tokens_of(statement, context)):
        if {token.word for token in found} & (CLOCK | _OF_EPOCH) or _brings_other_moments(connection, found):
            raise DdlError("DDL-056", context.where, values={"statement": statement, "zone": zone})
        return "+00:00"
    if _OFFSET.fullmatch(zone):
        return zone
    values = {"statement": statement, "zone": zone}
    named = zone.upper() != "SYSTEM"
    if named and rows(connection, "SELECT CONVERT_TZ('2000-01-01', '+00:00', %s)", (zone,))[0][0] is not None:
        return zone
    offset = _offset(zone, context.timestamp) if named else "" if context.time_zone else "+00:00"
    if not offset or _brings_other_moments(connection, tokens_of(statement, context)):
        raise DdlError("DDL-043" if named else "DDL-009", context.where, values=values)
    return offset


def depends_on_zone(found: Sequence[Token]) -> bool:
    """Return whether the values that a statement makes may depend on the session's time zone. Pure.

    It has a constant that may be a date, a local time, or brings values to another type. Others run in UTC on TiDB:
    before 7.5, one that adds an index in another zone writes wrong entries for a TIMESTAMP.
    """
    return bool({token.word for token in found} & (_OF_ROWS | CLOCK | _OF_EPOCH)) or _has_date(found)


def _has_date(found: Sequence[Token]) -> bool:
    return any(_DATE.fullmatch(token.value) for token in found if token.kind in (TokenKind.STRING, TokenKind.WORD))


def _converts_from_utc(connection: Any, found: Sequence[Token]) -> bool:
    """Return whether a table that the statement may name has generated columns with CONVERT_TZ."""
    names = sorted({token.value for token in found if token.kind in (TokenKind.NAME, TokenKind.WORD)})
    marks = ", ".join(["%s"] * len(names))
    return bool(rows(connection, _CONVERTING.format(names=marks), names)[0][0])


def _brings_other_moments(connection: Any, found: Sequence[Token]) -> bool:
    """Return whether a statement may depend on the zone's offset at another moment than its own."""
    words = {token.word for token in found}
    dates = _has_date(found)
    of_rows = bool(words & _OF_ROWS) and "CREATE" not in words
    if not dates and not of_rows:
        return False
    if "TIMESTAMP" in words or (dates and "UNIX_TIMESTAMP" in words):
        return True
    names = list({token.value for token in found if token.kind in (TokenKind.NAME, TokenKind.WORD)})
    marks = ", ".join(["%s"] * len(names))
    return bool(rows(connection, _STAMPS.format(names=marks), (*names, *names))[0][0])


def _offset(zone: str, timestamp: float) -> str:
    """Return the offset of a zone at that moment; "" where it isn't known here, or has a fraction of a minute."""
    try:
        offset = datetime.fromtimestamp(timestamp, UTC).astimezone(ZoneInfo(zone)).utcoffset()
    except (ValueError, OSError, LookupError):
        return ""
    if offset is None or offset % timedelta(minutes=1):
        return ""
    return offset_text(round(offset.total_seconds()))
