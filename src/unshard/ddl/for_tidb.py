"""Translates routed statements of the log into statements that a TiDB target accepts.

| statement | for TiDB |
|---|---|
| CREATE TABLE with columns | written anew from its definition, with nothing left to TiDB's own defaults |
| ALTER TABLE, CREATE INDEX, DROP INDEX | its operations, in as few statements as TiDB takes them |
| CREATE DATABASE, ALTER DATABASE | with a collation that TiDB has |
| DROP, RENAME and TRUNCATE of a table, CREATE TABLE … LIKE | the same without words that only MariaDB knows |

A statement that an operator puts in the place of another is not translated. The rules are those of `schema.tidb`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from unshard.ddl.context import ROUND, TRUNCATE, Context
from unshard.ddl.conversions import PADS, converted_unlike_upstream
from unshard.ddl.evaluate import (
    created_definition,
    definition_of,
    dialect_of,
    evaluated_schema,
    operations,
    surroundings,
)
from unshard.ddl.parse import classify_ddl
from unshard.ddl.rewrite import renames, without_ignore
from unshard.ddl.statement import Ddl, StatementKind
from unshard.errors import DdlError
from unshard.log import logger
from unshard.model.table import Table, TableName
from unshard.mysql.connection import rows
from unshard.mysql.structure import read_table
from unshard.mysql.target_session import tidb_version
from unshard.mysql.tidb_collations import nearest
from unshard.schema.alter import altered
from unshard.schema.definition import ColumnDefinition, Dialect, TableDefinition
from unshard.schema.implied import complete_table
from unshard.schema.text import to_table, type_text
from unshard.schema.tidb import (
    NotInTidbError,
    TidbWords,
    Translation,
    alter_database,
    create_database,
    create_table,
    tidb_column,
)
from unshard.schema.tidb_alter import alter_table
from unshard.schema.words import ContradictionError, NotUnderstoodError

_STRICT = frozenset({"STRICT_ALL_TABLES", "STRICT_TRANS_TABLES"})
_MODES = frozenset({"PIPES_AS_CONCAT", "ANSI_QUOTES", "HIGH_NOT_PRECEDENCE", PADS, ROUND, TRUNCATE})
"""Modes that decide what an expression or a conversion means. In a translated text a backslash escapes."""


def words_of(connection: Any, wished: Mapping[str, str]) -> TidbWords:
    """Return the version and collations of the TiDB at this connection.

    `wished` maps collations of the source to those that the user wants in their place.
    """
    available = frozenset(str(row[0]) for row in rows(connection, "SHOW COLLATION"))
    version = tidb_version(connection.get_server_info())
    return TidbWords(lambda collation: nearest(collation, available, wished), version or (7, 5, 0))


def for_tidb(
    connection: Any,
    ddl: Ddl,
    upstream: Table | None,
    create_schema: str | None,
    wished: Mapping[str, str],
    *,
    strict: bool = False,
) -> tuple[Ddl, ...]:
    """Return the statements that replace a routed one on TiDB.

    `upstream` is the source's table before the statement. It is None where the statement makes the table, and where
    nobody knows it, because the table's copy has the statement: the target's own table then stands in for it.
    `create_schema` is SHOW CREATE DATABASE of the source's schema. `strict`: all rows of the target's table are that
    source table's, so a statement of a strict session refuses on TiDB too what it would cut (`_stays_strict`). Reads
    the target's own table from the target. Raises DdlError DDL-037 for a statement that is not understood, DDL-038 for
    one that TiDB does not support, DDL-040 for one that does not fit the source's table, as what a filter leaves of a
    statement may not.
    """
    try:
        found = _translated(connection, ddl, upstream, create_schema, wished)
    except ContradictionError as error:
        where = replace(ddl.context.where, table=str(ddl.tables[0]))
        raise DdlError("DDL-040", where, str(error), {"statement": ddl.text}) from error
    except NotUnderstoodError as error:
        raise DdlError("DDL-037", ddl.context.where, str(error), {"statement": ddl.text}) from error
    except NotInTidbError as error:
        raise DdlError("DDL-038", ddl.context.where, str(error), {"statement": ddl.text}) from error
    if found.left_out:
        words = {"statement": ddl.text[:200], "left_out": "; ".join(found.left_out)}
        logger("sync", source=ddl.context.where.source or "").warning("TiDB has no such thing: left out", **words)
    context = _session(ddl.context, ddl.schema)
    if strict and upstream is not None and _stays_strict(ddl, upstream, create_schema):
        context = replace(context, strict=True)
    return tuple(classify_ddl(text, context) for text in found.statements)


def _translated(
    connection: Any, ddl: Ddl, upstream: Table | None, create_schema: str | None, wished: Mapping[str, str]
) -> Translation:
    around = surroundings(ddl.context, create_schema)
    match ddl.kind:
        case StatementKind.CREATE_DATABASE | StatementKind.ALTER_DATABASE:
            collation = surroundings(ddl.context, evaluated_schema(ddl, create_schema)).collation
            words = words_of(connection, wished)
            if ddl.kind is StatementKind.ALTER_DATABASE:
                return Translation((alter_database(ddl.schema, collation, words),))
            text = create_database(ddl.schema, collation, words, if_not_exists=ddl.if_not_exists)
            return Translation((text,))
        case StatementKind.CREATE_TABLE if ddl.like is None:
            name = ddl.tables[0]
            made = complete_table(created_definition(ddl), name.table, around)
            return create_table(made, name, words_of(connection, wished), if_not_exists=ddl.if_not_exists)
        case StatementKind.CREATE_TABLE:
            assert ddl.like is not None
            unless = "IF NOT EXISTS " if ddl.if_not_exists else ""
            return Translation((f"CREATE TABLE {unless}{ddl.tables[0].quoted} LIKE {ddl.like.quoted}",))
        case StatementKind.ALTER_TABLE | StatementKind.CREATE_INDEX | StatementKind.DROP_INDEX:
            return _altered(connection, ddl, upstream, create_schema, wished)
        case StatementKind.RENAME_TABLE:
            if ddl.table_may_be_missing and upstream is None and read_table(connection, ddl.tables[0]) is None:
                return Translation(())
            pairs = ", ".join(f"{old.quoted} TO {new.quoted}" for old, new in renames(ddl))
            return Translation((f"RENAME TABLE {pairs}",))
        case StatementKind.DROP_TABLE:
            maybe = "IF EXISTS " if ddl.table_may_be_missing else ""
            return Translation((f"DROP TABLE {maybe}{', '.join(name.quoted for name in ddl.tables)}",))
        case StatementKind.TRUNCATE_TABLE:
            return Translation((f"TRUNCATE TABLE {ddl.tables[0].quoted}",))
    return Translation((ddl.text,))


def _altered(
    connection: Any, ddl: Ddl, upstream: Table | None, create_schema: str | None, wished: Mapping[str, str]
) -> Translation:
    name = ddl.tables[0]
    found = read_table(connection, name)
    if found is None and ddl.table_may_be_missing:
        return Translation(())
    there = definition_of(found, Dialect.TIDB) if found is not None else None
    dialect = dialect_of(ddl.context)
    before = definition_of(upstream, dialect) if upstream is not None else there or TableDefinition(())
    around = surroundings(ddl.context, create_schema)
    made = alter_table(operations(ddl), name, before, there, around, words_of(connection, wished))
    pairs = renames(ddl)
    if not pairs or "EXCHANGE" in ddl.actions:
        return made
    (_, new), *_ = pairs
    return replace(made, statements=(*made.statements, f"ALTER TABLE {name.quoted} RENAME TO {new.quoted}"))


def _stays_strict(ddl: Ddl, upstream: Table, create_schema: str | None) -> bool:
    """Return whether the source's rows have passed an ALTER TABLE in a strict session, and TiDB converts them alike.

    Values that TiDB converts otherwise are written anew after the statement.
    """
    if not rows_passed_strict(ddl):
        return False
    before, found = definition_of(upstream, dialect_of(ddl.context)), operations(ddl)
    after = altered(before, found, ddl.tables[0].table, surroundings(ddl.context, create_schema))
    return not converted_unlike_upstream([ddl], before, after)


def rows_passed_strict(ddl: Ddl) -> bool:
    """Return whether the source's rows have passed an ALTER TABLE in a strict session.

    A tool may copy rows by INSERT IGNORE.
    """
    altering = ddl.kind is StatementKind.ALTER_TABLE and without_ignore(ddl) is ddl and "EXCHANGE" not in ddl.actions
    return altering and not ddl.context.by_tool and not _STRICT.isdisjoint(ddl.context.modes)


def _session(context: Context, schema: str) -> Context:
    """Return the session for a statement that names all its options: only what expressions depend on is kept."""
    modes = ",".join(mode for mode in context.modes if mode in _MODES)
    return replace(context, schema=schema, sql_mode=modes, collation_server=0, default_collations=())


def upstream_structure(
    there: Table, now: Table | None, name: TableName, dialect: Dialect, words: TidbWords
) -> Table | None:
    """Return the structure that a source's table had, derived from TiDB's table and the source's table as it is now.

    For a task that begins without a copy. TiDB's collations don't determine the source's character sets, so these are
    taken from the source's present table; None where the source has no such text column now. Pure.
    """
    mine = definition_of(there, Dialect.TIDB)
    theirs = definition_of(now, dialect) if now is not None else TableDefinition(())
    columns = []
    for column in mine.columns:
        own = theirs.column(column.name)
        if own is not None and _is_for(own, column, words):
            column = own
        elif column.type.is_text and (own is None or not own.type.is_text):
            return None
        elif column.type.is_text and own is not None:
            column = replace(column, charset=own.charset, collation=own.collation)
        columns.append(column)
    charset, collation = (theirs.charset, theirs.collation) if now is not None else (mine.charset, mine.collation)
    made = replace(mine, columns=tuple(columns), charset=charset, collation=collation)
    return to_table(made, name, dialect)


def _is_for(own: ColumnDefinition, there: ColumnDefinition, words: TidbWords) -> bool:
    """Return whether TiDB's type for the source's column `own` is just the type of `there`."""
    try:
        return type_text(tidb_column(own, words).type, Dialect.TIDB) == type_text(there.type, Dialect.TIDB)
    except NotInTidbError:
        return False
