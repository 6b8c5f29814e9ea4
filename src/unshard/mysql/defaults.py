"""Reads the DEFAULT of each column from SHOW CREATE TABLE, constants and expressions alike, as SQL text."""

from __future__ import annotations

import re
from collections.abc import Mapping

from unshard.model.table import Column, Table

_BINARY = frozenset({"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"})

# SHOW CREATE TABLE has one column a line. Anything that may contain the word DEFAULT is a token of its own.
_LINE = re.compile(r"^ +`((?:[^`]|``)+)` (.*?),?$", re.MULTILINE)
_QUOTED = r"'(?:[^'\\]|\\.|'')*'"
_TOKEN = re.compile(rf"{_QUOTED}|`(?:[^`]|``)*`|/\*.*?\*/|DEFAULT +|[^\s'`]+|\s+|.")
_CONSTANT = re.compile(rf"(?:[bBxX]?{_QUOTED}|-?\d[\d.]*(?:[eE][-+]?\d+)?|NULL)(?=[\s,]|$)")


def constant_defaults(table: Table) -> dict[str, str]:
    """Return, by column, the constant that an INSERT without the column stores: `'x'`, `5`, `NULL`.

    Omits columns without a default, columns whose default is an expression, and generated columns, as well as binary
    columns whose default is not ASCII, because the text does not preserve it. Read from the table's `create_sql`; empty
    without it.
    """
    lines = column_lines(table.create_sql)
    found = {}
    for column in table.columns:
        default = _default(column, lines[column.name]) if column.name in lines and not column.generated else None
        if default is not None:
            found[column.name] = default
    return found


def column_lines(create_sql: str) -> dict[str, str]:
    """Return, for each column in a SHOW CREATE TABLE, the text after its name."""
    return {name.replace("``", "`"): rest for name, rest in _LINE.findall(create_sql)}


def with_lines(create_sql: str, lines: Mapping[str, str]) -> str:
    """Return the SHOW CREATE TABLE with other texts after the names of these columns."""

    def changed(line: re.Match[str]) -> str:
        name, rest = line[1].replace("``", "`"), line.start(2) - line.start()
        return line[0][:rest] + lines.get(name, line[2]) + line[0][rest + len(line[2]) :]

    return _LINE.sub(changed, create_sql)


def default_span(definition: str) -> tuple[int, int] | None:
    """Return where the constant after DEFAULT is in a line of `column_lines`; None where there is none."""
    for token in _TOKEN.finditer(definition):
        if token[0].startswith("DEFAULT "):
            constant = _CONSTANT.match(definition, token.end())
            return constant.span() if constant is not None else None
    return None


def computed_default(definition: str) -> str | None:
    """Return the rest of a line of `column_lines` after DEFAULT if the default is an expression; None otherwise."""
    for token in _TOKEN.finditer(definition):
        if token[0].startswith("DEFAULT "):
            return None if _CONSTANT.match(definition, token.end()) else definition[token.end() :]
    return None


def _default(column: Column, definition: str) -> str | None:
    for token in _TOKEN.finditer(definition):
        if token[0].startswith("DEFAULT "):
            span = default_span(definition)
            constant = definition[slice(*span)] if span is not None else None
            return None if constant is None or (column.type in _BINARY and not constant.isascii()) else constant
    return "NULL" if column.nullable else None
