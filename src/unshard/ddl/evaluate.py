"""Computes the structures of tables after a statement; no server is asked.

The rules are in `schema`. A statement that they do not cover raises NotUnderstoodError.

| statement | structures after it |
|---|---|
| CREATE TABLE | as written, with what the server adds |
| CREATE TABLE … LIKE | the model's, without its foreign keys |
| ALTER TABLE, CREATE INDEX, DROP INDEX | its operations applied |
| RENAME TABLE, ALTER TABLE … RENAME | the same under the new name, as are names made from the old one |
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from unshard.ddl.context import Context
from unshard.ddl.cursor import tokens_of
from unshard.ddl.lost_modes import deciding_modes
from unshard.ddl.rewrite import renames
from unshard.ddl.statement import Ddl, StatementKind
from unshard.model.table import Table, TableName, quote_name
from unshard.mysql.collations import collation_of
from unshard.schema.alter import altered
from unshard.schema.definition import Dialect, TableDefinition
from unshard.schema.implied import Surroundings, charset_of, complete_table
from unshard.schema.lex import Token, TokenKind
from unshard.schema.operations import Operation
from unshard.schema.statements import read_alter, read_create, read_index
from unshard.schema.text import read_show_create, schema_options, to_table
from unshard.schema.words import NotUnderstoodError

Structures = dict[TableName, Table | None]
TableOf = Callable[[TableName], Table | None]
"""Returns a table as it is before the statement; None where there is none."""

SchemaOf = Callable[[str], str | None]
"""Returns SHOW CREATE DATABASE of a schema; None where it is not known."""

_FALLBACK = {
    Dialect.MARIADB: "utf8mb4_general_ci",
    Dialect.MYSQL: "utf8mb4_0900_ai_ci",
    Dialect.TIDB: "utf8mb4_bin",
}
_OLD_DEFAULT = "latin1_swedish_ci"


def dialect_of(context: Context) -> Dialect:
    """Return the product that logged the statement. MySQL 8 logs its default collation of utf8mb4, older ones none."""
    if context.mariadb:
        return Dialect.MARIADB
    return Dialect.MYSQL if context.default_collations else Dialect.MYSQL_5


def server_dialect(*, mariadb: bool, version: Sequence[int]) -> Dialect:
    """Return the product of a server, by its version. MySQL before 8.0 shows tables in other words than later ones."""
    if mariadb:
        return Dialect.MARIADB
    return Dialect.MYSQL if tuple(version) >= (8,) else Dialect.MYSQL_5


def surroundings(
    context: Context, create_schema: str | None, dialect: Dialect | None = None, *, in_utc: bool = False
) -> Surroundings:
    """Return the settings of the session and of the schema (its SHOW CREATE DATABASE) that a structure depends on.

    `in_utc`: constants of TIMESTAMP columns are brought from the session's time zone to UTC.
    """
    dialect = dialect or dialect_of(context)
    defaults = {}
    for number in context.default_collations:
        name = collation_of(number)
        defaults[charset_of(name)] = name
    explicit, zone = context.explicit_defaults_for_timestamp is not False, context.time_zone if in_utc else ""
    around = Surroundings(dialect, "", defaults, explicit, time_zone=zone)
    return replace(around, collation=_schema_collation(context, create_schema, around))


def _schema_collation(context: Context, create_schema: str | None, around: Surroundings) -> str:
    if create_schema is not None:
        charset, collation = schema_options(create_schema)
        # SHOW CREATE DATABASE omits a collation that is the server's own default of the character set, not the
        # session's
        if charset:
            return collation or Surroundings(
                around.dialect, default_collations=_own_defaults(around)
            ).default_collation(charset)
    if context.collation_server:
        return collation_of(context.collation_server)
    return _FALLBACK.get(around.dialect, _OLD_DEFAULT)


def _own_defaults(around: Surroundings) -> dict[str, str]:
    if around.dialect is Dialect.TIDB:
        return {charset: f"{charset}_bin" for charset in ("utf8mb4", "utf8mb3", "latin1", "ascii")}
    return {"utf8mb4": "utf8mb4_0900_ai_ci"} if around.dialect is Dialect.MYSQL else {}


def definition_of(table: Table, dialect: Dialect) -> TableDefinition:
    """Return a table's definition, read from its SHOW CREATE TABLE. Raises NotUnderstoodError."""
    read = read_show_create(table.create_sql, dialect)
    around = Surroundings(
        dialect, _FALLBACK.get(dialect, _OLD_DEFAULT), _own_defaults(Surroundings(dialect)), shown=True
    )
    return complete_table(read, table.name.table, around)


