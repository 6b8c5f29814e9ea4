"""A DDL statement as a value: its kind, the names in it, the place of each of them in the text."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from unshard.ddl.context import Context
from unshard.model.table import TableName


class StatementKind(StrEnum):
    """The kind of a statement.

    SEQUENCE is any statement on MariaDB's sequences, TABLE_FILES an ALTER TABLE with DISCARD or IMPORT TABLESPACE: it
    moves a table's files, which are not in the log. Sequences (`pieces.sequence`), temporary tables
    (`pieces.temporary_table`) and such files (`pieces.table_files`) are not replicated.
    """

    CREATE_DATABASE = "create database"
    ALTER_DATABASE = "alter database"
    DROP_DATABASE = "drop database"
    CREATE_TABLE = "create table"
    ALTER_TABLE = "alter table"
    DROP_TABLE = "drop table"
    TRUNCATE_TABLE = "truncate table"
    RENAME_TABLE = "rename table"
    CREATE_INDEX = "create index"
    DROP_INDEX = "drop index"
    SEQUENCE = "sequence"
    TEMPORARY_TABLE = "create temporary table"
    TABLE_FILES = "alter table tablespace"

    @property
    def on_schema(self) -> bool:
        """True if the statement is on a schema, not on tables."""
        return self in (StatementKind.CREATE_DATABASE, StatementKind.ALTER_DATABASE, StatementKind.DROP_DATABASE)


class TableRole(StrEnum):
    """The effect of a statement on a table that it names.

    | role | the table |
    |---|---|
    | OBJECT | exists before (except for CREATE TABLE) and is changed, filled anew or dropped |
    | NEW | gets its name by the statement: RENAME … TO, CONVERT PARTITION … TO TABLE |
    | MODEL | is only read: CREATE TABLE … LIKE |
    | MENTION | is only pointed to: REFERENCES, UNION of a MERGE table |
    """

    OBJECT = "object"
    NEW = "new"
    MODEL = "model"
    MENTION = "mention"


@dataclass(frozen=True, slots=True)
class NamePlace:
    """A table's name in a statement, and its place: `text[start:end]`, schema and dot included."""

    name: TableName
    role: TableRole
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Skipped:
    """A statement that changes nothing that is replicated; `reason` is that of a rule in `unshard.ddl.parse`."""

    reason: str


@dataclass(frozen=True, slots=True)
class Ddl:
    """One statement on tables or on a schema.

    Args:
        text: the statement as it was written.
        context: the session that it was run in.
        schema: the schema that it is on: its own for the database kinds, else that of the first table.
        schema_place: the place of the schema's name, for the database kinds; empty where ALTER DATABASE leaves the
            name out, and a name has to be inserted there.
        places: the table names in the order of the text.
        parts_at: ALTER TABLE: where its parts begin; None without any.
        actions: ALTER TABLE: the first words of each of its parts (`ADD`, `RENAME COLUMN`, `EXCHANGE`).
        cut: a range of the text that is not run (MySQL's START TRANSACTION at the end of a logged CREATE … SELECT).
        body: CREATE TABLE: where the bracket of its columns closes; None for LIKE.
        charset_given: CREATE TABLE: whether it names its own character set or collation.
    """

    kind: StatementKind
    text: str
    context: Context
    schema: str
    schema_place: tuple[int, int] | None = None
    places: tuple[NamePlace, ...] = ()
    if_exists: bool = False
    if_not_exists: bool = False
    or_replace: bool = False
    parts_at: int | None = None
    actions: frozenset[str] = frozenset()
    cut: tuple[int, int] | None = None
    body: int | None = None
    charset_given: bool = False

    @property
    def tables(self) -> tuple[TableName, ...]:
        """The tables that it makes, changes or removes, in the order of the text; (old, new, old, new …) for RENAME."""
        return tuple(place.name for place in self.places if place.role in (TableRole.OBJECT, TableRole.NEW))

    @property
    def drops_schema(self) -> bool:
        """True if all tables of a schema go: DROP DATABASE, and MariaDB's CREATE OR REPLACE DATABASE."""
        return self.kind is StatementKind.DROP_DATABASE or (self.kind.on_schema and self.or_replace)

    @property
    def needed(self) -> tuple[TableName, ...]:
        """The tables that exist before the statement: those that it changes or reads, without those that it makes."""
        made, found = set[TableName](), dict[TableName, None]()
        for place in self.places:
            if place.role is TableRole.NEW or (
                place.role is TableRole.OBJECT and self.kind is StatementKind.CREATE_TABLE
            ):
                made.add(place.name)
            elif place.role is not TableRole.MENTION and place.name not in made:
                found[place.name] = None
        return tuple(found)

    @property
    def table_may_be_missing(self) -> bool:
        """True if IF EXISTS applies to the table (and not to an index), or the session sets it for all statements."""
        return self.context.sql_if_exists or (self.if_exists and self.kind is not StatementKind.DROP_INDEX)

    @property
    def like(self) -> TableName | None:
        """The table that CREATE TABLE … LIKE takes its structure from."""
        return next((place.name for place in self.places if place.role is TableRole.MODEL), None)
