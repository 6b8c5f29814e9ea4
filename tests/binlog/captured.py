"""Statements run on a server, and the part of its binlog that they made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from unshard.binlog.rows import Decoded, decode_range
from unshard.errors import Where
from unshard.model.change import Op
from unshard.model.table import Table, TableName
from unshard.mysql.structure import read_table
from unshard.testing.mariadb_server import MariadbServer


@dataclass(frozen=True, slots=True)
class Captured:
    """One binlog file and the range that the statements fill; `tables` as they are after them."""

    data: bytes
    file: str
    start: int
    end: int
    tables: dict[TableName, Table]

    def decode(self, *, seq_base: int = 0) -> Decoded:
        return decode_range(
            memoryview(self.data),
            self.start,
            self.end,
            checksum=True,
            wanted=lambda table_map, offset: self.tables.get(table_map.name),
            seq_base=seq_base,
            where=Where(source="s1", file=self.file),
        )

    def batch(self) -> pa.RecordBatch:
        """The only batch."""
        ((_, batch),) = self.decode()
        return batch


def capture(
    server: MariadbServer, schema: str, before: Sequence[str], changes: Sequence[str], tables: Sequence[str] = ("t",)
) -> Captured:
    """Run `before` (DDL, settings), then `changes`, on one connection, in a schema of that name."""
    connection = server.connection()
    try:
        with connection.cursor() as cursor:
            cursor.execute(f"CREATE DATABASE IF NOT EXISTS {schema}")
            cursor.execute(f"USE {schema}")
            for statement in before:
                cursor.execute(statement)
            cursor.execute("SHOW MASTER STATUS")
            file, start, *_ = cursor.fetchone()
            for statement in changes:
                cursor.execute(statement)
            cursor.execute("SHOW MASTER STATUS")
            end_file, end, *_ = cursor.fetchone()
        assert file == end_file
        names = [TableName(schema, table) for table in tables]
        found = {name: read_table(connection, name) for name in names}
    finally:
        connection.close()
    return Captured(
        (server.data / file).read_bytes(), file, start, end, {name: table for name, table in found.items() if table}
    )


def rows_of(batch: pa.RecordBatch, op: Op) -> list[tuple[object, ...]]:
    """The images of one kind, as tuples of the table's columns."""
    columns = [column.to_pylist() for column in batch.columns]
    return [row[2:] for row in zip(*columns, strict=True) if row[0] == op]
