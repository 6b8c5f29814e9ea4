"""Two tables alike, one of which is written by INSERTs as text and the other one by bulk statements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import MySQLdb

from unshard.model.change import ValuesList
from unshard.target.bulk_insert import insert_in_bulk
from unshard.target.writer import ServerAnswer, packet_limit, query, writer
from unshard.testing.mariadb_server import MariadbServer

ROWS = 40


class TextAndBulk:
    """Two tables alike, one of which is written as text and the other one in bulk."""

    def __init__(self, server: MariadbServer, schema: str, columns: str) -> None:
        self.server, self.schema = server, schema
        server.run(f"CREATE DATABASE {schema}", *(f"CREATE TABLE {schema}.{name} ({columns})" for name in ("a", "b")))
        self.connection = writer(server.endpoint)
        names = "SELECT COLUMN_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = %s AND TABLE_NAME = 'a'"
        self.columns = [name for (name,) in server.query(f"{names} ORDER BY ORDINAL_POSITION", (schema,))]

    def run(self, rows: list[str], verb: str = "INSERT", tail: str = "") -> list[tuple[Any, ...]]:
        """Run it in both ways; what either of them gave: found rows, the counts in words, and the warnings."""
        return [self.outcome("a", query, rows, verb, tail), self.outcome("b", self._bulk, rows, verb, tail)]

    def outcome(self, table: str, run: Callable[..., Any], rows: list[str], verb: str, tail: str) -> tuple[Any, ...]:
        head, listed = f"{verb} INTO {self.schema}.{table} VALUES ".encode(), ",".join(rows).encode()
        sql = head + listed + tail.encode()
        values = ValuesList(len(head), len(head) + len(listed), len(self.columns))
        try:
            answer = run(self.connection, sql) if run is query else run(sql, values)
        except MySQLdb.Error as error:
            return tuple(error.args)
        warnings = []
        if answer.warnings:
            with self.connection.cursor() as cursor:
                cursor.execute("SHOW WARNINGS")
                warnings = [tuple(row[:2]) for row in cursor.fetchall()]
        words = answer.info[answer.info.find(b"Records") :]
        return answer.found, words, answer.warnings, warnings

    def _bulk(self, sql: bytes, values: ValuesList) -> ServerAnswer:
        found = insert_in_bulk(self.connection, sql, values, packet_limit(self.connection))
        assert found is not None
        return found

    def contents(self, table: str) -> list[tuple[Any, ...]]:
        listed = ",".join(f"HEX({name}), CONCAT({name}, '')" for name in self.columns)
        return list(self.server.query(f"SELECT {listed} FROM {self.schema}.{table}"))


def small(connection: Any, schema: str, rows: int, *, limit: int = 1 << 20, value: str = "1") -> ServerAnswer | None:
    head = f"INSERT INTO {schema}.b VALUES ".encode()
    listed = b",".join(b"(%d,%b)" % (id, value.encode()) for id in range(rows))
    return insert_in_bulk(connection, head + listed, ValuesList(len(head), len(head + listed), 2), limit)
