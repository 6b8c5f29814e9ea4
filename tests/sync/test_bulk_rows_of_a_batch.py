"""Batches with many rows of a table go into MariaDB as bulk statements, and count as they would as text."""

from __future__ import annotations

import pytest

from support.reference import RowChange
from support.row_batches import Target
from unshard.model.change import Op
from unshard.model.table import TableName
from unshard.sync.batch.plan import BatchShape
from unshard.testing.throwaway_server import ThrowawayServer

pytestmark = pytest.mark.server
ROWS = 60


def bulk_statements(server: ThrowawayServer) -> int:
    return int(server.query("SHOW GLOBAL STATUS LIKE 'Com_stmt_execute'")[0][1])


def test_inserts_and_upserts(target_server: ThrowawayServer, schema: str) -> None:
    target = Target(target_server, schema, {"t": "id INT PRIMARY KEY, v VARCHAR(20), d DECIMAL(9,2)"})
    name, shape = TableName(schema, "t"), BatchShape(partitions=1, chunk_rows=1000)
    rows = [(number, f"o'{number}", f"{number}.50") for number in range(ROWS)]
    later = [(number, f"n{number}", f"{number}.75") for number in range(ROWS)]
    before = bulk_statements(target_server)
    inserts = [RowChange(name, Op.INSERT, after=row) for row in rows]
    assert target.run(target.batch(shape), inserts)["t"].inserted == ROWS
    assert bulk_statements(target_server) == before + 1
    assert [row[1] for row in target.rows("t")][:2] == ["o'0", "o'1"]
    target.connection.query(f"DELETE FROM {schema}.t WHERE id < 7".encode())
    updates = [RowChange(name, Op.UPDATE, old, new) for old, new in zip(rows, later, strict=True)]
    entry = target.run(target.batch(shape), updates)["t"]
    assert bulk_statements(target_server) == before + 3, "a second time, to find one of the missing rows"
    assert (entry.updated, entry.missing) == (ROWS, 7)
    assert {row[1][0] for row in target.rows("t")} == {"n"}


def test_a_few_rows_go_as_text(target_server: ThrowawayServer, schema: str) -> None:
    target = Target(target_server, schema, {"t": "id INT PRIMARY KEY"})
    before = bulk_statements(target_server)
    inserts = [RowChange(TableName(schema, "t"), Op.INSERT, after=(number,)) for number in range(19)]
    assert target.run(target.batch(BatchShape(partitions=1, chunk_rows=1000)), inserts)["t"].inserted == 19
    assert bulk_statements(target_server) == before
