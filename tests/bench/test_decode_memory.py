"""Decoding a long file takes no more memory than decoding a short one."""

from __future__ import annotations

from pathlib import Path

import pytest
from bench.data import repeated
from bench.decode import batches, peak_mb

from unshard.model.table import Table, TableName
from unshard.mysql.connection import session
from unshard.mysql.structure import read_table
from unshard.testing.mariadb_server import MariadbServer

pytestmark = pytest.mark.server

_BUDGET = 1 << 20
_ROWS = 20_000


def _written(server: MariadbServer, schema: str) -> tuple[Path, Table]:
    """A binlog file with `_ROWS` rows of text, a hundred a transaction, and their table."""
    create = f"CREATE TABLE {schema}.t (id INT PRIMARY KEY, c VARCHAR(255) NOT NULL)"
    server.run(f"CREATE DATABASE {schema}", create, "FLUSH BINARY LOGS")
    file = server.binlog_files()[-1]
    rows = "SELECT seq, REPEAT(CHAR(65 + seq % 26), 200) FROM seq_{}_to_{}"
    server.run(
        f"USE {schema}",
        *(f"INSERT INTO {schema}.t {rows.format(first, first + 99)}" for first in range(1, _ROWS, 100)),
        "FLUSH BINARY LOGS",
    )
    with session(server.endpoint, "source") as connection:
        table = read_table(connection, TableName(schema, "t"))
    assert table is not None
    return file, table


def test_ten_times_the_file_takes_the_same_memory(source_server: MariadbServer, schema: str, tmp_path: Path) -> None:
    file, table = _written(source_server, schema)
    short, long = repeated(file, 5, tmp_path / "short"), repeated(file, 50, tmp_path / "long")
    assert long.stat().st_size > 200 << 20
    assert sum(batches(long, table, budget=_BUDGET)) == 50 * _ROWS

    assert peak_mb(long, table, budget=_BUDGET) <= peak_mb(short, table, budget=_BUDGET) + 16
