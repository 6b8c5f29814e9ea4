"""The structures of all tables of a schema by three queries, without SHOW CREATE TABLE."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import groupby
from typing import Any

from unshard.model.table import Table, TableName
from unshard.mysql.structure import to_column, to_indexes

Row = tuple[Any, ...]

_SCHEMA_COLUMNS = """
SELECT TABLE_NAME, COLUMN_NAME, DATA_TYPE, COLUMN_TYPE, IS_NULLABLE, CHARACTER_SET_NAME, COLLATION_NAME,
       CHARACTER_MAXIMUM_LENGTH, NUMERIC_PRECISION, NUMERIC_SCALE, DATETIME_PRECISION, EXTRA, COLUMN_DEFAULT
  FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = %s ORDER BY TABLE_NAME, ORDINAL_POSITION
"""
_SCHEMA_INDEXES = """
SELECT TABLE_NAME, INDEX_NAME, COLUMN_NAME, COALESCE(SUB_PART, 0), NON_UNIQUE
  FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = %s ORDER BY TABLE_NAME, INDEX_NAME, SEQ_IN_INDEX
"""
_CHILDREN = """
SELECT DISTINCT TABLE_NAME FROM information_schema.KEY_COLUMN_USAGE
 WHERE TABLE_SCHEMA = %s AND REFERENCED_TABLE_NAME IS NOT NULL ORDER BY TABLE_NAME
"""

QUERIES = (_SCHEMA_COLUMNS, _SCHEMA_INDEXES, _CHILDREN)
"""Each query takes a schema. They may run at the same time. `assemble` takes their rows in this order."""


def assemble(
    schema: str, columns: list[Row], indexes: list[Row], children: list[Row], *, tidb: bool = False
) -> dict[TableName, Table]:
    """Return the tables and views of one schema from the rows of `QUERIES`, which list those that the account may see.

    Pure. `tidb`: the rows come from a TiDB.
    """
    name_of: Callable[[Row], str] = lambda row: str(row[0])  # noqa: E731
    keys: Mapping[str, list[Row]] = {name: list(found) for name, found in groupby(indexes, name_of)}
    refers = {str(row[0]) for row in children}
    found = {}
    for table, described in groupby(columns, name_of):
        name = TableName(schema, table)
        own = tuple(to_column(row[1:], tidb=tidb) for row in described)
        shown = {column.name for column in own}  # keys contain the period of a system-versioned table, which is hidden
        parts = [row[1:] for row in keys.get(table, []) if row[2] is None or row[2] in shown]
        found[name] = Table(name, own, to_indexes(parts, ()), foreign_keys=table in refers)
    return found
