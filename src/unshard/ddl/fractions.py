"""Digits of a second that a narrower column has no room for: MariaDB cuts them, MySQL and TiDB round.

A newer MariaDB and MySQL 8.0 have a mode for the other way, each its own. TiDB and older servers have none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from unshard.ddl.context import ROUND, TRUNCATE, Context
from unshard.ddl.cursor import tokens_of
from unshard.errors import DdlError
from unshard.mysql.connection import rows
from unshard.mysql.flavour import Flavour, flavour_of, version_of
from unshard.mysql.tidb import is_tidb
from unshard.schema.lex import Token, TokenKind

_TYPES = frozenset({"DATETIME", "TIMESTAMP", "TIME", "DATE"})
_SINCE = {Flavour.MARIADB: (10, 4, 1), Flavour.MYSQL: (8, 0, 1)}
_MODES = {Flavour.MARIADB: ROUND, Flavour.MYSQL: TRUNCATE}
_WIDER = """
SELECT COUNT(*) FROM information_schema.COLUMNS WHERE TABLE_NAME IN ({names}) AND COLUMN_NAME = %s
AND (DATETIME_PRECISION > %s OR DATA_TYPE LIKE '%%char' OR DATA_TYPE LIKE '%%text')
"""


def mode_for_fractions(connection: Any, context: Context, statement: str) -> tuple[str, ...]:
    """Return the mode, if one is needed, with which the target brings fractions to a narrower column as the source did.

    Raises DdlError DDL-044 where it has no such mode, and the statement may make a column narrower.
    """
    found = connection.get_server_info()
    flavour = flavour_of(found)
    if context.rounds_fractions is not (flavour is Flavour.MARIADB):
        return ()  # as the product does it without a mode
    if not is_tidb(connection) and version_of(found) >= _SINCE[flavour]:
        return (_MODES[flavour],)
    tokens = tokens_of(statement, context)
    names = list({token.value for token in tokens if token.kind in (TokenKind.NAME, TokenKind.WORD)})
    sql = _WIDER.format(names=", ".join(["%s"] * len(names)))
    for column, digits in _redefined(tokens):
        if rows(connection, sql, (*names, column, digits))[0][0]:
            does, did = ("rounds", "cut") if not context.rounds_fractions else ("cuts", "rounded")
            values = {"statement": statement, "column": column, "does": does, "did": did}
            raise DdlError("DDL-044", context.where, values=values)
    return ()


def _redefined(tokens: Sequence[Token]) -> Iterator[tuple[str, int]]:
    """Yield each column that an ALTER gives a type of times, by its name before, with the type's digits of a second."""
    for place, token in enumerate(tokens):
        if token.word not in ("MODIFY", "CHANGE"):
            continue
        behind = list(tokens[place + 1 : place + 12])
        while behind and behind[0].word in ("COLUMN", "IF", "EXISTS"):
            behind.pop(0)
        kind = 1 if token.word == "MODIFY" else 2
        if len(behind) > kind and behind[kind].word in _TYPES:
            sized = len(behind) > kind + 2 and behind[kind + 1].is_symbol("(")
            yield behind[0].value, int(behind[kind + 2].value) if sized else 0
