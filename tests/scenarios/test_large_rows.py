"""Rows, and so events, of more than 16 MiB: the relay keeps their bytes, decoding their values, a task brings them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.task_runs import TaskFiles, TaskRun
from unshard.binlog.rows import decode_range
from unshard.errors import SyncError, Where
from unshard.model.table import TableName
from unshard.mysql.connection import session
from unshard.mysql.structure import read_table
from unshard.testing.mariadb_server import MariadbServer

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.scenarios]

SIZES = (16_777_216, 40_000_000)
TARGETS_PACKET = 64 << 20


@pytest.fixture
def target() -> Iterator[MariadbServer]:
    with MariadbServer({"gtid_domain_id": "9", "max_allowed_packet": str(TARGETS_PACKET)}) as server:
        yield server


def test_large_rows_arrive_once_the_target_takes_them(
    spark: SparkSession, source_server: MariadbServer, target: MariadbServer, schema: str, tmp_path: Path
) -> None:
    name = TableName(schema, "t")
    source_server.run(
        f"CREATE DATABASE {schema}",
        f"CREATE TABLE {name} (id INT PRIMARY KEY, v LONGBLOB)",
        f"INSERT INTO {name} VALUES (0, 'small')",
    )
    files = TaskFiles(tmp_path, schema, {"s1": source_server}, target, (schema,)).write()
    run = TaskRun(files, spark).start()
    run.reach("sync")
    source_server.run("FLUSH BINARY LOGS")
    for number, size in enumerate(SIZES, 1):
        source_server.run(f"INSERT INTO {name} VALUES ({number}, REPEAT(CHAR({number} USING latin1), {size}))")
    source_server.run("FLUSH BINARY LOGS")
    error = run.error()
    assert isinstance(error, SyncError)
    assert error.code == "SYNC-053"
    assert error.where.table == str(name)
    assert "max_allowed_packet takes" in error.cause

    file = source_server.binlog_files()[-2]
    with session(source_server.endpoint, "source") as connection:
        table = read_table(connection, name)
    data = memoryview(file.read_bytes())
    found = decode_range(
        data, 4, len(data), checksum=True, wanted=lambda table_map, offset: table, where=Where(file=file.name)
    )
    rows = [row for _, batch in found for row in zip(batch.column(2).to_pylist(), batch.column(3), strict=True)]
    assert [(key, value.as_py() == bytes([key]) * SIZES[key - 1]) for key, value in rows] == [
        (1, True),
        (2, True),
    ]

    target.run(f"SET GLOBAL max_allowed_packet = {4 * TARGETS_PACKET}")
    with TaskRun(files, spark) as again:
        again.catch_up()
    (relayed,) = (tmp_path / "relay").rglob(file.name)
    assert relayed.read_bytes() == file.read_bytes()
    digests = f"SELECT id, LENGTH(v), MD5(v) FROM {name} ORDER BY id"
    assert target.query(digests) == source_server.query(digests)
    source_server.run(f"DROP DATABASE {schema}")