def tidb_definition(create_sql: str, name: TableName) -> TableDefinition:
    """Return the definition in a SHOW CREATE TABLE text of TiDB, real or computed. Raises NotUnderstoodError."""
    dialect = Dialect.TIDB
    around = Surroundings(dialect, _FALLBACK.get(dialect, _OLD_DEFAULT), _own_defaults(Surroundings(dialect)))
    return complete_table(read_show_create(create_sql, dialect), name.table, around)


def same_on_tidb(one: str, other: str, name: TableName) -> bool:
    """Return whether two SHOW CREATE TABLE texts of TiDB have the same columns and keys.

    One of the texts may be computed. Returns False for a text that is not understood.
    """
    try:
        read = [tidb_definition(text, name) for text in (one, other)]
    except NotUnderstoodError:
        return False
    first, second = (to_table(table, name, Dialect.TIDB) for table in read)
    return (first.columns, first.indexes) == (second.columns, second.indexes)


def evaluate(ddl: Ddl, table_of: TableOf, schema_of: SchemaOf, dialect: Dialect | None = None) -> Structures:
    """Return every table that the statement changes, as it is afterwards; None for the old name of a RENAME. Pure.

    For CREATE TABLE, ALTER TABLE, RENAME TABLE, CREATE INDEX and DROP INDEX. `dialect` is that of the server that holds
    the tables, where it is not the server that logged the statement. Raises NotUnderstoodError.
    """
    dialect = dialect or dialect_of(ddl.context)
    if ddl.kind is StatementKind.CREATE_TABLE:
        return _created(ddl, dialect, table_of, schema_of)
    if ddl.kind is StatementKind.RENAME_TABLE:
        return _renamed(ddl, dialect, table_of)
    if ddl.kind not in (StatementKind.ALTER_TABLE, StatementKind.CREATE_INDEX, StatementKind.DROP_INDEX):
        raise NotUnderstoodError(f"{ddl.kind} is not followed")
    name = ddl.tables[0]
    table = table_of(name)
    if table is None:
        if ddl.table_may_be_missing:
            return {}
        raise NotUnderstoodError(f"the structure of {name} is not known")
    if {"EXCHANGE"} & ddl.actions:
        return {}
    around = surroundings(ddl.context, schema_of(name.schema), dialect, in_utc=True)
    behind = altered(definition_of(table, dialect), operations(ddl), name.table, around)
    pairs = renames(ddl)
    if not pairs:
        return {name: to_table(behind, name, dialect)}
    new = pairs[0][1]
    return {name: None, new: to_table(_with_own_names(behind, name, new), new, dialect)}


def operations(ddl: Ddl) -> tuple[Operation, ...]:
    """Return the operations of an ALTER TABLE, CREATE INDEX or DROP INDEX on its table. Raises NotUnderstoodError.

    In texts that the operations hold, a backslash escapes, whatever the statement's session had.
    """
    if ddl.kind is not StatementKind.ALTER_TABLE:
        found, text = _escaped(ddl, 0)
        start = next(place for place, token in enumerate(found) if token.word in ("CREATE", "DROP"))
        return read_index(found[start:], text)
    if ddl.parts_at is None:
        return ()
    return read_alter(*_escaped(ddl, ddl.parts_at))


