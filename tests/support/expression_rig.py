"""A table of odd values on a real server: what an expression is true of there, and by the images of its binlog."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa

from support.expression_cases import Columns
from unshard.binlog.rows import decode_range
from unshard.errors import Where
from unshard.model.change import Op
from unshard.model.table import Table, TableName, quote_name
from unshard.mysql.connection import rows
from unshard.mysql.flavour import current_location, identify
from unshard.mysql.structure import read_table
from unshard.testing.throwaway_server import ThrowawayServer
from unshard.transform.expressions.filter import ExpressionFilter
from unshard.transform.expressions.parse import Refused

ZONE = "+05:30"
MOMENTS = ("2024-05-01 00:00:00", "2024-05-01 05:30:00", "2000-01-01 00:00:00", "2024-05-01 23:59:59")
"""The local times in expressions over TIMESTAMP columns."""


@dataclass(slots=True)
class Rig:
    server: ThrowawayServer
    table: Table
    images: pa.RecordBatch
    asking: Any

    @classmethod
    def fill(cls, server: ThrowawayServer, schema: str, columns: Columns) -> Rig:
        """A table `t` with these columns; row number n has the value number n of each, over and over."""
        connection = server.connection()
        try:
            run = (f"CREATE DATABASE {quote_name(schema)}", f"USE {quote_name(schema)}", "SET sql_mode = ''")
            for statement in (*run, "SET NAMES utf8mb4", "SET time_zone = '+00:00'"):
                rows(connection, statement)
            rows(connection, f"CREATE TABLE t (id int PRIMARY KEY, {', '.join(columns)})")
            flavour = identify(connection)
            begin = current_location(connection, flavour)
            count = 2 * max(len(values) for values in columns.values())
            made = (
                f"({n}, {', '.join(values[(n + n // len(values)) % len(values)] for values in columns.values())})"
                for n in range(count)
            )
            rows(connection, f"INSERT INTO t VALUES {', '.join(made)}")
            end = current_location(connection, flavour)
            table = read_table(connection, TableName(schema, "t"))
        finally:
            connection.close()
        assert begin
        assert end
        assert table
        assert begin.position.file == end.position.file
        data = (server.data / begin.position.file).read_bytes()
        decoded = decode_range(
            memoryview(data),
            begin.position.offset,
            end.position.offset,
            checksum=True,
            wanted=lambda table_map, offset: table if table_map.name == table.name else None,
            where=Where(source="s1", file="binlog"),
        )
        ((_, images),) = decoded
        asking = server.connection(schema)
        rows(asking, "SET NAMES utf8mb4")
        rows(asking, f"SET time_zone = '{ZONE}'")
        return cls(server, table, images, asking)

    def there(self, expression: str) -> list[int]:
        """The ids for which the server says so, in a session of the zone `ZONE`. Raises what it says."""
        return sorted(int(row[0]) for row in rows(self.asking, f"SELECT id FROM t WHERE {expression}"))

    def ask_under(self, mode: str) -> None:
        """From now on `there` answers under that sql_mode."""
        rows(self.asking, f"SET sql_mode = '{mode}'")

    def here(self, expression: str) -> list[int]:
        """The ids by the images. Raises Refused."""
        moments = tuple((local, _utc_of(local)) for local in MOMENTS)
        found = ExpressionFilter("r", ((Op.INSERT, expression),), moments)
        dropped = found.dropped(self.table, self.images, frozenset())
        return sorted(self.images.column(2).filter(pa.array(dropped)).to_pylist())

    def compare(self, expressions: Iterable[str]) -> tuple[int, int]:
        """Fails where the two answers differ. How many were answered and how many refused."""
        answered = refused = 0
        for expression in expressions:
            try:
                here = self.here(expression)
            except Refused:
                refused += 1
                continue
            assert here == self.there(expression), expression
            answered += 1
        return answered, refused


def _utc_of(local: str) -> str:
    return str(datetime.fromisoformat(local) - timedelta(hours=5, minutes=30))
