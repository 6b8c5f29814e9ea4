"""Reads table structures from a server: `information_schema` and SHOW CREATE TABLE to a `Table`."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from itertools import count, islice
from typing import Any

import MySQLdb

from unshard.model.table import Column, Index, Table, TableName
from unshard.mysql.connection import rows
from unshard.mysql.tidb import is_tidb

SYSTEM_SCHEMAS = frozenset(
    {"mysql", "information_schema", "performance_schema", "sys", "metrics_schema", "inspection_schema", "dm_heartbeat"}
)
"""Schemas that are never migrated (reference of DM, section 5.1), in lower case."""
NO_SUCH_TABLE = frozenset({1146, 1049})
"""Error numbers of a statement on a table that is not there, or whose schema is not."""

IS_TABLE = "TABLE_TYPE IN ('BASE TABLE', 'SYSTEM VERSIONED')"
"""The condition on `information_schema.TABLES` for tables with rows of their own: no views, no sequences."""

_IS_SEQUENCE = """
SELECT 1 FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s AND TABLE_TYPE = 'SEQUENCE'
"""

_NAMES = f"SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES WHERE {IS_TABLE}"

_COUNTER = re.compile(r" AUTO_INCREMENT=\d+")
_MEMBER = re.compile(r"'((?:[^'\\]|''|\\.)*)'", re.DOTALL)
_PLAIN_MEMBER = re.compile(r"'((?:[^']|'')*)'", re.DOTALL)
_ESCAPED = re.compile(r"''|\\(.)", re.DOTALL)
_MEANING = {"0": "\0", "n": "\n", "r": "\r"}
_TEXT = re.compile(r"'(?:[^'\\]|''|\\.)*'", re.DOTALL)
_PERIOD = re.compile(r"^  PERIOD FOR SYSTEM_TIME \(`((?:[^`]|``)+)`, `((?:[^`]|``)+)`\)", re.MULTILINE)

_GEOMETRIES = re.compile(r"^( +`(?:[^`]|``)+` )geomcollection\b", re.MULTILINE)
_HASH = "DB_ROW_HASH_"
_HASH_COLUMN = Column("", "bigint", "bigint(20) unsigned", True, precision=20, generated=True, invisible=True)
_IN_MEMORY = re.compile(r"\n\) ENGINE=MEMORY\b")

_COLUMNS = """
SELECT COLUMN_NAME, DATA_TYPE, COLUMN_TYPE, IS_NULLABLE, CHARACTER_SET_NAME, COLLATION_NAME,
       CHARACTER_MAXIMUM_LENGTH, NUMERIC_PRECISION, NUMERIC_SCALE, DATETIME_PRECISION, EXTRA, COLUMN_DEFAULT
  FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s ORDER BY ORDINAL_POSITION
"""
_INDEXES = """
SELECT INDEX_NAME, COLUMN_NAME, COALESCE(SUB_PART, 0), NON_UNIQUE, INDEX_TYPE
  FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s
 ORDER BY INDEX_NAME, SEQ_IN_INDEX
"""

_REFERENCE = re.compile(
    r"^  CONSTRAINT `(?:[^`]|``)+` FOREIGN KEY \([^)]*\) REFERENCES (`(?:[^`]|``)+`\.)?`((?:[^`]|``)+)`", re.MULTILINE
)
_CASCADES = """
SELECT CONSTRAINT_SCHEMA, TABLE_NAME, UNIQUE_CONSTRAINT_SCHEMA, REFERENCED_TABLE_NAME
  FROM information_schema.REFERENTIAL_CONSTRAINTS
 WHERE DELETE_RULE IN ('CASCADE', 'SET NULL') OR UPDATE_RULE IN ('CASCADE', 'SET NULL')
"""
_REFERENCES = """
SELECT DISTINCT TABLE_SCHEMA, TABLE_NAME, REFERENCED_TABLE_SCHEMA, REFERENCED_TABLE_NAME
  FROM information_schema.KEY_COLUMN_USAGE WHERE REFERENCED_TABLE_NAME IS NOT NULL
