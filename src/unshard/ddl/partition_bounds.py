"""Bounds of partitions that a statement computes, such as TO_DAYS('2024-02-01'), as the values that a server keeps.

For a TiDB target, where structures are computed without running the statement. The target computes the values in the
session of the statement: those of UNIX_TIMESTAMP depend on its time zone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import MySQLdb

from unshard.ddl.cursor import tokens_of
from unshard.ddl.parse import classify_ddl
from unshard.ddl.sandbox import connection_cursor
from unshard.ddl.session import event_session
from unshard.ddl.statement import Ddl, StatementKind
from unshard.model.table import quote_text
from unshard.mysql.failures import is_transient
from unshard.schema.lex import Token, TokenKind

_KINDS = (StatementKind.CREATE_TABLE, StatementKind.ALTER_TABLE)


def with_computed_bounds(connection: Any, ddl: Ddl) -> Ddl:
    """Return the statement with the values of its bounds in place of expressions; unchanged where the target can't.

    Raises MySQLdb.Error for a lost connection; as `event_session`.
    """
    found = list(_expressions(tokens_of(ddl.text, ddl.context))) if ddl.kind in _KINDS else []
    if not found:
        return ddl
    asked = ", ".join(ddl.text[start:end] for start, end in found)
    try:
        with (
            event_session(connection, ddl.context, ddl.kind, ddl.text),
            connection_cursor(connection) as cursor,
        ):
            cursor.execute(f"SELECT {asked}")
            (values,) = cursor.fetchall()
    except MySQLdb.Error as error:
        if is_transient(error):
            raise
        return ddl
    text = ddl.text
    for (start, end), value in reversed(list(zip(found, values, strict=True))):
        text = f"{text[:start]}{_literal(value)}{text[end:]}"
    return classify_ddl(text, ddl.context)


def _literal(value: Any) -> str:
    if value is None:
        return "NULL"
    return str(value) if isinstance(value, int) else quote_text(str(value))


def _expressions(found: Sequence[Token]) -> Iterator[tuple[int, int]]:
    """Yield where the text has a bound that is an expression."""
    for at in range(len(found) - 3):
        words = [token.word for token in found[at : at + 3]]
        opened = at + (3 if words == ["VALUES", "LESS", "THAN"] else 2)
        if words[:1] == ["VALUES"] and (words[1] == "IN" or opened == at + 3) and found[opened].is_symbol("("):
            yield from _of_list(found, opened)


def _of_list(found: Sequence[Token], opened: int) -> Iterator[tuple[int, int]]:
    depth, start, commas = 0, opened + 1, 0
    for at in range(opened, len(found)):
        depth += found[at].is_symbol("(") - found[at].is_symbol(")")
        if depth == 0 or (depth == 1 and found[at].is_symbol(",")):
            item = found[start:at]
            if commas and item[0].is_symbol("("):
                yield from _of_list(found, start)
            elif item and not _is_plain(item):
                yield item[0].start, item[-1].end
            start, commas = at + 1, 0
        commas += depth == 2 and found[at].is_symbol(",") and found[start].is_symbol("(")
        if depth == 0:
            return


def _is_plain(item: Sequence[Token]) -> bool:
    """Return whether the bound is a number, a text, NULL or MAXVALUE."""
    if len(item) == 2 and item[0].is_symbol("-"):
        item = item[1:]
    return len(item) == 1 and item[0].kind in (TokenKind.WORD, TokenKind.STRING)
