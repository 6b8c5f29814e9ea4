"""Plans an `Intent` for statements in the target's names: the structures there now, and those after each statement."""

from __future__ import annotations

import secrets
from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from unshard.ddl.evaluate import evaluate, evaluated_schema
from unshard.ddl.intent import Intent, Step, Structures, again
from unshard.ddl.own_names import as_it_has, own_names
from unshard.ddl.parse import classify_ddl
from unshard.ddl.sandbox import Scratch, ScratchPlace, open_scratch, show_create_database
from unshard.ddl.session import neutral_session
from unshard.ddl.statement import Ddl, NamePlace, StatementKind, TableRole
from unshard.errors import DdlError
from unshard.model.position import Position
from unshard.model.table import Table, TableName, quote_name
from unshard.mysql.structure import read_table
from unshard.mysql.tidb import is_tidb
from unshard.schema.definition import Dialect
from unshard.schema.words import ContradictionError, NotUnderstoodError


def plan_intent(
    connection: Any,
    place: ScratchPlace,
    statements: Sequence[Ddl],
    begin: Position,
    end: Position,
    sources: Collection[str],
) -> Intent:
    """Return the steps to run on the target for statements that are routed (`rewrite.routed`) and single (`split`).

    `sources` are the names that the statements' tables have upstream. The structure after each step is found on empty
    copies of the target's own tables, or computed for TiDB. Changes nothing but scratch schemas. Raises DdlError
    DDL-003 where the server refuses a statement there, DDL-040 where TiDB's table does not fit it, DDL-005 where the
    target lacks a table or schema that it needs, DDL-012 where the target already has a table under a name that a
    RENAME gives; MySQLdb.Error for a lost connection. `statements` must not be empty.
    """
    if is_tidb(connection):
        steps = _steps(_ComputedWorld(connection), statements, sources)
    else:
        with open_scratch(connection, place) as scratch:
            steps = _steps(_ScratchWorld(scratch), statements, sources)
    return Intent(str(begin), str(end), statements[0].context, steps)


class _World(ABC):
    """The target's tables and schemas as they will be after the steps planned so far."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self.tables: dict[TableName, Table | None] = {}
        self.schemas: dict[str, str | None] = {}

    def table(self, name: TableName) -> Table | None:
        if name not in self.tables:
            with neutral_session(self.connection):
                self.tables[name] = read_table(self.connection, name)
        return self.tables[name]

    def schema(self, ddl: Ddl, schema: str) -> str | None:
        """Return SHOW CREATE DATABASE of the target's schema."""
        if schema in self.schemas:
            return self.schemas[schema]
        return show_create_database(self.connection, schema)

    @abstractmethod
    def need(self, table: Table) -> None:
        """Prepare a table that a statement needs; called for each of them before `after_tables`."""

    @abstractmethod
    def after_tables(self, ddl: Ddl, names: Collection[TableName]) -> dict[TableName, Table | None]:
        """Return the tables as they are after the statement. Raises DdlError DDL-003, DDL-040."""

    @abstractmethod
    def after_schema(self, ddl: Ddl, before: str | None) -> str | None:
        """Return SHOW CREATE DATABASE after the statement. Raises DdlError DDL-003."""


class _ScratchWorld(_World):
    """The target's tables as copies in scratch schemas, on which the statements run.

    A table is copied when it is first needed.
    """

    def __init__(self, scratch: Scratch) -> None:
        super().__init__(scratch.connection)
        self._scratch = scratch

    def schema(self, ddl: Ddl, schema: str) -> str | None:
        found = super().schema(ddl, schema)
        if found is not None and schema not in self.schemas:
            self._scratch.make_schema(schema, found, ddl)
        return found

    def need(self, table: Table) -> None:
        if not self._scratch.has(table.name):
            self._scratch.load(table)

    def after_tables(self, ddl: Ddl, names: Collection[TableName]) -> dict[TableName, Table | None]:
        self._scratch.run(ddl)
        return {name: self._scratch.read(name) for name in names}

    def after_schema(self, ddl: Ddl, before: str | None) -> str | None:
        self._scratch.run(ddl)
        return self._scratch.read_schema(ddl.schema)


