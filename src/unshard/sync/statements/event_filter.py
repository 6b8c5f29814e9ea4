"""The event filter for DDL statements: decides about each operation by its event type, its tables and its text."""

from __future__ import annotations

from dataclasses import replace

from unshard.config.event_names import EventName
from unshard.ddl.alter_parts import alter_parts
from unshard.ddl.context import Context
from unshard.ddl.events import event_of
from unshard.ddl.parse import classify
from unshard.ddl.pieces import StructureOf
from unshard.ddl.statement import Ddl, Skipped, StatementKind
from unshard.errors import DdlError
from unshard.log import logger
from unshard.model.table import TableName
from unshard.transform.event_filter import EventFilter, Verdict

_BY_STRUCTURE = (StatementKind.ALTER_TABLE, StatementKind.DROP_INDEX)
_NAMELESS = "no event"


def judge_and_log(events: EventFilter, whole: Ddl, part: Ddl, structure: StructureOf) -> Verdict | None:
    """Do as `judge_operation`, and log what is left out."""
    verdict = judge_operation(events, whole, part, structure)
    if verdict is not None:
        where, names = part.context.where, ", ".join(str(name).removesuffix(".") for name in filtered_names(part))
        log = logger("sync", source=where.source or "", table=names, binlog=where.position or "")
        event = event_in(whole, part, structure)
        named = event.name if event is not None else _NAMELESS
        log.info("statement left out", rule=verdict.rule, named=named, statement=part.text[:500])
    return verdict


def judge_operation(events: EventFilter, whole: Ddl, part: Ddl, structure: StructureOf) -> Verdict | None:
    """Return the filter's verdict on one operation of a statement; None: it is run.

    It is left out if one of its tables, by old or new name, is filtered. Patterns are matched with the text of the
    whole statement as the source logged it: an online DDL tool's has the ghost table's name. Raises DdlError DDL-020
    for an action Error. Pure but for what `structure` reads.
    """
    names = filtered_names(part)
    if not any(events.concerning(name) for name in names):
        return None
    event = event_in(whole, part, structure)
    named = event.name if event is not None else _NAMELESS
    for name in names:
        verdict = events.judge(name, event, whole.text)
        if verdict is None:
            continue
        where = replace(part.context.where, table=str(name).removesuffix("."))
        if verdict.action == "Error":
            values = {"rule": verdict.rule, "event": named, "statement": whole.text[:500]}
            raise DdlError("DDL-020", where, values=values)
        return verdict
    return None


def filtered_names(part: Ddl) -> tuple[TableName, ...]:
    """Return the names for which the rules are asked; a statement on a schema has an empty table name."""
    return part.tables or (TableName(part.schema, ""),)


def event_in(whole: Ddl, part: Ddl, structure: StructureOf) -> EventName | None:
    """Return the event of one operation; None where DM has no name for it.

    DM has none for a statement on a sequence or on a table's files, and a list with CREATE TABLE does not mean a
    temporary one: only patterns can leave these out.
    """
    if part.kind in (StatementKind.SEQUENCE, StatementKind.TEMPORARY_TABLE, StatementKind.TABLE_FILES):
        return None
    before = structure(part.tables[0]) if part.kind in _BY_STRUCTURE else None
    several = part.kind is StatementKind.ALTER_TABLE and len(alter_parts(whole)) > 1
    return event_of(part, before, several=several)


def classify_logged(sql: str, context: Context, events: EventFilter) -> Ddl | Skipped:
    """Parse a statement. One that can't be parsed is skipped if a filter for all tables matches it.

    Raises DdlError DDL-001, DDL-002.
    """
    try:
        return classify(sql, context)
    except DdlError:
        verdict = events.judge(TableName("", ""), None, sql)
        if verdict is None or verdict.action == "Error":
            raise
        return Skipped(verdict.rule)
