"""Runs statements that write the error value of an ENUM: index 0, an empty text that is not one of its members.

Strict mode refuses such a statement in whatever form it writes the value. So the statement is run without strict mode,
and its result counts only if the server warns of nothing else.

TiDB does not say which column of an UPDATE a warning is about. There the statement is run twice. The first run is in
strict mode, without the error values, and is rolled back. It shows that all other values are accepted unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

from unshard.model.table import quote_name
from unshard.mysql.target_session import tidb_version
from unshard.target.writer import CUT, ServerAnswer, query

_COLUMN = re.compile(r"for column (?:`[^`]*`\.`[^`]*`\.)?[`']([^`']+)[`']")
_CHANGED = frozenset({1048, 1264, CUT, 1366, 1406})
"""NULL turned into a default, out of range, cut, wrong, too long."""
_CUT_BY_TIDB = (1292, "Truncated incorrect DECIMAL value")
"""TiDB's warning about digits that an UPDATE cuts. The same number is also that of harmless warnings."""

_DEPRECATED = 1287
"""MySQL's warning that VALUES(column) is deprecated."""

_UNNAMED = "for column '%s' at row %d"
"""TiDB's warning about an ENUM's value in an UPDATE: its text with nothing filled in."""

_ASSIGNED = re.compile(rb",`((?:[^`]|``)+)`=(?:''|0)(?=,| WHERE )")
"""A column of an UPDATE that is assigned an empty text or the number 0.

Inside a text each quotation mark has a backslash, and in a condition no column has a comma before it, so the pattern
matches neither.
"""


def changed_value(connection: Any, count: int) -> str:
    """Return the warning about a value that the last statement stored changed although the session is strict.

    `count` warnings is what the server's answer told (`ServerAnswer`). Such a change is a cut of digits or blanks. ""
    where there is none. Where the server lists too few of its warnings to tell, the returned text says so.
    """
    with connection.cursor() as cursor:
        cursor.execute("SHOW WARNINGS")
        listed = cursor.fetchall()
    changed = (f"{number}: {text}" for _, number, text in listed if _tells_change(int(number), text))
    untold = f"{count} warnings, and the server lists {len(listed)}: raise max_error_count on the target"
    return next(changed, untold if len(listed) < count else "")


def _tells_change(number: int, text: str) -> bool:
    other, begin = _CUT_BY_TIDB
    return number in _CHANGED or (number == other and text.startswith(begin))


def with_numbers(sql: bytes, zeros: Collection[tuple[str, str]]) -> bytes:
    """Return UPDATEs with the number 0 for the texts `zeros` of columns, for ENUMs that have an empty member.

    TiDB first cuts such a text to the length of the longest member, and may then take it for another member. Inside a
    text each quotation mark has a backslash, so nothing in a value matches.
    """
    for name, zero in zeros:
        text = f"{quote_name(name)}=".encode()
        found = rb"(?:(?<= SET )|(?<=,))" + re.escape(text) + f"'{zero}'(?=,| WHERE )".encode()
        sql = re.sub(found, (text + b"0").replace(b"\\", rb"\\"), sql)
    return sql


def query_with_error_values(connection: Any, sql: bytes, enums: Collection[str]) -> ServerAnswer | None:
    """Run one statement in which an empty text for one of the columns `enums` means their error value.

    Returns as `query`, or None where the server would change any other value: the caller rolls its transaction back.
    Called within a transaction. Raises MySQLdb.Error where TiDB refuses another value of an UPDATE.
    """
    allowed = {name.lower() for name in enums}
    unnamed = sql.startswith(b"UPDATE ") and tidb_version(connection.get_server_info()) is not None
    if unnamed:
        _try_the_others(connection, sql, allowed)
    with connection.cursor() as cursor:
        cursor.execute("SELECT @@sql_mode")
        ((modes,),) = cursor.fetchall()
        lenient = ",".join(
            mode for mode in modes.split(",") if not mode.startswith("STRICT_") and mode != "TRADITIONAL"
        )
        setting = "SET SESSION sql_mode = %s"
        cursor.execute(setting, (lenient,))
        try:
            answer = query(connection, sql)
            count = connection.warning_count()
            cursor.execute("SHOW WARNINGS")
            warnings = cursor.fetchall()
        finally:
            cursor.execute(setting, (modes,))
    changed = [(number, text) for _, number, text in warnings if number != _DEPRECATED]
    fine = all(
        number == CUT and (_column(text) in allowed or (unnamed and _UNNAMED in text)) for number, text in changed
    )
    return answer if fine and len(warnings) == count else None


def _try_the_others(connection: Any, sql: bytes, enums: Collection[str]) -> None:
    """Run an UPDATE without the error values that it assigns, and roll it back. Raises MySQLdb.Error if refused."""

    def kept(found: re.Match[bytes]) -> bytes:
        name = found[1].replace(b"``", b"`").decode().lower()
        return b"" if name in enums else found[0]

    # a comma before the first assignment gives all of them one form
    start, given, rest = sql.partition(b" SET ")
    others = _ASSIGNED.sub(kept, b"," + rest)
    if not others.startswith(b","):
        return  # it assigns error values only
    savepoint = "unshard_error_values"
    with connection.cursor() as cursor:
        cursor.execute(f"SAVEPOINT {savepoint}")
        query(connection, start + given + others[1:])
        cursor.execute(f"ROLLBACK TO SAVEPOINT {savepoint}")
        cursor.execute(f"RELEASE SAVEPOINT {savepoint}")


def _column(text: str) -> str:
    found = _COLUMN.search(text)
    return found[1].lower() if found else ""
