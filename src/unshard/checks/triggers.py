"""Triggers on the target's tables: what the source's did is in its binlog, and they would do it again."""

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
    " ORDER BY TRIGGER_SCHEMA, TRIGGER_NAME"
)


@dataclass(frozen=True, slots=True)
class Trigger:
    """One trigger: `timing` BEFORE or AFTER, `event` INSERT, UPDATE or DELETE, `body` its statement as SQL."""

    name: TableName
    table: TableName
    timing: str
    event: str
    body: str

    def does(self, written: Iterable[TableName]) -> str:
        """What it may do to rows of the tables `written`, from the look of its statement; "": nothing."""
        if self.timing == "BEFORE" and self.event != "DELETE":
            return "may change each row before it is written"
        named = sorted({str(table) for table in written if self._names(table.table)})
        if named:
            return f"may write to {', '.join(named[:3])}{' …' if len(named) > 3 else ''}"
        return "calls a procedure, which may write anything" if self._names("CALL") else ""

    def _names(self, word: str) -> bool:
        return re.search(rf"(?<![\w$]){re.escape(word)}(?![\w$])", self.body, re.IGNORECASE) is not None


def triggers_of(connection: Any, tables: Iterable[TableName], *, folds: bool) -> tuple[Trigger, ...]:
    """Those of these tables that the account may see: it needs TRIGGER on a table for that. `folds`: names do."""
    wanted = {_folded(table) if folds else table for table in tables}
    schemas = sorted({name.schema for name in wanted})
    found = (row for schema in schemas for row in rows(connection, _TRIGGERS, (schema,)))
    triggers = (
        Trigger(TableName(str(at), str(name)), TableName(str(schema), str(table)), str(timing), str(event), str(body))
        for at, name, schema, table, timing, event, body in found
    )
    return tuple(one for one in triggers if (_folded(one.table) if folds else one.table) in wanted)


def _folded(name: TableName) -> TableName:
    return TableName(name.schema.lower(), name.table.lower())
