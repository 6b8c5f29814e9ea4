"""Statements that write the error value of an ENUM: number 0, an empty text that is no member of it.

A strict session refuses them, whatever they name the value by. So such a statement is run in a session that is not
strict, and counts only where the server complains of nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

CUT = 1265
"""`Data truncated for column`: what a strict session refuses the error value with."""

_COLUMN = re.compile(r"for column (?:`[^`]*`\.`[^`]*`\.)?[`']([^`']+)[`']")
_DEPRECATED = 1287
"""MySQL's word on VALUES(column)."""

_MOST_WARNINGS = 65535


def query(connection: Any, sql: bytes) -> tuple[int, bytes]:
    """Run one text of one or more statements: the rows found by all, and the info text of the last (mysql_info)."""
    connection.query(sql)
    found = int(connection.affected_rows())
    while connection.next_result() == 0:
        found += int(connection.affected_rows())
    info = connection.info() or b""
    return found, info if isinstance(info, bytes) else info.encode()


def query_with_error_values(connection: Any, sql: bytes, enums: Collection[str]) -> tuple[int, bytes] | None:
    """`query` of one statement in which an empty text for one of the columns `enums` is their error value.

    None where the server would change any other value: the caller rolls its transaction back. Called within one.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT @@sql_mode, @@max_error_count")
        ((modes, most),) = cursor.fetchall()
        lenient = ",".join(
            mode for mode in modes.split(",") if not mode.startswith("STRICT_") and mode != "TRADITIONAL"
        )
        setting = "SET SESSION sql_mode = %s, max_error_count = %s"
        cursor.execute(setting, (lenient, _MOST_WARNINGS))
        try:
            answer = query(connection, sql)
            count = connection.warning_count()
            cursor.execute("SHOW WARNINGS")
            warnings = cursor.fetchall()
        finally:
            cursor.execute(setting, (modes, most))
    allowed = {name.lower() for name in enums}
    changed = [(number, text) for _, number, text in warnings if number != _DEPRECATED]
    fine = all(number == CUT and _column(text) in allowed for number, text in changed)
    return answer if fine and len(warnings) == count else None


def _column(text: str) -> str:
    found = _COLUMN.search(text)
    return found[1].lower() if found else ""
