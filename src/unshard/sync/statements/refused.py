"""Statements that are refused.

Without `shard-mode` they are DDL of merged tables, and DROP of a schema that others share, because they would change
tables of other sources too. With `shard-mode`, `sync/sharding/statements.py` decides. In any mode, they are a CREATE
TABLE IF NOT EXISTS that may have had an effect or not, where rows would be read differently.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from unshard.ddl.evaluate import evaluated_schema, surroundings
from unshard.ddl.pieces import AlterOperation, StatementRules
from unshard.ddl.statement import Ddl, StatementKind
from unshard.ddl.tracker import Changes, schema_table
from unshard.errors import DdlError, SyncError
from unshard.model.position import Position
from unshard.model.table import Table, TableName
from unshard.mysql.connection import rows
from unshard.sync.statements.reader import made_if_missing
from unshard.sync.statements.tracked_tables import NOT_COPIED, TrackedTables

_FOR_ALL = frozenset({StatementKind.CREATE_TABLE, StatementKind.CREATE_DATABASE, StatementKind.ALTER_DATABASE})
"""Kinds of statements that change no rows of another table."""


def refuse_sharding(
    found: Iterable[AlterOperation],
    tables: TrackedTables,
    others: Callable[[TableName], int],
    on_target: Callable[[Callable[[Any], None]], None],
) -> None:
    """Raise SyncError SYNC-011 or 074 where a statement would change tables of others without waiting for them.

    `found` are its operations. `others` returns how many tables of other sources are routed to a target table;
    `on_target` calls a function with a connection to the target.
    """

    def merged(target: TableName) -> bool:
        return tables.names_in(target) + others(target) > 1

    for ddl in (part for piece in found for part in piece.run):
        if ddl.drops_schema:
            on_target(partial(refuse_shared_schema, ddl=ddl, names=tables.names, rules=tables.rules))
        refuse_merged(ddl, tables.names, tables.rules, merged)


def refuse_merged(
    ddl: Ddl, known: Collection[TableName], rules: StatementRules, merged: Callable[[TableName], bool]
) -> None:
    """Raise SyncError SYNC-011 for an operation on a table that shares its target with others.

    `known` are the source's tables. `merged`: whether several tables of any source are routed to a target.
    """
    if ddl.kind in _FOR_ALL and not ddl.or_replace:
        return
    names: Iterable[TableName] = ddl.tables
    if ddl.drops_schema:
        names = [name for name in known if name.schema == ddl.schema and name.table]
    for name in names:
        target = rules.route(name)
        if rules.allows(name) and merged(target):
            place = replace(ddl.context.where, table=str(name))
            raise SyncError("SYNC-011", place, cause=ddl.text[:500], values={"target": str(target)})


def refuse_shared_schema(connection: Any, ddl: Ddl, names: Collection[TableName], rules: StatementRules) -> None:
    """Raise SyncError SYNC-074 if the statement would drop tables of the target that did not come from this schema.

    Other schemas may be routed to the same target schema.
    """
    target = rules.route_schema(ddl.schema)
    own = {rules.route(name) for name in names if name.schema == ddl.schema and rules.allows(name)}
    found = rows(connection, "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s", (target,))
    shared = sorted(table for (table,) in found if TableName(target, table) not in own)
    if shared:
        place = replace(ddl.context.where, table=ddl.schema)
        cause = f"{ddl.text[:500]} would take tables of others too: {', '.join(shared[:10])}"
        raise SyncError("SYNC-074", place, cause=cause, values={"schema": ddl.schema, "target": target})


def refuse_unlike_read(
    found: Iterable[AlterOperation], made: Mapping[TableName, Table | None], tables: TrackedTables, begin: Position
) -> None:
    """Raise SyncError SYNC-081 for a table that has one structure if its CREATE made it, and another one if not.

    SYNC-084 for one that an earlier block-allow list left out: if its CREATE did not make it, its rows are missing.
    DdlError DDL-050 for a schema, by its default character set and collation. The statement is one of which can't be
    known whether it had an effect. `found` are the operations of the statement at `begin`; `made` has the structures
    after them. A table that was taken to have none before is new.
    """
    for ddl in (piece.ddl for piece in found):
        name = made_if_missing(ddl)
        if name is None or tables.was_there(name, begin) is not None:
            continue
        if not name.table:
            _refuse_unlike_default(ddl, tables.tracker.schema_default(name.schema))
            continue
        if tables.is_late(name):
            values = {"target": str(tables.rules.route(name))}
            raise SyncError(NOT_COPIED, replace(ddl.context.where, table=str(name)), ddl.text[:500], values)
        new, old = made.get(name), tables.tracker.presume(name)
        if new is None or old is None or _read_as(new) == _read_as(old):
            continue
        texts = [
            ", ".join(f"{c.name} {c.definition} {c.charset or ''}".strip() for c in one.columns) for one in (new, old)
        ]
        values = {"made": texts[0], "there": texts[1]}
        raise SyncError("SYNC-081", replace(ddl.context.where, table=str(name)), ddl.text[:500], values)


def taken_to_be_there(found: Iterable[AlterOperation], tables: TrackedTables, begin: Position) -> Changes:
    """Return the rows, with the source's present default, of schemas that a CREATE may have made or not."""
    names = {made_if_missing(piece.ddl) for piece in found if piece.ddl.kind.on_schema}
    unsure = [name for name in names if name is not None and tables.was_there(name, begin) is None]
    texts = {name: tables.tracker.schema_default(name.schema) for name in unsure}
    return {name: schema_table(name.schema, text) for name, text in texts.items() if text is not None}


def _refuse_unlike_default(ddl: Ddl, there: str | None) -> None:
    if there is None:
        return
    made = evaluated_schema(ddl, None)
    one, other = (surroundings(ddl.context, text).collation for text in (made, there))
    if one.replace("utf8_", "utf8mb3_") != other.replace("utf8_", "utf8mb3_"):
        values = {"schema": ddl.schema, "made": one, "there": other}
        raise DdlError("DDL-050", replace(ddl.context.where, table=ddl.schema), ddl.text[:500], values)


def _read_as(table: Table) -> tuple[object, ...]:
    """Return all of a structure that decides how row events of the table are read, and which rows they are of."""
    columns = [
        (c.name.lower(), c.type, c.unsigned, c.charset, c.length, c.precision, c.scale, c.fsp, c.members, c.generated)
        for c in table.columns
    ]
    return columns, sorted(index.columns for index in table.unique_keys)
