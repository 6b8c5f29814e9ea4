"""Replaces a storage engine without transactions by InnoDB in DDL statements, as the copy does.

A table without transactions keeps rows of a transaction that is rolled back. They would be written again by the next
attempt (`model.shape`).
"""

from __future__ import annotations

from unshard.ddl.cursor import tokens_of
from unshard.ddl.parse import classify_ddl
from unshard.ddl.statement import Ddl, StatementKind
from unshard.log import logger
from unshard.model.shape import NO_TRANSACTIONS, WITHOUT
from unshard.model.table import Table
from unshard.schema.lex import Token

_NO_TRANSACTIONS = frozenset(NO_TRANSACTIONS.upper().split("|")) | {"HEAP", "MERGE"}
_ROW_FORMATS = frozenset({"FIXED", "PAGE"})
"""Row formats of MyISAM and of Aria that InnoDB refuses."""


def with_transactions(ddl: Ddl, upstream: Table | None) -> Ddl:
    """Return a CREATE TABLE or ALTER TABLE with InnoDB in the place of an engine without transactions.

    Options that InnoDB does not have are removed. Other statements are returned unchanged. `upstream` is the source's
    table before the statement. A changed engine is logged.
    """
    if ddl.kind not in (StatementKind.CREATE_TABLE, StatementKind.ALTER_TABLE):
        return ddl
    found = tokens_of(ddl.text, ddl.context)
    engines = [token for token in _values(found, "ENGINE") if _bare(token) in _NO_TRANSACTIONS]
    if not engines and (upstream is None or WITHOUT.search(upstream.create_sql) is None):
        return ddl
    formats = [token for token in _values(found, "ROW_FORMAT") if _bare(token) in _ROW_FORMATS]
    changes = [(token.start, token.end, "InnoDB") for token in engines]
    changes += [(token.start, token.end, "DEFAULT") for token in formats]
    changes += [(start, end, "") for start, end in _transactional(found)]
    text = ddl.text
    for start, end, new in sorted(changes, reverse=True):
        text = text[:start] + new + text[end:]
    if engines:
        words = {"table": str(ddl.tables[0]), "engine": _bare(engines[0]), "position": ddl.context.where.position}
        told = "made with InnoDB: its engine has no transactions"
        logger("sync", source=ddl.context.where.source or "").warning(told, **words)
    return classify_ddl(text, ddl.context)


def _values(found: tuple[Token, ...], option: str) -> list[Token]:
    """Return the token after each occurrence of the option, with or without an equals sign."""
    values: list[Token] = []
    for at, token in enumerate(found):
        if token.word == option:
            behind = at + 2 if at + 1 < len(found) and found[at + 1].is_symbol("=") else at + 1
            values += found[behind : behind + 1]
    return values


def _transactional(found: tuple[Token, ...]) -> list[tuple[int, int]]:
    """Return the places of Aria's TRANSACTIONAL in the text, each with the comma before it."""
    places = []
    for at, token in enumerate(found):
        if token.word == "TRANSACTIONAL":
            last = at + 2 if at + 1 < len(found) and found[at + 1].is_symbol("=") else at + 1
            if last < len(found) and found[last].word in ("0", "1", "DEFAULT"):
                comma = at > 0 and found[at - 1].is_symbol(",")
                places.append((found[at - 1].start if comma else token.start, found[last].end))
    return places


def _bare(token: Token) -> str:
    return token.value.strip("'\"`").upper()
