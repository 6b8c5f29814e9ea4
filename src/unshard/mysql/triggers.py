"""Triggers on the target's tables."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from unshard.model.table import TableName
from unshard.mysql.connection import rows

_TRIGGERS = (
    "SELECT TRIGGER_SCHEMA, TRIGGER_NAME, EVENT_OBJECT_SCHEMA, EVENT_OBJECT_TABLE, ACTION_TIMING, EVENT_MANIPULATION,"
    " ACTION_STATEMENT FROM information_schema.TRIGGERS WHERE EVENT_OBJECT_SCHEMA = %s"
    "{} ORDER BY TRIGGER_SCHEMA, TRIGGER_NAME"
)
_OF_SCHEMA, _OF_TABLE = _TRIGGERS.format(""), _TRIGGERS.format(" AND EVENT_OBJECT_TABLE = %s")


@dataclass(frozen=True, slots=True)
class Trigger:
    """One trigger. `timing` is BEFORE or AFTER, `event` is INSERT, UPDATE or DELETE, `body` is its statement as SQL."""

    name: TableName
    table: TableName
    timing: str
    event: str
    body: str

    def does(self, written: Iterable[TableName]) -> str:
        """Return the effect that the trigger may have on rows of the tables `written`, by its text; "" for nothing."""
        if self.timing == "BEFORE" and self.event != "DELETE":
            return "may change each row before it is written"
        named = sorted({str(table) for table in written if self._names(table.table)})
        if named:
            return f"may write to {', '.join(named[:3])}{' …' if len(named) > 3 else ''}"
        return "calls a procedure, which may write anything" if self._names("CALL") else ""

    def _names(self, word: str) -> bool:
        return re.search(rf"(?<![\w$]){re.escape(word)}(?![\w$])", self.body, re.IGNORECASE) is not None


def triggers_of(connection: Any, tables: Iterable[TableName], *, folds: bool) -> tuple[Trigger, ...]:
    """Return the triggers on these tables that the account may see; it needs TRIGGER on a table to see its triggers.

    `folds`: the server ignores the case of table names.
    """
    wanted = {_folded(table) if folds else table for table in tables}
    schemas = sorted({name.schema for name in wanted})
    triggers = [_trigger(row) for schema in schemas for row in rows(connection, _OF_SCHEMA, (schema,))]
    return tuple(one for one in triggers if (_folded(one.table) if folds else one.table) in wanted)


def triggers_on(connection: Any, table: TableName) -> tuple[Trigger, ...]:
    """Return the triggers on one table, as `triggers_of`. The server opens no other table for it."""
    return tuple(_trigger(row) for row in rows(connection, _OF_TABLE, (table.schema, table.table)))


def _trigger(row: tuple[Any, ...]) -> Trigger:
    at, name, schema, table, timing, event, body = map(str, row)
    return Trigger(TableName(at, name), TableName(schema, table), timing, event, body)


def _folded(name: TableName) -> TableName:
    return TableName(name.schema.lower(), name.table.lower())