"""


def table_names(connection: Any) -> tuple[TableName, ...]:
    """Return every base table outside the system schemas, sorted.

    They are listed twice: MariaDB does not list a table in the moment in which ALTER TABLE, RENAME TABLE or CREATE OR
    REPLACE TABLE changes its files. A table that is created or dropped meanwhile may be among them.
    """
    found = {TableName(*name) for _ in range(2) for name in rows(connection, _NAMES)}
    return tuple(sorted(name for name in found if name.schema.lower() not in SYSTEM_SCHEMAS))


def read_table(connection: Any, name: TableName) -> Table | None:
    """Return the current structure of one table; None if there is no such table."""
    tidb = is_tidb(connection)
    columns = tuple(to_column(row, tidb=tidb) for row in rows(connection, _COLUMNS, (name.schema, name.table)))
    if not columns:
        return None
    create_sql = find_create_statement(connection, name)
    if create_sql is None:
        return None
    keys = rows(connection, _INDEXES, (name.schema, name.table))
    columns = with_hidden_columns(columns, keys, create_sql)
    period = {column.name for column in columns if column.period}
    return Table(
        name=name,
        columns=columns,
        indexes=to_indexes((key[:4] for key in keys), period),
        create_sql=create_sql,
        foreign_keys=" FOREIGN KEY " in create_sql,
    )


def is_sequence(connection: Any, name: TableName) -> bool:
    """Return whether a MariaDB has a sequence of that name."""
    return bool(rows(connection, _IS_SEQUENCE, (name.schema, name.table)))


def families(connection: Any) -> dict[TableName, TableName]:
    """Return, by table, the name of its family: the first, by name, of all tables that foreign keys connect it to.

    Contains every table that has a foreign key or is referenced by one.
    """
    return _families(_references(connection))


def cascading_families(connection: Any) -> dict[TableName, TableName]:
    """Return as `families`, by those foreign keys only by which a change of a row changes rows of another table."""
    return _families((TableName(*row[:2]), TableName(*row[2:])) for row in rows(connection, _CASCADES))


def _families(references: Iterable[tuple[TableName, TableName]]) -> dict[TableName, TableName]:
    found: dict[TableName, TableName] = {}
    for child, parent in references:
        one, other = found.setdefault(child, child), found.setdefault(parent, parent)
        joined = [name for name, family in found.items() if family in (one, other)]
        found.update(dict.fromkeys(joined, min(one, other)))
    return found


def _references(connection: Any) -> Iterator[tuple[TableName, TableName]]:
    """Yield each table with a foreign key, together with each table that it references."""
    found = [(TableName(*row[:2]), TableName(*row[2:])) for row in rows(connection, _REFERENCES)]
    if not is_tidb(connection):
        yield from found
        return
    for child in sorted({child for child, _ in found}):  # TiDB 7.5 names the child's schema as the parent's there
        for schema, table in _REFERENCE.findall(find_create_statement(connection, child) or ""):
            parent = (schema[1:-2] or child.schema, table)
            yield child, TableName(*(word.replace("``", "`") for word in parent))


def create_statement(connection: Any, name: TableName) -> str:
    """Return SHOW CREATE TABLE without the AUTO_INCREMENT counter, which is data and not structure."""
    (row,) = rows(connection, f"SHOW CREATE TABLE {name.quoted}")
    return with_known_types(_COUNTER.sub("", str(row[1]), count=1))


def known_type(name: str) -> str:
    """Return a type's name as all servers know it: MySQL 8.0.11 and newer show GEOMETRYCOLLECTION as geomcollection."""
    return "geometrycollection" if name == "geomcollection" else name


def with_known_types(create_sql: str) -> str:
    """Return SHOW CREATE TABLE with the names of types that all servers know (`known_type`)."""
    return _GEOMETRIES.sub(r"\1geometrycollection", create_sql)


def find_create_statement(connection: Any, name: TableName) -> str | None:
    """Return as `create_statement`; None for a table that is not there, maybe since a moment ago."""
    try:
        return create_statement(connection, name)
    except MySQLdb.Error as error:
        if error.args[0] in NO_SUCH_TABLE:
            return None
        raise


def to_column(row: tuple[Any, ...], *, tidb: bool = False) -> Column:
    """Return the column in one row of `information_schema.COLUMNS`, whose fields are those of `_COLUMNS`.

    `tidb`: the server is a TiDB.
    """
    name, kind, definition, nullable, charset, collation, length, precision, scale, fsp, extra, default = row
    extra = (extra or "").lower()
    return Column(
        name=name,
        type=known_type(kind.lower()),
        definition=known_type(definition),
        nullable=nullable == "YES",
        charset=charset,
        collation=collation,
        length=int(length or 0),
        precision=int(precision or 0),
        scale=int(scale or 0),
        fsp=int(fsp or 0),
        members=_members(kind, definition, tidb=tidb),
        generated="generated" in extra and "default_generated" not in extra,
        auto_increment="auto_increment" in extra,
        invisible="invisible" in extra,
        has_default=default is not None or nullable == "YES" or "auto_increment" in extra,
    )


