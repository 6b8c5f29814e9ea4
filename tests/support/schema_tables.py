"""The tables of a server's schemas, by name."""

from __future__ import annotations

from collections.abc import Collection

from unshard.model.table import TableName
from unshard.testing.throwaway_server import ThrowawayServer


def tables_of(server: ThrowawayServer, schemas: Collection[str]) -> list[TableName]:
    """The tables in these schemas, by name."""
    found = server.query("SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES ORDER BY 1, 2")
    return [TableName(*name) for name in found if name[0] in schemas]


def names_in(server: ThrowawayServer, schema: str) -> set[str]:
    """The names of the tables in one schema."""
    return {name.table for name in tables_of(server, (schema,))}
