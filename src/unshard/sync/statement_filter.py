"""The event filter on statements: asked for each operation, by its names and its tables."""

from __future__ import annotations

from dataclasses import replace

from unshard.ddl.alter_parts import alter_parts
from unshard.ddl.events import event_of
from unshard.ddl.pieces import StructureOf
from unshard.ddl.statement import Ddl, Kind
from unshard.errors import DdlError
from unshard.log import logger
from unshard.model.table import TableName
from unshard.transform.event_filter import EventFilter

_BY_STRUCTURE = (Kind.ALTER_TABLE, Kind.DROP_INDEX)


def takes_operation(events: EventFilter, whole: Ddl, part: Ddl, structure: StructureOf) -> bool:
    """Whether the filter lets one operation of a statement be run.

    It is left out as soon as one of its tables, old name or new, is filtered. Patterns are tried on the text of the
    whole statement. Raises DdlError DDL-020 for an action Error. Pure but for the log and what `structure` reads.
    """
    names = part.tables or (TableName(part.schema, ""),)
    if not any(events.concerns(name) for name in names):
        return True
    before = structure(part.tables[0]) if part.kind in _BY_STRUCTURE else None
    several = part.kind is Kind.ALTER_TABLE and len(alter_parts(whole)) > 1
    # DM has no name for a statement on a sequence: only patterns can leave one out
    event = None if part.kind is Kind.SEQUENCE else event_of(part, before, several=several)
    named = event.name if event is not None else "no event"
    for name in names:
        verdict = events.judge(name, event, whole.text)
        if verdict is None:
            continue
        where = replace(part.context.where, table=str(name).removesuffix("."))
        if verdict.action == "Error":
            values = {"rule": verdict.rule, "event": named, "statement": whole.text[:500]}
            raise DdlError("DDL-020", where, values=values)
        log = logger("sync", source=where.source or "", table=where.table or "", binlog=where.position or "")
        log.info("statement left out", rule=verdict.rule, named=named, statement=part.text[:500])
        return False
    return True
