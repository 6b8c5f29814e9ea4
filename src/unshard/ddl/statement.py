"""A DDL statement as a value: its kind, the names in it, the place of each of them in the text; and its session.

The upstream session in which a statement was run is what the statement's event in the binlog records of it (`Context`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from unshard.binlog.query import QueryEvent
from unshard.errors import Where
from unshard.model.table import TableName

_MODES: Mapping[int, str] = {
    0: "REAL_AS_FLOAT",
    1: "PIPES_AS_CONCAT",
    2: "ANSI_QUOTES",
    3: "IGNORE_SPACE",
    4: "IGNORE_BAD_TABLE_OPTIONS",
    5: "ONLY_FULL_GROUP_BY",
    6: "NO_UNSIGNED_SUBTRACTION",
    7: "NO_DIR_IN_CREATE",
    8: "POSTGRESQL",
    9: "ORACLE",
    10: "MSSQL",
    11: "DB2",
    12: "MAXDB",
    13: "NO_KEY_OPTIONS",
    14: "NO_TABLE_OPTIONS",
    15: "NO_FIELD_OPTIONS",
    16: "MYSQL323",
    17: "MYSQL40",
    18: "ANSI",
    19: "NO_AUTO_VALUE_ON_ZERO",
    20: "NO_BACKSLASH_ESCAPES",
    21: "STRICT_TRANS_TABLES",
    22: "STRICT_ALL_TABLES",
    23: "NO_ZERO_IN_DATE",
    24: "NO_ZERO_DATE",
    25: "ALLOW_INVALID_DATES",
    26: "ERROR_FOR_DIVISION_BY_ZERO",
    27: "TRADITIONAL",
    28: "NO_AUTO_CREATE_USER",
    29: "HIGH_NOT_PRECEDENCE",
    30: "NO_ENGINE_SUBSTITUTION",
    31: "PAD_CHAR_TO_FULL_LENGTH",
}
"""Bits of the sql_mode status variable that mean the same in MySQL and MariaDB, or exist in MariaDB only."""

_MARIADB_MODES: Mapping[int, str] = {
    32: "EMPTY_STRING_IS_NULL",
    33: "SIMULTANEOUS_ASSIGNMENT",
    34: "TIME_ROUND_FRACTIONAL",
}
_MYSQL_MODES: Mapping[int, str] = {32: "TIME_TRUNCATE_FRACTIONAL"}
MODE_NAMES = frozenset({*_MODES.values(), *_MARIADB_MODES.values(), *_MYSQL_MODES.values()})
"""Every sql_mode that either server knows."""

STRICT_MODES = frozenset(
    {
        "NO_ZERO_IN_DATE",
        "NO_ZERO_DATE",
        "ERROR_FOR_DIVISION_BY_ZERO",
        "NO_AUTO_CREATE_USER",
        "STRICT_TRANS_TABLES",
        "STRICT_ALL_TABLES",
        "TRADITIONAL",
    }
)
"""Modes that are left out on the target: a statement that the source took must not fail there by a stricter check."""

_EXPLICIT_DEFAULTS = 1 << 24
_SQL_IF_EXISTS = 1 << 28
_QUOTING_BY_NAME = frozenset({"ANSI", "POSTGRESQL", "ORACLE", "MSSQL", "DB2", "MAXDB"})


@dataclass(frozen=True, slots=True)
class Context:
    """The upstream session of one statement.

    Args:
        schema: the default schema; "" where there was none.
        sql_mode: the event's bit mask, or names with commas between them.
        timestamp: the value of NOW(): seconds since 1970, with the fraction where the event has one.
        time_zone: an offset or a name. "" where the event has none, which means that nothing in it depends on it.
            Never SYSTEM: the caller puts in the zone that SYSTEM was upstream.
        collation_connection, collation_server: ids as in the event; 0 where it has none. The text itself is decoded.
        explicit_defaults_for_timestamp: None where the event doesn't record it; the target's own setting counts then.
        sql_if_exists: MariaDB: IF EXISTS holds for tables and schemas although the text doesn't say so.
        mariadb: whether a MariaDB server wrote the event (only MariaDB runs `/*M! … */`).
        lower_case_names: whether the source folds names of schemas and tables (`lower_case_table_names` is 1); row
            events have folded names, statements have not.
        where: source and position, for errors.
        default_collations: ids of the session's default collations of character sets, where they differ from those that
            the server was built with.
        auto_increment: `auto_increment_increment` and `auto_increment_offset`.
        strict: whether the statement is one of ours, which no source has run: the target refuses what it would cut.
        by_tool: whether a tool of online DDL ran it on a copy that the tool itself filled (`ddl.online`).
    """

    schema: str = ""
    sql_mode: int | str = 0
    timestamp: float = 0.0
    time_zone: str = ""
    collation_connection: int = 0
    collation_server: int = 0
    explicit_defaults_for_timestamp: bool | None = None
    sql_if_exists: bool = False
    mariadb: bool = True
    lower_case_names: bool = False
    where: Where = field(default_factory=Where)
    default_collations: tuple[int, ...] = ()
    by_tool: bool = False
    auto_increment: tuple[int, int] = (1, 1)
    strict: bool = False

    @property
    def modes(self) -> tuple[str, ...]:
        """Names of the modes in sql_mode, in the order of their bits. Raises ValueError for a bit without a name."""
        if isinstance(self.sql_mode, str):
            return tuple(name.strip().upper() for name in self.sql_mode.split(",") if name.strip())
        known = {**_MODES, **(_MARIADB_MODES if self.mariadb else _MYSQL_MODES)}
        if not self.mariadb:
            known.pop(4)  # "not used" there
        return tuple(_name(known, bit) for bit in range(self.sql_mode.bit_length()) if self.sql_mode >> bit & 1)

    @property
    def target_modes(self) -> tuple[str, ...]:
        """Modes for a session that runs the statement again: those that decide its meaning; strict if it is `strict`.

        IGNORE_SPACE is kept where it was set and never added: with it, a column called `count` can't be before a
        bracket.
        """
        kept = [name for name in self.modes if name not in STRICT_MODES]
        return tuple(dict.fromkeys([*kept, "ALLOW_INVALID_DATES", *(["STRICT_ALL_TABLES"] if self.strict else [])]))

    @property
    def ansi_quotes(self) -> bool:
        """True if double quotes delimit names in the statement."""
        return "ANSI_QUOTES" in self.modes or not _QUOTING_BY_NAME.isdisjoint(self.modes)

    @property
    def backslash_escapes(self) -> bool:
        """True if a backslash escapes in the statement's strings."""
        return "NO_BACKSLASH_ESCAPES" not in self.modes

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form, which `from_dict` reads."""
        return {
            "schema": self.schema,
            "sql_mode": self.sql_mode,
            "timestamp": self.timestamp,
            "time_zone": self.time_zone,
            "collation_connection": self.collation_connection,
            "collation_server": self.collation_server,
            "explicit_defaults_for_timestamp": self.explicit_defaults_for_timestamp,
            "sql_if_exists": self.sql_if_exists,
            "mariadb": self.mariadb,
            "lower_case_names": self.lower_case_names,
            "where": self.where.to_dict(),
            "default_collations": self.default_collations,
            "by_tool": self.by_tool,
            "auto_increment": self.auto_increment,
            "strict": self.strict,
        }

    @classmethod
    def from_dict(cls, form: Mapping[str, Any]) -> Context:
        """Read the form of `to_dict`. Fields that earlier versions did not store get their defaults."""
        step, offset = form.get("auto_increment", (1, 1))
        return cls(
            form["schema"],
            form["sql_mode"],
            form["timestamp"],
            form["time_zone"],
            form["collation_connection"],
            form["collation_server"],
            form["explicit_defaults_for_timestamp"],
            form["sql_if_exists"],
            form["mariadb"],
            form["lower_case_names"],
            Where.from_dict(form["where"]),
            tuple(form.get("default_collations", ())),
            form.get("by_tool", False),
            (step, offset),
            form.get("strict", False),
        )


def mariadb_flags(query: QueryEvent) -> dict[str, Any]:
    """Return the fields of `Context` that only MariaDB logs; two of them are bits of the status variable FLAGS2."""
    return {
        "explicit_defaults_for_timestamp": bool(query.flags2 & _EXPLICIT_DEFAULTS),
        "sql_if_exists": bool(query.flags2 & _SQL_IF_EXISTS),
        "default_collations": query.charset_collations or (),
    }


def mysql_flags(query: QueryEvent) -> dict[str, Any]:
    """Return the fields of `Context` that only MySQL logs."""
    return {
        "explicit_defaults_for_timestamp": query.explicit_defaults,
        "default_collations": () if query.utf8mb4_collation is None else (query.utf8mb4_collation,),
    }


def _name(known: Mapping[int, str], bit: int) -> str:
    if bit not in known:
        raise ValueError(f"bit {bit} of sql_mode is not known")
    return known[bit]


class StatementKind(StrEnum):
    """The kind of a statement.

    SEQUENCE is any statement on MariaDB's sequences, TABLE_FILES an ALTER TABLE with DISCARD or IMPORT TABLESPACE: it
    moves a table's files, which are not in the log. Sequences (`pieces.sequence`), temporary tables
    (`pieces.temporary_table`) and such files (`pieces.table_files`) are not carried.
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
    """A table's name and its place in the statement: `text[start:end]`, schema and dot included."""

    name: TableName
    role: TableRole
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Skipped:
    """A statement that changes nothing that is carried; `reason` is that of a rule in `unshard.ddl.parse`."""

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
    def table_may_be_missing(self) -> bool:
        """True if IF EXISTS applies to the table (and not to an index), or the session sets it for all statements."""
        return self.context.sql_if_exists or (self.if_exists and self.kind is not StatementKind.DROP_INDEX)

    @property
    def like(self) -> TableName | None:
        """The table that CREATE TABLE … LIKE takes its structure from."""
        return next((place.name for place in self.places if place.role is TableRole.MODEL), None)
