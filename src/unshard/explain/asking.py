"""What an operator types, read: a table's name, SQL modes."""

from __future__ import annotations

from unshard.ddl.context import MODE_NAMES, Context
from unshard.ddl.cursor import Cursor, read_table, tokens_of
from unshard.ddl.statement import TableRole
from unshard.errors import ConfigError, DdlError
from unshard.model.table import TableName


def table_name(text: str) -> TableName:
    """`schema.table`, each in backticks where it needs them. Raises ConfigError CONFIG-025."""
    context = Context()
    try:
        at = Cursor(text, tokens_of(text, context), context)
        found = read_table(at, TableRole.OBJECT)
        at.expect_end()
    except DdlError:
        raise ConfigError("CONFIG-025", values={"text": text}) from None
    return found.name


def check_modes(text: str) -> None:
    """Names of SQL modes with commas between them. Raises ConfigError CONFIG-027 for one that there is none of."""
    unknown = [name for name in Context(sql_mode=text).modes if name not in MODE_NAMES]
    if unknown:
        raise ConfigError("CONFIG-027", values={"mode": unknown[0]})