def created_definition(ddl: Ddl) -> TableDefinition:
    """Return the definition in a CREATE TABLE with columns, as it is written. Raises NotUnderstoodError.

    In texts that it holds, a backslash escapes, whatever the statement's session had.
    """
    return read_create(*_escaped(ddl, ddl.places[0].end))


def _escaped(ddl: Ddl, since: int) -> tuple[list[Token], str]:
    """Return the statement's tokens from that place on, and its text; a backslash escapes in both.

    Raises NotUnderstoodError for a statement that means another thing by the sql_mode of its session.
    """
    found = tokens_of(ddl.text, ddl.context)
    if modes := deciding_modes(ddl.context.modes, found, mariadb=ddl.context.mariadb):
        raise NotUnderstoodError(f"sql_mode {', '.join(modes)} of its session gives it another meaning")
    if ddl.context.backslash_escapes:
        return [token for token in found if token.start >= since], ddl.text
    tokens, text, end = [], "", 0
    for token in found:
        text += ddl.text[end : token.start]
        start, end, value = len(text), token.end, token.value
        own = ddl.text[token.start : end]
        if token.kind is TokenKind.STRING:
            own = value = value.replace("\\", "\\\\")
        text += own
        if token.start >= since:
            tokens.append(replace(token, value=value, start=start, end=len(text)))
    return tokens, text + ddl.text[end:]


def _created(ddl: Ddl, dialect: Dialect, table_of: TableOf, schema_of: SchemaOf) -> Structures:
    name = ddl.tables[0]
    if ddl.like is not None:
        model = table_of(ddl.like)
        if model is None:
            raise NotUnderstoodError(f"the structure of {ddl.like} is not known")
        made = replace(definition_of(model, dialect), foreign_keys=())
        return {name: to_table(_with_own_names(made, ddl.like, name), name, dialect)}
    around = surroundings(ddl.context, schema_of(name.schema), dialect, in_utc=True)
    return {name: to_table(complete_table(created_definition(ddl), name.table, around), name, dialect)}


def _renamed(ddl: Ddl, dialect: Dialect, table_of: TableOf) -> Structures:
    changes: Structures = {}
    for old, new in renames(ddl):
        table = changes[old] if old in changes else table_of(old)
        if table is None:
            if ddl.table_may_be_missing:
                continue
            raise NotUnderstoodError(f"the structure of {old} is not known")
        changes[old] = None
        changes[new] = to_table(_with_own_names(definition_of(table, dialect), old, new), new, dialect)
    return changes


def _with_own_names(table: TableDefinition, old: TableName, new: TableName) -> TableDefinition:
    """Rename the constraints that the server named after the table's old name, so that they follow the new name."""
    own = re.compile(rf"{re.escape(old.table)}(_(?:ibfk|chk)_\d+)", re.IGNORECASE)

    def moved(name: str) -> str:
        found = own.fullmatch(name)
        return new.table + found[1] if found else name

    return replace(
        table,
        foreign_keys=tuple(replace(key, name=moved(key.name)) for key in table.foreign_keys),
        checks=tuple(replace(check, name=moved(check.name)) for check in table.checks),
    )


def evaluated_schema(ddl: Ddl, create_sql: str | None) -> str:
    """Return SHOW CREATE DATABASE after a CREATE or ALTER DATABASE; `create_sql` is the text before it. Pure."""
    around = surroundings(ddl.context, create_sql if ddl.kind is StatementKind.ALTER_DATABASE else None)
    start = ddl.schema_place[1] if ddl.schema_place else 0
    charset, collation = schema_options(ddl.text[start:])
    if charset and not collation:
        collation = around.default_collation(charset)
    collation = collation or around.collation
    options = f"DEFAULT CHARACTER SET {charset_of(collation)} COLLATE {collation}"
    return f"CREATE DATABASE {quote_name(ddl.schema)} /*!40100 {options} */"
