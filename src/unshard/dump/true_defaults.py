"""Finds the true text of defaults in which a source may show letters of four bytes as `?`.

The dictionaries of MariaDB and of MySQL before 8.0 have no such letters, so SHOW CREATE TABLE has a `?` in place of
each. The DEFAULT function returns the default as it is, but for a NOT NULL column it needs a row of the table. MySQL
8.0 and newer show the bytes of such a default, `0xF09F9880`; a `?` is a question mark there.

| the server tells | the structure that is dumped has |
|---|---|
| a default with such letters | that default |
| that the `?` are question marks | the default as it is shown |
| nothing, as the table is empty | the default as it is shown, and a warning is logged |

The members of an ENUM or SET can't be asked for: they, and their default, stay as they are shown.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from unshard.log import logger
from unshard.model.table import Table, quote_name
from unshard.mysql.charsets import BEYOND_THREE_BYTES
from unshard.mysql.defaults import column_lines, default_span, with_lines
from unshard.mysql.flavour import Flavour, flavour_of, version_of
from unshard.schema.words import unquoted
from unshard.source.snapshot import ask

_LAST_OF_THREE_BYTES = "\uffff"


def with_true_defaults(connection: Any, table: Table) -> Table:
    """Return the table with the defaults that it really has. Raises MySQLdb.Error.

    `connection`: one that may read the table without waiting for a DDL.
    """
    lines = column_lines(table.create_sql)
    shown = {
        column.name: (lines[column.name], span)
        for column in table.columns
        if column.charset in BEYOND_THREE_BYTES
        and not column.members
        and (span := default_span(lines.get(column.name, ""))) is not None
        and "?" in lines[column.name][slice(*span)]
    }
    if not shown or _shows_bytes(connection):
        return table
    asked = ", ".join(f"HEX(CONVERT(DEFAULT(d.{quote_name(name)}) USING utf8mb4))" for name in shown)
    (row,) = ask(
        connection, f"SELECT {asked} FROM (SELECT 1 AS one) AS o LEFT JOIN {table.name.quoted} AS d ON TRUE LIMIT 1"
    )
    found, unknown = dict[str, str](), list[str]()
    for (name, (line, (start, end))), value in zip(shown.items(), row, strict=True):
        literal = _with_letters(line[start:end], bytes.fromhex(value).decode())
        if literal is None:
            unknown.append(name)
        else:
            found[name] = line[:start] + literal + line[end:]
    if unknown:
        why = "it has ? that may stand for other letters, and the source does not tell while the table is empty"
        logger("dump", table=str(table.name)).warning(
            "a default may be another one", columns=", ".join(unknown), why=why
        )
    return replace(table, create_sql=with_lines(table.create_sql, found))


def _shows_bytes(connection: Any) -> bool:
    ((version,),) = ask(connection, "SELECT VERSION()")
    return flavour_of(version) is Flavour.MYSQL and version_of(version) >= (8, 0, 0)


def _with_letters(literal: str, value: str) -> str | None:
    """Return a literal that shows the value, with the value's own letters; None if it does not show it."""
    shown = unquoted(literal)
    if len(shown) != len(value) or any(
        one != other and (one != "?" or other <= _LAST_OF_THREE_BYTES) for one, other in zip(shown, value, strict=True)
    ):
        return None
    letters = (other for one, other in zip(shown, value, strict=True) if one == "?")
    return "".join(next(letters) if letter == "?" else letter for letter in literal)
