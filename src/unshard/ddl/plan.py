"""From statements in the target's names to an `Intent`: what is there now, and what will be there after each."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from unshard.ddl.intent import Intent, Step, Structures, again
from unshard.ddl.own_names import as_it_has, own_names
from unshard.ddl.parse import classify_ddl
from unshard.ddl.scratch import Scratch, ScratchPlace, open_scratch, show_create_database
from unshard.ddl.session import neutral_session
from unshard.ddl.statement import Ddl, Kind, NamePlace, Role
from unshard.errors import DdlError
from unshard.model.position import Position
from unshard.model.table import Table, TableName, quote_name
from unshard.mysql.structure import read_table


def plan_intent(
    connection: Any,
    place: ScratchPlace,
    statements: Sequence[Ddl],
    begin: Position,
    end: Position,
    sources: Collection[str],
) -> Intent:
    """What will be run on the target, for statements that are routed (`rewrite.routed`) and single (`split`).

    `sources` are names that their tables have upstream. The structure after each step is found on empty copies of the
    target's own tables. Changes nothing but scratch schemas. Raises DdlError DDL-003 where the server refuses a
    statement there, DDL-005 where the target lacks a table or schema that it needs, DDL-012 where it has a table
    already under a name that a RENAME gives; MySQLdb.Error for a lost connection. `statements` must not be empty.
    """
    with open_scratch(connection, place) as scratch:
        world = _World(scratch)
        steps = tuple(_step(world, _as_there(world, ddl, sources)) for ddl in statements)
    return Intent(str(begin), str(end), statements[0].context, steps)


class _World:
    """The target as it will be after the steps planned so far, table by table, loaded into scratch when first asked."""

    def __init__(self, scratch: Scratch) -> None:
        self.scratch = scratch
        self.tables: dict[TableName, Table | None] = {}
        self.schemas: dict[str, str | None] = {}

    def table(self, name: TableName) -> Table | None:
        if name not in self.tables:
            with neutral_session(self.scratch.connection):
                self.tables[name] = read_table(self.scratch.connection, name)
        return self.tables[name]

    def schema(self, ddl: Ddl, schema: str) -> str | None:
        """SHOW CREATE DATABASE of the target's schema; its stand-in is made if it is there."""
        if schema in self.schemas:
            return self.schemas[schema]
        found = show_create_database(self.scratch.connection, schema)
        if found is not None:
            self.scratch.make_schema(schema, found, ddl.context)
        return found


def _step(world: _World, ddl: Ddl) -> Step:
    before, after = _around_schema(world, ddl) if ddl.kind.on_schema else _around_tables(world, ddl)
    return Step(ddl.text, ddl.kind, again(ddl, before, after), before, after, ddl.context)


def _as_there(world: _World, ddl: Ddl, sources: Collection[str]) -> Ddl:
    table = world.table(ddl.tables[0]) if any(own_names(ddl)) else None
    return classify_ddl(as_it_has(ddl, table, sources), ddl.context) if table is not None else ddl


def _around_schema(world: _World, ddl: Ddl) -> tuple[Structures, Structures]:
    key = quote_name(ddl.schema)
    found = show_create_database(world.scratch.connection, ddl.schema)
    if ddl.kind is Kind.DROP_DATABASE:
        return {key: found}, {key: None}
    if ddl.kind is Kind.ALTER_DATABASE:
        if found is None:
            raise _missing(ddl, ddl.schema)
        world.schema(ddl, ddl.schema)
    world.scratch.run(ddl)
    before = found if ddl.kind is Kind.ALTER_DATABASE or ddl.or_replace else None
    after = world.schemas[ddl.schema] = world.scratch.read_schema(ddl.schema)
    return {key: before}, {key: after}


def _around_tables(world: _World, ddl: Ddl) -> tuple[Structures, Structures]:
    before = {name: _before(world, ddl, name) for name in dict.fromkeys(ddl.tables)}
    if ddl.kind is Kind.DROP_TABLE:
        after: dict[TableName, Table | None] = dict.fromkeys(before)
    elif ddl.kind is Kind.TRUNCATE_TABLE:
        _need(world, ddl)
        after = dict(before)
    else:
        _need(world, ddl)
        _refuse_taken(world, ddl)
        world.scratch.run(ddl)
        after = {name: world.scratch.read(name) for name in before}
    world.tables |= after
    return _texts(before), _texts(after)


def _before(world: _World, ddl: Ddl, name: TableName) -> Table | None:
    """A plain CREATE TABLE was run where no such table was; what is there on the target now is looked at later."""
    creates = ddl.kind is Kind.CREATE_TABLE and not ddl.or_replace
    return None if creates else world.table(name)


def _need(world: _World, ddl: Ddl) -> None:
    """Copies in scratch of all that the statement needs. Raises DdlError DDL-005 for what the target lacks."""
    for place in ddl.places:
        if place.role is Role.MENTION:
            continue
        if world.schema(ddl, place.name.schema) is None:
            raise _missing(ddl, place.name.schema)
        table = world.table(place.name)
        if _is_made(ddl, place):
            continue
        if table is not None:
            _load(world, table)
        elif place.role is not Role.NEW and not ddl.table_may_be_missing:
            raise _missing(ddl, str(place.name))


def _refuse_taken(world: _World, ddl: Ddl) -> None:
    """Raises DdlError DDL-012 where a name that the statement gives is a table's already."""
    if world.table(ddl.tables[0]) is None:
        return
    for place in ddl.places:
        if place.role is Role.NEW and place.name != ddl.tables[0] and world.table(place.name) is not None:
            where = replace(ddl.context.where, table=str(place.name))
            raise DdlError("DDL-012", where, values={"table": str(place.name), "statement": ddl.text})


def _is_made(ddl: Ddl, place: NamePlace) -> bool:
    return ddl.kind is Kind.CREATE_TABLE and place.role is Role.OBJECT


def _load(world: _World, table: Table) -> None:
    if world.scratch.read(table.name) is None:
        world.scratch.load(table)


def _missing(ddl: Ddl, what: str) -> DdlError:
    where = replace(ddl.context.where, table=what)
    return DdlError("DDL-005", where, values={"table": what, "statement": ddl.text})


def _texts(tables: dict[TableName, Table | None]) -> Structures:
    return {name.quoted: None if table is None else table.create_sql for name, table in tables.items()}
