"""DDL statements compared as a TiDB target runs them: two that do the same there become the same text."""

from __future__ import annotations

from contextlib import closing

from unshard.ddl.context import Context
from unshard.ddl.evaluate import operations, surroundings
from unshard.ddl.for_tidb import words_of
from unshard.ddl.parse import classify_ddl
from unshard.model.table import TableName
from unshard.schema.definition import TableDefinition
from unshard.schema.implied import charset_of
from unshard.schema.tidb_alter import alter_table
from unshard.testing.tidb_server import TidbServer


def in_tidb_words(server: TidbServer, statement: str, table: TableName, collation: str) -> str:
    """An ALTER TABLE, CREATE INDEX or DROP INDEX on that table with nothing left to TiDB's own defaults.

    `collation` is that of the table in the source, for columns of the statement that name none.
    """
    with closing(server.connection()) as connection:
        words = words_of(connection, {})
    bare = TableDefinition((), charset=charset_of(collation), collation=collation)
    ddl = classify_ddl(statement, Context(table.schema))
    around = surroundings(ddl.context, None)
    made = alter_table(operations(ddl), table, bare, None, around, words)
    assert not made.left_out, made
    return "; ".join(made.statements)
