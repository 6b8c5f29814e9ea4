"""The sql_modes of a source's session that the target lacks, and the statements that they decide.

| mode | in | what it decides in a statement |
|---|---|---|
| EMPTY_STRING_IS_NULL | MariaDB | `''` is NULL |
| ORACLE | MariaDB | DATE is DATETIME; NUMBER, VARCHAR2, CLOB, RAW; texts in functions |
| MAXDB | MariaDB, MySQL before 8.0 | TIMESTAMP is DATETIME |
| REAL_AS_FLOAT | all; TiDB does not heed it | REAL is FLOAT |
| any other that one side lacks | | nothing that DDL does |

A mode that decides nothing of a statement is left out for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from unshard.ddl.context import Context
from unshard.ddl.cursor import tokens_of
from unshard.errors import DdlError
from unshard.mysql.flavour import Flavour, flavour_of, version_of
from unshard.mysql.tidb import is_tidb
from unshard.schema.lex import Token, TokenKind

_OF_MARIADB = frozenset({"EMPTY_STRING_IS_NULL", "SIMULTANEOUS_ASSIGNMENT", "IGNORE_BAD_TABLE_OPTIONS"})
_NOT_SINCE_8 = frozenset(
    {
        "DB2", "MAXDB", "MSSQL", "MYSQL323", "MYSQL40", "NO_AUTO_CREATE_USER", "NO_FIELD_OPTIONS", "NO_KEY_OPTIONS",
        "NO_TABLE_OPTIONS", "ORACLE", "POSTGRESQL",
    }
)  # fmt: skip
_WORDS = {
    "ORACLE": frozenset(
        {
            "DATE", "NUMBER", "VARCHAR2", "CLOB", "RAW", "DECODE", "SUBSTR", "SUBSTRING", "REPLACE", "LENGTH", "TRIM",
            "LTRIM", "RTRIM", "LPAD", "RPAD", "CONCAT", "CHR", "NVL", "NVL2", "SYSDATE",
        }
    ),
    "MAXDB": frozenset({"TIMESTAMP"}),
    "REAL_AS_FLOAT": frozenset({"REAL"}),
}  # fmt: skip
"""By mode, the words that mean another thing with it."""


def deciding_modes(modes: Iterable[str], found: Sequence[Token], *, mariadb: bool) -> tuple[str, ...]:
    """Return those of the modes of a source that decide what a statement means. Pure."""
    words = {token.word for token in found}
    modes = [mode for mode in modes if mariadb or mode != "ORACLE"]  # MySQL's changes quotes alone, by other modes
    decide = [mode for mode in modes if words & _WORDS.get(mode, frozenset())]
    return (*decide, *(mode for mode in modes if mode == "EMPTY_STRING_IS_NULL" and _has_empty_text(found)))


def _has_empty_text(found: Sequence[Token]) -> bool:
    """Return whether a statement has an empty text that is no comment."""
    empty = [n for n, one in enumerate(found) if one.kind is TokenKind.STRING and one.value in ("''", '""')]
    return any("COMMENT" not in {one.word for one in found[max(n - 2, 0) : n]} for n in empty)


def kept_modes(connection: Any, context: Context, statement: str) -> tuple[str, ...]:
    """Return `Context.target_modes` without those that the target lacks.

    Raises DdlError DDL-057 where the statement means another thing without one of them.
    """
    lacks = _lacking(connection)
    lost = [mode for mode in context.target_modes if mode in lacks]
    if not lost:
        return context.target_modes
    decide = deciding_modes(lost, tokens_of(statement, context), mariadb=context.mariadb)
    if decide:
        raise DdlError("DDL-057", context.where, values={"statement": statement, "modes": ", ".join(decide)})
    return tuple(mode for mode in context.target_modes if mode not in lacks)


def _lacking(connection: Any) -> frozenset[str]:
    if is_tidb(connection):
        return _OF_MARIADB
    told = connection.get_server_info()
    if flavour_of(told) is Flavour.MARIADB:
        return frozenset()
    return _OF_MARIADB | (_NOT_SINCE_8 if version_of(told) >= (8,) else frozenset())