class _ComputedWorld(_World):
    """The structures of a TiDB target's tables, which are computed.

    On TiDB each statement on a copy would be a DDL job of its own, and the history of jobs shows which statements ran.

    A statement that can't be computed leaves its tables unchanged here: only a warning would need them. One that TiDB
    would refuse for what its table has or lacks raises DdlError DDL-040 before any step of a plan is run.
    """

    def need(self, table: Table) -> None:
        return

    def after_tables(self, ddl: Ddl, names: Collection[TableName]) -> dict[TableName, Table | None]:
        try:
            changes = evaluate(ddl, self.table, lambda name: self.schema(ddl, name), Dialect.TIDB)
        except ContradictionError as error:
            where = replace(ddl.context.where, table=str(ddl.tables[0]))
            raise DdlError("DDL-040", where, str(error), {"statement": ddl.text}) from error
        except NotUnderstoodError:
            return {name: self.table(name) for name in names}
        return {name: changes.get(name, self.table(name)) for name in names}

    def after_schema(self, ddl: Ddl, before: str | None) -> str | None:
        return evaluated_schema(ddl, before)


def _steps(world: _World, statements: Sequence[Ddl], sources: Collection[str]) -> tuple[Step, ...]:
    return tuple(_step(world, _as_there(world, ddl, sources)) for ddl in statements)


def _step(world: _World, ddl: Ddl) -> Step:
    before, after = _around_schema(world, ddl) if ddl.kind.on_schema else _around_tables(world, ddl)
    return Step(ddl.text, ddl.kind, again(ddl, before, after), before, after, ddl.context, secrets.token_hex(8))


def _as_there(world: _World, ddl: Ddl, sources: Collection[str]) -> Ddl:
    table = world.table(ddl.tables[0]) if any(own_names(ddl)) else None
    return classify_ddl(as_it_has(ddl, table, sources), ddl.context) if table is not None else ddl


def _around_schema(world: _World, ddl: Ddl) -> tuple[Structures, Structures]:
    key = quote_name(ddl.schema)
    found = show_create_database(world.connection, ddl.schema)
    if ddl.kind is StatementKind.DROP_DATABASE:
        return {key: found}, {key: None}
    if ddl.kind is StatementKind.ALTER_DATABASE:
        if found is None:
            raise _missing(ddl, ddl.schema)
        world.schema(ddl, ddl.schema)
    before = found if ddl.kind is StatementKind.ALTER_DATABASE or ddl.or_replace else None
    after = world.schemas[ddl.schema] = world.after_schema(ddl, found)
    return {key: before}, {key: after}


def _around_tables(world: _World, ddl: Ddl) -> tuple[Structures, Structures]:
    before = {name: _before(world, ddl, name) for name in dict.fromkeys(ddl.tables)}
    if ddl.kind is StatementKind.DROP_TABLE:
        after: dict[TableName, Table | None] = dict.fromkeys(before)
    elif ddl.kind is StatementKind.TRUNCATE_TABLE:
        _need(world, ddl)
        after = dict(before)
    else:
        _need(world, ddl)
        _refuse_taken(world, ddl)
        after = world.after_tables(ddl, before)
    world.tables |= after
    return _texts(before), _texts(after)


def _before(world: _World, ddl: Ddl, name: TableName) -> Table | None:
    """Return the table before the statement; None for a plain CREATE TABLE, which upstream ran where no such table was.

    A table that the target has under that name now is looked at when the statement runs.
    """
    creates = ddl.kind is StatementKind.CREATE_TABLE and not ddl.or_replace
    return None if creates else world.table(name)


def _need(world: _World, ddl: Ddl) -> None:
    """Prepare the tables that the statement needs. Raises DdlError DDL-005 for one that the target lacks."""
    for place in ddl.places:
        if place.role is TableRole.MENTION:
            continue
        if world.schema(ddl, place.name.schema) is None:
            raise _missing(ddl, place.name.schema)
        table = world.table(place.name)
        if _is_made(ddl, place):
            continue
        if table is not None:
            world.need(table)
        elif place.role is not TableRole.NEW and not ddl.table_may_be_missing:
            raise _missing(ddl, str(place.name))


def _refuse_taken(world: _World, ddl: Ddl) -> None:
    """Raise DdlError DDL-012 where a table already has the name that the statement gives."""
    if world.table(ddl.tables[0]) is None:
        return
    for place in ddl.places:
        if place.role is TableRole.NEW and place.name != ddl.tables[0] and world.table(place.name) is not None:
            where = replace(ddl.context.where, table=str(place.name))
            raise DdlError("DDL-012", where, values={"table": str(place.name), "statement": ddl.text})


def _is_made(ddl: Ddl, place: NamePlace) -> bool:
    return ddl.kind is StatementKind.CREATE_TABLE and place.role is TableRole.OBJECT


def _missing(ddl: Ddl, what: str) -> DdlError:
    where = replace(ddl.context.where, table=what)
    return DdlError("DDL-005", where, values={"table": what, "statement": ddl.text})


def _texts(tables: dict[TableName, Table | None]) -> Structures:
    return {name.quoted: None if table is None else table.create_sql for name, table in tables.items()}
