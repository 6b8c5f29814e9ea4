"""The schema tracker: the structure of every upstream table at the current position of the log.

| statement | structures after it |
|---|---|
| CREATE, ALTER, RENAME, indexes | found by running it on empty copies (`sandbox`); with TiDB computed (`evaluate`) |
| DROP TABLE | the table is removed |
| TRUNCATE | unchanged |
| DROP DATABASE | its tables are removed |

A schema's own row has an empty table name. Its `create_sql` is SHOW CREATE DATABASE, which has the character set that a
CREATE TABLE takes when it names none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from unshard.ddl.evaluate import evaluate, evaluated_schema
from unshard.ddl.partition_bounds import with_computed_bounds
from unshard.ddl.sandbox import Scratch, ScratchPlace, open_scratch
from unshard.ddl.statement import Ddl, StatementKind, TableRole
from unshard.errors import DdlError
from unshard.model.table import Table, TableName
from unshard.mysql.structure import without_hashes
from unshard.mysql.tidb import is_tidb
from unshard.schema.definition import json_check
from unshard.schema.words import NotUnderstoodError

Changes = dict[TableName, Table | None]
NOT_FOLLOWED = frozenset({"DDL-003", "DDL-037"})
"""Errors for a statement whose structures are not found: the server refuses it, or no rule computes them."""


def _nothing(_: TableName) -> Table | None:
    return None


def _no_schema(_: str) -> str | None:
    return None


@dataclass(slots=True)
class SchemaTracker:
    """The tracked structures of one source's tables and schemas. It holds no connection; used by one thread.

    Args:
        place: names its scratch schemas.
        unknown: asked for a table that a statement needs and the tracker lacks: returns its structure at this position
            of the log, or None. The tracker keeps the answer.
        presumed: as `unknown`, for questions on which no rows and no structures depend: it also answers where the
            structure can't be known for certain. None: `unknown` is asked.
        schema_default: returns the source's SHOW CREATE DATABASE of a schema (`sandbox.show_create_database`), or None
            where the schema no longer exists there; asked when a table is created in a schema without a row. The answer
            is among the changes.
    """

    place: ScratchPlace
    unknown: Callable[[TableName], Table | None] = _nothing
    presumed: Callable[[TableName], Table | None] | None = None
    schema_default: Callable[[str], str | None] = _no_schema
    _tables: dict[TableName, Table] = field(default_factory=dict)

    def get(self, name: TableName) -> Table | None:
        """Return the table's structure; `unknown` is asked where the tracker lacks it."""
        if name not in self._tables and (found := self.unknown(name)) is not None:
            self._tables[name] = found
        return self._tables.get(name)

    def presume(self, name: TableName) -> Table | None:
        """Return the structure of a table that the tracker lacks, as `presumed` has it. It is not kept."""
        return (self.presumed or self.unknown)(name)

    def schema_sql(self, schema: str) -> str | None:
        """Return SHOW CREATE DATABASE upstream, from the schema's row or the source; None if it has none."""
        row = self._tables.get(schema_row(schema))
        return row.create_sql if row is not None else self.schema_default(schema)

    def knows(self, name: TableName) -> bool:
        """Return whether the tracker itself has the table."""
        return name in self._tables

    def begin(self, tables: Mapping[TableName, Table]) -> None:
        """Move to another position of the log, with these structures and no others."""
        self._tables = dict(tables)

    @property
    def names(self) -> frozenset[TableName]:
        """All names that the tracker itself holds, schemas' own rows too."""
        return frozenset(self._tables)

    def apply(self, changes: Mapping[TableName, Table | None]) -> None:
        """Store the changes that `after` returned, or structures from elsewhere (a dump). None removes a table."""
        for name, table in changes.items():
            if table is None:
                self._tables.pop(name, None)
            else:
                self._tables[name] = table

    def without_effect(self, ddl: Ddl) -> bool:
        """Return whether the statement did nothing upstream: IF NOT EXISTS on something that the tracker has."""
        if not ddl.if_not_exists or ddl.kind is StatementKind.CREATE_INDEX:
            return False
        if ddl.kind is StatementKind.CREATE_DATABASE:
            return any(name.schema == ddl.schema for name in self._tables)
        return ddl.tables[0] in self._tables

    def after(self, connection: Any, *statements: Ddl) -> Changes:
        """Return the changes by the statements: every table touched, with its last structure or None.

        The tracker itself stays as it is; the caller calls `apply` when its own work is durable. Runs on the target, on
        a connection without an open transaction. Raises DdlError DDL-003 where the server refuses, DDL-004 for a table
        whose structure nobody knows; MySQLdb.Error for a lost connection.
        """
        ahead = replace(self, _tables=dict(self._tables))
        changes: Changes = {}
        for ddl in statements:
            found = ahead._after(connection, ddl)
            ahead.apply(found)
            changes |= found
        return changes

    def _after(self, connection: Any, ddl: Ddl) -> Changes:
        if self.without_effect(ddl) or ddl.kind is StatementKind.TRUNCATE_TABLE:
            return {}
        if ddl.kind is StatementKind.DROP_TABLE:
            return dict.fromkeys(ddl.tables)
        if ddl.kind is StatementKind.DROP_DATABASE:
            return {name: None for name in self._tables if name.schema == ddl.schema}
        if is_tidb(connection):
            return self._computed(with_computed_bounds(connection, ddl))
        with open_scratch(connection, self.place) as scratch:
            if ddl.kind.on_schema:
                return self._schema_after(scratch, ddl)
            changes = self._make_schemas(scratch, ddl)
            for table in self._needed(ddl):
                scratch.load(table)
            scratch.run(ddl)
            found = {name: scratch.read(name) for name in dict.fromkeys(ddl.tables)}
            if not ddl.context.mariadb:
                found = {name: _of_mysql(table) for name, table in found.items()}
            return changes | found

    def _computed(self, ddl: Ddl) -> Changes:
        """Compute the structures after a statement, without a server. Raises DdlError DDL-004, DDL-037."""
        try:
            if ddl.kind.on_schema:
                before = self.schema_sql(ddl.schema) if ddl.kind is StatementKind.ALTER_DATABASE else None
                gone = (name for name in self._tables if ddl.or_replace and name.schema == ddl.schema)
                made = schema_table(ddl.schema, evaluated_schema(ddl, before))
                return {**dict.fromkeys(gone), schema_row(ddl.schema): made}
            changes: Changes = {}
            schema = ddl.tables[0].schema
            if ddl.kind is StatementKind.CREATE_TABLE and schema_row(schema) not in self._tables:
                create_sql = self.schema_sql(schema)
                changes = {schema_row(schema): schema_table(schema, create_sql)} if create_sql is not None else {}
            for _ in self._needed(ddl):
                pass  # raises for a table whose structure nobody knows
            return changes | evaluate(ddl, self.get, self.schema_sql)
        except NotUnderstoodError as error:
            raise DdlError("DDL-037", ddl.context.where, str(error), {"statement": ddl.text}) from error

    def _make_schemas(self, scratch: Scratch, ddl: Ddl) -> Changes:
        """Make stand-ins of all schemas in which the statement names objects; return rows of schemas that had none."""
        changes: Changes = {}
        named = (place.name.schema for place in ddl.places if place.role is not TableRole.MENTION)
        for schema in dict.fromkeys(named):
            known = schema_row(schema) in self._tables
            create_sql = self.schema_sql(schema)
            if not known and create_sql is not None and ddl.kind is StatementKind.CREATE_TABLE:
                changes[schema_row(schema)] = schema_table(schema, create_sql)
            scratch.make_schema(schema, create_sql, ddl)
        return changes

    def _schema_after(self, scratch: Scratch, ddl: Ddl) -> Changes:
        changes: Changes = {}
        if ddl.kind is StatementKind.ALTER_DATABASE:
            scratch.make_schema(ddl.schema, self.schema_sql(ddl.schema), ddl)
        elif ddl.or_replace:
            changes = {name: None for name in self._tables if name.schema == ddl.schema}
        scratch.run(ddl)
        create_sql = scratch.read_schema(ddl.schema)
        return changes | {schema_row(ddl.schema): schema_table(ddl.schema, create_sql) if create_sql else None}

    def _needed(self, ddl: Ddl) -> Iterable[Table]:
        """Yield the tables that must exist for the statement, each once."""
        for name in ddl.needed:
            table = self.get(name)
            if table is not None:
                yield table
            elif not ddl.table_may_be_missing:
                values = {"table": str(name), "statement": ddl.text}
                raise DdlError("DDL-004", ddl.context.where, values=values)


def _of_mysql(table: Table | None) -> Table | None:
    """Return the structure that a MySQL upstream has, where MariaDB made the copy.

    MariaDB makes a LONGTEXT with a check of a JSON column, and hidden columns for keys USING HASH.
    """
    if table is None:
        return None
    table = without_hashes(table)
    columns = tuple(
        replace(column, type="json", definition="json", charset=None, collation=None, length=0)
        if column.collation == "utf8mb4_bin" and json_check(column.name) in table.create_sql
        else column
        for column in table.columns
    )
    return replace(table, columns=columns)


def schema_row(schema: str) -> TableName:
    """Return the name under which a schema's own row is kept."""
    return TableName(schema, "")


def schema_table(schema: str, create_sql: str) -> Table:
    """Return the row that represents a schema among the tables; `create_sql` is its CREATE DATABASE."""
    return Table(schema_row(schema), (), create_sql=create_sql)
