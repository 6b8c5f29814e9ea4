"""A target that loses commits: its tables are put back as they were."""

from __future__ import annotations

from unshard.testing.throwaway_server import ThrowawayServer


class Kept:
    """Copies of tables as they were, which replace what the target has later."""

    def __init__(self, target: ThrowawayServer, schema: str, tables: list[str]) -> None:
        self.target, self.schema, self.tables = target, schema, tables
        target.run(f"CREATE DATABASE {schema}")
        self.names = {table: f"{schema}.k{number}" for number, table in enumerate(tables)}
        target.run(*(f"CREATE TABLE {name} AS SELECT * FROM {table}" for table, name in self.names.items()))

    def bring_back(self) -> None:
        with self.target.connection() as connection, connection.cursor() as cursor:
            cursor.execute("SET foreign_key_checks = 0")
            cursor.execute("BEGIN")
            for table, name in self.names.items():
                cursor.execute(f"DELETE FROM {table}")
                cursor.execute(f"INSERT INTO {table} SELECT * FROM {name}")
            cursor.execute("COMMIT")
