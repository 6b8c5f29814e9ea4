"""Reads tables' rows by both paths, a dump's SELECT and the binlog's row events, and writes them to another server.

The steps are those of production, without Spark and files in between.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

import MySQLdb
import pyarrow as pa

from unshard.binlog.rows import decode_range
from unshard.dump.read import dump_schema, read_rows
from unshard.errors import Where
from unshard.model.change import ENCODED_SCHEMA
from unshard.model.table import Table, TableName, quote_name
from unshard.mysql.connection import rows
from unshard.mysql.flavour import current_location, identify
from unshard.mysql.structure import read_table
from unshard.source.snapshot import open_reader
from unshard.sync.batch.plan import BatchShape, TablePlan
from unshard.sync.changes.encode import encode
from unshard.sync.changes.merge import merge
from unshard.sync.planning.target_plan import plan_target
from unshard.target.error_values import query_with_error_values, with_numbers
from unshard.target.writer import CUT, writer
from unshard.testing.throwaway_server import ThrowawayServer
from unshard.testing.type_cases import Cases

COLUMNS = 10


@dataclass(frozen=True, slots=True)
class Made:
    """Tables, the column of each definition, and the part of the binlog `data` that filled the tables."""

    tables: tuple[Table, ...]
    columns: Mapping[str, tuple[TableName, str]]
    data: bytes
    start: int
    end: int

    def by_binlog(self) -> dict[TableName, pa.RecordBatch]:
        """Return each table's images: `op`, `seq` and all columns."""
        known = {table.name: table for table in self.tables}
        decoded = decode_range(
            memoryview(self.data),
            self.start,
            self.end,
            checksum=True,
            wanted=lambda table_map, offset: known.get(table_map.name),
            where=Where(source="s1", file="binlog"),
        )
        return {table.name: batch for table, batch in decoded}


def make(server: ThrowawayServer, schema: str, cases: Cases) -> Made:
    """Create tables of `id` and one column for each definition, in a new schema, filled by a session without sql_mode.

    Row number n has the value number n of each definition, NULL if there are fewer.
    """
    definitions = list(cases)
    groups = [definitions[at : at + COLUMNS] for at in range(0, len(definitions), COLUMNS)]
    columns = {
        definition: (TableName(schema, f"t{number}"), f"v{place}")
        for number, group in enumerate(groups)
        for place, definition in enumerate(group)
    }
    connection = server.connection()
    try:
        for statement in (f"CREATE DATABASE {quote_name(schema)}", f"USE {quote_name(schema)}", "SET sql_mode = ''"):
            rows(connection, statement)
        for number, group in enumerate(groups):
            listed = ", ".join(f"v{place} {definition}" for place, definition in enumerate(group))
            rows(connection, f"CREATE TABLE t{number} (id int PRIMARY KEY, {listed})")
        answering = identify(connection)
        begin = current_location(connection, answering)
        for number, group in enumerate(groups):
            turned = enumerate(zip_longest(*(cases[definition] for definition in group), fillvalue="NULL"))
            listed = ", ".join(f"({row}, {', '.join(values)})" for row, values in turned)
            rows(connection, f"INSERT INTO t{number} VALUES {listed}")
        end = current_location(connection, answering)
        found = [read_table(connection, TableName(schema, f"t{number}")) for number in range(len(groups))]
    finally:
        connection.close()
    assert begin, "the binlog is off"
    assert end, "the binlog is off"
    assert begin.position.file == end.position.file, "the binlog was rotated"
    data = (server.data / begin.position.file).read_bytes()
    return Made(tuple(table for table in found if table), columns, data, begin.position.offset, end.position.offset)


def by_dump(server: ThrowawayServer, tables: Iterable[Table]) -> dict[TableName, pa.Table]:
    """Return each table's rows, in the order of its key, as a dump's files have them."""
    connection = open_reader(server.endpoint, text=False)
    try:
        return {table.name: pa.Table.from_batches(read_rows(connection, table), dump_schema(table)) for table in tables}
    finally:
        connection.close()


def create_copies(server: ThrowawayServer, schema: str, tables: Iterable[Table]) -> None:
    """Create the same tables, empty, in a schema of another server."""
    connection = server.connection()
    try:
        rows(connection, f"CREATE DATABASE {quote_name(schema)}")
        rows(connection, f"USE {quote_name(schema)}")
        rows(connection, "SET sql_mode = ''")
        for table in tables:
            rows(connection, table.create_sql)
    finally:
        connection.close()


def write(server: ThrowawayServer, changes: Sequence[tuple[Table, pa.RecordBatch]]) -> None:
    """Write images to the tables of the same name on `server`, as a batch of sync does. Raises the server's errors."""
    connection = writer(server.endpoint)
    try:
        for table, images in changes:
            target = read_table(connection, table.name)
            assert target is not None
            plan = TablePlan(table, plan_target(table, target, Where()))
            encoded, _ = encode(plan, images, 4, None)
            ready = pa.Table.from_batches([encoded], ENCODED_SCHEMA)
            for chunk in merge(ready, {plan.target.id: plan.target}, BatchShape(4, 1000)):
                for statement in chunk.statements:
                    sql = with_numbers(statement.sql, plan.target.zeros)
                    try:
                        connection.query(sql)
                    except MySQLdb.Error as error:
                        if error.args[0] != CUT:
                            raise
                        assert query_with_error_values(connection, sql, plan.target.enums) is not None
    finally:
        connection.close()