def with_hidden_columns(
    columns: tuple[Column, ...], keys: Iterable[tuple[Any, ...]], create_sql: str
) -> tuple[Column, ...]:
    """Return the columns together with those that MariaDB hides.

    MariaDB hides the period of a system-versioned table, and hash columns of unique keys. `keys` are rows of a key's
    name, two further fields, whether it is not unique, and its algorithm.
    """
    return _with_hashes(_with_period(columns, create_sql), keys, create_sql)


def _with_period(columns: tuple[Column, ...], create_sql: str) -> tuple[Column, ...]:
    """Return the columns with the period of a system-versioned table marked.

    The period's columns are hidden ones, which are added, if the user named none.
    """
    options = _TEXT.sub("", create_sql[create_sql.rfind("\n)") :])
    if " WITH SYSTEM VERSIONING" not in options:
        return columns
    found = _PERIOD.search(create_sql)
    if found is None:
        hidden = Column("row_start", "timestamp", "timestamp(6)", False, fsp=6, generated=True, invisible=True)
        return (*columns, replace(hidden, period="start"), replace(hidden, name="row_end", period="end"))
    start, end = (name.replace("``", "`") for name in found.groups())
    periods = {start: "start", end: "end"}
    return tuple(replace(column, period=periods.get(column.name, "")) for column in columns)


def _with_hashes(columns: tuple[Column, ...], keys: Iterable[tuple[Any, ...]], create_sql: str) -> tuple[Column, ...]:
    """Return the columns followed by MariaDB's hidden hash columns: one for each unique key that is a hash.

    Such a key covers a TEXT or BLOB, is too long for an ordinary index, or has USING HASH. No statement shows the
    columns, but the binlog contains them. Keys of the MEMORY engine are hashes too, and have no such column.
    """
    hashed = {name for name, _, _, non_unique, kind in keys if kind == "HASH" and not int(non_unique)}
    if not hashed or _IN_MEMORY.search(create_sql):
        return columns
    taken = {column.name.upper() for column in columns}
    free = (name for number in count(1) if (name := f"{_HASH}{number}") not in taken)
    return (*columns, *(replace(_HASH_COLUMN, name=name) for name in islice(free, len(hashed))))


def is_hash_column(column: Column) -> bool:
    """Return whether a column is a hidden one that MariaDB fills for a unique key implemented by a hash.

    MariaDB 11.8.9 omits it from the row images of an UPDATE or DELETE that does not need the key.
    """
    return column.name.startswith(_HASH) and column == replace(_HASH_COLUMN, name=column.name)


def without_hashes(table: Table) -> Table:
    """Return the table as it is on a server that implements no unique key by a hash."""
    return replace(table, columns=tuple(column for column in table.columns if not is_hash_column(column)))


def _members(kind: str, definition: str, *, tidb: bool) -> tuple[str, ...]:
    if kind.lower() not in ("enum", "set"):
        return ()
    if tidb:  # TiDB does not escape a backslash, and doubles quotes
        return tuple(member.replace("''", "'") for member in _PLAIN_MEMBER.findall(definition))
    return tuple(_ESCAPED.sub(_unescaped, member) for member in _MEMBER.findall(definition))


def _unescaped(match: re.Match[str]) -> str:
    """Return the character for a doubled quote or a backslash escape in the server's text of a member."""
    letter = match[1]
    return "'" if letter is None else _MEANING.get(letter, letter)


def to_indexes(found: Iterable[tuple[Any, ...]], period: Collection[str]) -> tuple[Index, ...]:
    """Return the keys without the columns in `period`.

    The server adds those columns to keys that are unique only among current rows.
    """
    parts: dict[str, list[tuple[str, int]]] = {}
    unique: dict[str, bool] = {}
    for name, column, prefix, non_unique in found:
        if column in period:
            continue
        parts.setdefault(name, []).append((column, int(prefix)))
        unique[name] = not int(non_unique)
    return tuple(
        Index(name, tuple(c for c, _ in columns), tuple(p for _, p in columns), unique[name])
        for name, columns in parts.items()
    )
