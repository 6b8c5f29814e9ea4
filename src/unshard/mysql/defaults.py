"""The constant defaults of a table's columns, as SQL text."""

from __future__ import annotations

import re

from unshard.model.table import Column, Table

_BINARY = frozenset({"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"})

# SHOW CREATE TABLE has a column a line. What may hold the word DEFAULT itself is a token of its own.
_LINE = re.compile(r"^ +`((?:[^`]|``)+)` (.*?),?$", re.MULTILINE)
_QUOTED = r"'(?:[^'\\]|\\.|'')*'"
_TOKEN = re.compile(rf"{_QUOTED}|`(?:[^`]|``)*`|/\*.*?\*/|DEFAULT +|[^\s'`]+|\s+|.")
_CONSTANT = re.compile(rf"(?:[bBxX]?{_QUOTED}|-?\d[\d.]*(?:[eE][-+]?\d+)?|NULL)(?=[\s,]|$)")


def constant_defaults(table: Table) -> dict[str, str]:
    """By column, what an INSERT that leaves it out stores, where that is a constant: `'x'`, `5`, `NULL`.

    Columns without a default, with an expression for one, and generated ones are left out; so are defaults of binary
    columns beyond ASCII, which the text does not keep. Read from the table's `create_sql`; empty without it.
    """
    lines = column_lines(table.create_sql)
    found = {}
    for column in table.columns:
        default = _default(column, lines[column.name]) if column.name in lines and not column.generated else None
        if default is not None:
            found[column.name] = default
    return found


def column_lines(create_sql: str) -> dict[str, str]:
    """By column of a SHOW CREATE TABLE, what stands behind its name."""
    return {name.replace("``", "`"): rest for name, rest in _LINE.findall(create_sql)}


def computed_default(definition: str) -> str | None:
    """What stands behind DEFAULT in a line of `column_lines`, to its end, where that is no constant; else None."""
    for token in _TOKEN.finditer(definition):
        if token[0].startswith("DEFAULT "):
            return None if _CONSTANT.match(definition, token.end()) else definition[token.end() :]
    return None


def _default(column: Column, definition: str) -> str | None:
    for token in _TOKEN.finditer(definition):
        if token[0].startswith("DEFAULT "):
            constant = _CONSTANT.match(definition, token.end())
            if constant is None or (column.type in _BINARY and not constant[0].isascii()):
                return None
            return constant[0]
    return "NULL" if column.nullable else None
