"""What MariaDB writes with `log_bin_compress=ON`: the same rows as without."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from captured import capture
from made_events import offsets, take_all
from test_rows_server import everything_table, random_rows

from unshard.binlog.transaction_range import PlainStatement
from unshard.testing.mariadb_server import MariadbServer

pytestmark = pytest.mark.server


@pytest.fixture(scope="module")
def packing() -> Iterator[MariadbServer]:
    with MariadbServer({"log_bin_compress": "ON", "log_bin_compress_min_len": "10"}) as server:
        yield server


def test_all_types_are_those_of_a_plain_binlog(
    packing: MariadbServer, source_server: MariadbServer, schema: str
) -> None:
    before = ["SET sql_mode = ''", everything_table("t")]
    changes = [
        "INSERT INTO t VALUES " + ",".join(random_rows(3, 40)),
        "UPDATE t SET id = id + 100, c0 = 1",
        "DELETE FROM t WHERE id > 120",
    ]
    plain = capture(source_server, schema, before, changes)
    packed = capture(packing, schema, before, changes)
    codes = {packed.data[at + 4] for at in offsets(packed.data) if packed.start <= at < packed.end}
    assert {166, 167, 168} <= codes
    assert not codes & {23, 24, 25}
    assert packed.batch().equals(plain.batch())


def test_statements_and_transactions(packing: MariadbServer, schema: str) -> None:
    path = packing.binlog_files()[-1]
    packing.run("FLUSH BINARY LOGS")
    path = packing.binlog_files()[-1]
    create = f"CREATE TABLE {schema}.t (a INT PRIMARY KEY, b VARCHAR(300))"
    packing.run(
        f"CREATE DATABASE {schema}",
        create,
        "BEGIN",
        f"INSERT INTO {schema}.t VALUES (1, REPEAT('é', 200))",
        f"INSERT INTO {schema}.t SELECT a + 1, b FROM {schema}.t",
        "COMMIT",
    )
    data = path.read_bytes()
    extents = take_all(data)
    assert [log_range.stop.sql for log_range in extents if isinstance(log_range.stop, PlainStatement)][1] == create
    assert sum(log_range.row_events for log_range in extents) == 2
    assert 165 in {data[at + 4] for at in offsets(data)}
