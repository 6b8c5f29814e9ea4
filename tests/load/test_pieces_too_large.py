"""Rows and pieces that are too large for one statement or transaction of the target."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.dump_units import MakeDump
from support.server_clock import assert_rate_was_held, clock
from support.threads import run_tasks
from unshard.dump.read import FETCH_BYTES, read_rows
from unshard.errors import LoadError, Where
from unshard.load.checkpoint import LoadTables
from unshard.load.parts import behind, smaller
from unshard.load.pieces import LoadPiece
from unshard.load.unit import LoadSettings, LoadUnit
from unshard.model.table import TableName
from unshard.mysql.connection import session
from unshard.mysql.structure import read_table
from unshard.source.snapshot import open_reader
from unshard.target.rate_limiter import RateLimiter
from unshard.testing.binlog_count import count_by_key, row_events
from unshard.testing.mariadb_server import MariadbServer

pytestmark = pytest.mark.server

ROW = 200_000
HEAD = b"INSERT INTO `a`.`b` (`c`) VALUES "


@pytest.fixture(scope="module")
def narrow() -> Iterator[MariadbServer]:
    """A target that takes statements of 512 kB and transactions of 1 MB."""
    with MariadbServer({"max_allowed_packet": "512K", "max_binlog_cache_size": "1M"}) as server:
        yield server


def load(target: MariadbServer, meta: str, directory: Path, **settings: Any) -> LoadUnit:
    tables = LoadTables(f"{meta}_meta", "task", "shard-1")
    chosen = LoadSettings(directory, 2, **settings)
    return LoadUnit(target.endpoint, tables, chosen, lambda name: name, lambda name: None, run_tasks)


def fill(source: MariadbServer, schema: str, rows: int, size: int) -> None:
    create = f"CREATE TABLE {schema}.t (id INT PRIMARY KEY, v LONGTEXT)"
    text = f"CONCAT('(;''', seq, REPEAT('x', {size}))"
    insert = f"INSERT INTO {schema}.t SELECT seq, {text} FROM seq_1_to_{rows}"
    source.run(f"CREATE DATABASE {schema}", f"USE {schema}", create, insert)


def written(server: MariadbServer, schema: str) -> dict[int, int]:
    """How often each id was inserted."""
    counts = count_by_key(row_events(server, [TableName(schema, "t")]))
    return {int(image[0]): times for (_, _, image), times in sorted(counts.items())}


@pytest.mark.parametrize("form", ["parquet", "sql"])
def test_pieces_too_large_go_in_parts(
    form: str, source_server: MariadbServer, narrow: MariadbServer, schema: str, make_dump: MakeDump, tmp_path: Path
) -> None:
    fill(source_server, schema, 12, ROW)
    make_dump(schema, format=form).run()
    result = load(narrow, schema, tmp_path / "dump").run()
    assert result.rows == 12
    sums = f"SELECT id, MD5(v) FROM {schema}.t ORDER BY id"
    assert narrow.query(sums) == source_server.query(sums)
    assert written(narrow, schema) == dict.fromkeys(range(1, 13), 1)


def test_a_row_too_large_stops_the_load_and_goes_on_behind_the_raised_limit(
    source_server: MariadbServer, narrow: MariadbServer, schema: str, make_dump: MakeDump, tmp_path: Path
) -> None:
    fill(source_server, schema, 9, 1000)
    source_server.run(f"UPDATE {schema}.t SET v = REPEAT('y', 600000) WHERE id = 7")
    make_dump(schema).run()
    with pytest.raises(LoadError) as caught:
        load(narrow, schema, tmp_path / "dump").run()
    error = caught.value
    assert error.code == "LOAD-009"
    assert error.where.table == f"{schema}.t"
    assert "(7,'yyy" in str(error)
    assert "max_allowed_packet takes 524288" in str(error)
    assert narrow.query(f"SELECT id FROM {schema}.t ORDER BY id") == [(n,) for n in range(1, 7)]
    narrow.run("SET GLOBAL max_allowed_packet = 4194304")
    try:
        assert load(narrow, schema, tmp_path / "dump").run().rows == 9
    finally:
        narrow.run("SET GLOBAL max_allowed_packet = 524288")
    assert written(narrow, schema) == dict.fromkeys(range(1, 10), 1)


def test_parts_have_every_row_once_in_order() -> None:
    where = Where()
    rows = [b"(%d,'(;\\'')" % number for number in range(9)]
    piece = LoadPiece(3, 70, (HEAD + b",".join(rows[:4]), HEAD + b",\n".join(rows[4:])), last=True)
    by_statement = smaller(piece, where)
    assert [(part.start, part.end) for part in by_statement] == [(0, 4), (4, None)]
    waiting, single = list(reversed(by_statement)), []
    while waiting:
        part = waiting.pop()
        parts = smaller(part, where)
        if parts:
            waiting.extend(reversed(parts))
        else:
            single.append(part)
    assert [part.statements for part in single] == [(HEAD + row,) for row in rows]
    assert [part.end for part in single] == [*range(1, 9), None]
    rest = behind(piece, 5, where)
    assert rest is not None
    assert rest.statements == (HEAD + b",\n".join(rows[5:]),)
    assert rest.end is None
    assert behind(piece, 9, where) is None


def test_a_batch_of_long_rows_ends_with_its_bytes(source_server: MariadbServer, schema: str) -> None:
    fill(source_server, schema, 30, 2_000_000)
    with session(source_server.endpoint, "source") as connection:
        table = read_table(connection, TableName(schema, "t"))
    assert table is not None
    reader = open_reader(source_server.endpoint, text=False)
    sizes = [batch.nbytes for batch in read_rows(reader, table)]
    reader.close()
    assert sum(sizes) > 60_000_000
    assert max(sizes) < FETCH_BYTES + 2_100_000


def test_the_targets_rate_is_held(
    source_server: MariadbServer, narrow: MariadbServer, schema: str, make_dump: MakeDump, tmp_path: Path
) -> None:
    fill(source_server, schema, 25_000, 1)
    make_dump(schema).run()
    gate = RateLimiter(f"{schema}_meta", 50_000, 1)
    with session(narrow.endpoint, "target") as connection:
        gate.create(connection)
    begun = clock(narrow)
    assert load(narrow, schema, tmp_path / "dump", gate=gate).run().rows == 25_000
    assert_rate_was_held(narrow, gate.schema, begun, 25_000, gate.rows_per_second)
    assert narrow.query(f"SELECT COUNT(*) FROM {schema}.t") == [(25_000,)]
