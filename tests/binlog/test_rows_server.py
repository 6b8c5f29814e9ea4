"""Binlogs of a real server: decoded, rendered and loaded again they give the same tables."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from captured import Captured, capture, rows_of
from test_rows_types import EVERYTHING

from support.both_paths import by_dump, make
from unshard.errors import BinlogError
from unshard.kernels.literals import render
from unshard.model.change import Op
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.type_cases import COMMON

pytestmark = pytest.mark.server


@pytest.fixture(scope="module")
def old_server() -> Iterator[MariadbServer]:
    """Temporal columns as before 5.6, full metadata in TABLE_MAP, no checksums."""
    options = {"mysql56_temporal_format": "OFF", "binlog_row_metadata": "FULL"}
    with MariadbServer(options) as server:
        yield server


def everything_table(name: str) -> str:
    columns = ", ".join(f"`c{number}` {definition}" for number, definition in enumerate(EVERYTHING))
    return f"CREATE TABLE {name} (id int PRIMARY KEY, {columns}) ENGINE=Aria ROW_FORMAT=DYNAMIC"


def random_rows(seed: int, count: int) -> Iterator[str]:
    chance = random.Random(seed)
    for number in range(count):
        yield f"({number}, " + ", ".join(chance.choice(values) for values in EVERYTHING.values()) + ")"


def checksum(server: MariadbServer, schema: str, table: str) -> object:
    return server.query(f"CHECKSUM TABLE {schema}.{table}")[0][1]


def load(server: MariadbServer, schema: str, captured: Captured, batch: object, target: str) -> None:
    """All rows of a batch in one INSERT, made as the applier makes it."""
    (table,) = captured.tables.values()
    columns = batch.columns[2:]  # type: ignore[attr-defined]
    prefixes = [b"(", *[b","] * (len(columns) - 1)]
    bare = [column.type == "decimal" for column in table.columns]
    text = render(columns, prefixes, b"),", bare)
    connection = server.connection(schema)
    try:
        with connection.cursor() as cursor:
            cursor.execute("SET sql_mode = 'NO_AUTO_VALUE_ON_ZERO'")
            cursor.execute(f"INSERT INTO {target} VALUES ".encode() + text.buffers()[2].to_pybytes()[:-1])
    finally:
        connection.close()


def test_rendered_rows_make_the_same_table(source_server: MariadbServer, schema: str) -> None:
    captured = capture(
        source_server,
        schema,
        ["SET sql_mode = ''", everything_table("t"), everything_table("copy")],
        ["INSERT INTO t VALUES " + ",".join(random_rows(1, 60))],
    )
    load(source_server, schema, captured, captured.batch(), "copy")
    assert checksum(source_server, schema, "copy") == checksum(source_server, schema, "t")


def test_updates_and_deletes_carry_both_images(source_server: MariadbServer, schema: str) -> None:
    captured = capture(
        source_server,
        schema,
        [
            "SET sql_mode = ''",
            everything_table("t"),
            everything_table("copy"),
            everything_table("gone"),
            "INSERT INTO t VALUES " + ",".join(random_rows(2, 40)),
            "INSERT INTO gone SELECT * FROM t",
        ],
        ["UPDATE t SET c0 = 1, c5 = NULL, id = id + 1000", "DELETE FROM t WHERE id >= 1020"],
    )
    batch = captured.batch()
    ops = batch.column(0).to_pylist()
    seqs = batch.column(1).to_pylist()
    assert ops == [Op.UPDATE_BEFORE, Op.UPDATE_AFTER] * 40 + [Op.DELETE] * 20
    assert seqs == sorted([*range(40), *range(40), *range(40, 60)])
    # The images before are the rows that were there; those after, less the deleted, are those that are there.
    before = batch.take([at for at, op in enumerate(ops) if op == Op.UPDATE_BEFORE])
    load(source_server, schema, captured, before, "copy")
    assert checksum(source_server, schema, "copy") == checksum(source_server, schema, "gone")
    source_server.run("TRUNCATE copy", database=schema)
    deleted = {row[0] for row in rows_of(batch, Op.DELETE)}
    kept = [at for at, op in enumerate(ops) if op == Op.UPDATE_AFTER and batch.column("id")[at].as_py() not in deleted]
    load(source_server, schema, captured, batch.take(kept), "copy")
    assert checksum(source_server, schema, "copy") == checksum(source_server, schema, "t")


def test_a_transaction_over_several_tables(source_server: MariadbServer, schema: str) -> None:
    captured = capture(
        source_server,
        schema,
        [
            "CREATE TABLE t (a int PRIMARY KEY, b int)",
            "CREATE TABLE u (a int PRIMARY KEY, c varchar(9))",
            "CREATE TABLE v (a int)",
            "INSERT INTO t VALUES (1, 1), (2, 2)",
            "INSERT INTO u VALUES (1, 'x'), (2, 'y')",
        ],
        [
            "BEGIN",
            "INSERT INTO t VALUES (3, 3)",
            "INSERT INTO v VALUES (9)",
            "UPDATE t, u SET t.b = 10, u.c = 'z' WHERE t.a = u.a AND t.a = 2",
            "INSERT INTO u VALUES (4, NULL)",
            "COMMIT",
            "FLUSH TABLES t, u",
            "DELETE FROM t WHERE a = 1",
        ],
        tables=("t", "u"),
    )
    decoded = captured.decode(seq_base=7)
    found = {table.name.table: batch for table, batch in decoded}
    assert rows_of(found["t"], Op.INSERT) == [(3, 3)]
    assert rows_of(found["t"], Op.DELETE) == [(1, 1)]  # after FLUSH TABLES, with another table id
    assert rows_of(found["t"], Op.UPDATE_AFTER) == [(2, 10)]
    assert rows_of(found["u"], Op.UPDATE_BEFORE) == [(2, "y")]
    assert rows_of(found["u"], Op.INSERT) == [(4, None)]
    assert (decoded.changes, decoded.skipped) == (5, 1)
    seqs = {seq.as_py() for batch in found.values() for seq in batch.column("seq")}
    assert seqs == set(range(7, 12))


def test_generated_and_invisible_columns_are_in_the_image(source_server: MariadbServer, schema: str) -> None:
    captured = capture(
        source_server,
        schema,
        [
            "CREATE TABLE t (a int PRIMARY KEY, b int AS (a * 2) STORED, c int INVISIBLE DEFAULT 5,"
            " d int AS (a + 1) VIRTUAL)"
        ],
        ["INSERT INTO t (a) VALUES (1), (2)"],
    )
    assert captured.batch().schema.names == ["op", "seq", "a", "b", "c", "d"]
    assert [row[:3] for row in rows_of(captured.batch(), Op.INSERT)] == [(1, 2, 5), (2, 4, 5)]


def test_old_temporal_columns(old_server: MariadbServer, schema: str) -> None:
    values = [
        ("2024-02-29 23:59:58", "-12:34:56", "2038-01-19 03:14:07", "2024-01-01"),
        ("0000-00-00 00:00:00", "838:59:59", "0000-00-00 00:00:00", "0000-00-00"),
        ("9999-12-31 00:00:00", "00:00:00", "1970-01-01 00:00:01", "9999-12-31"),
    ]
    captured = capture(
        old_server,
        schema,
        ["SET sql_mode = ''", "CREATE TABLE t (a datetime, b time, c timestamp NULL, d date)"],
        [f"INSERT INTO t VALUES {row}" for row in values],
    )
    assert rows_of(captured.batch(), Op.INSERT) == values


def test_old_fractional_columns(old_server: MariadbServer, schema: str) -> None:
    """The format of MariaDB 5.3: the same values as in today's."""
    cases = {kind: values for kind, values in COMMON.items() if kind.startswith(("time", "datetime"))}
    made = make(old_server, schema, cases)
    assert all("mariadb-5.3" in column.definition for table in made.tables for column in table.columns[1:])
    logged, dumped = made.by_binlog(), by_dump(old_server, made.tables)
    for definition, (name, column) in made.columns.items():
        assert logged[name].column(column).to_pylist() == dumped[name].column(column).to_pylist(), definition


def test_full_metadata_agrees_with_every_structure(old_server: MariadbServer, schema: str) -> None:
    """Names and signs as a server logs them, over all types: none is misread as a difference."""
    kept = [kind for kind in EVERYTHING if not kind.startswith(("time", "datetime", "timestamp"))]
    columns = ", ".join(f"`C{number} é` {definition}" for number, definition in enumerate(kept))
    captured = capture(
        old_server,
        schema,
        [f"CREATE TABLE t (id int unsigned PRIMARY KEY, {columns}) ENGINE=Aria"],
        ["INSERT INTO t (id) VALUES (1)"],
    )
    assert captured.batch().num_rows == 1


def test_a_renamed_column_is_seen_where_names_are_logged(old_server: MariadbServer, schema: str) -> None:
    captured = capture(
        old_server,
        schema,
        ["CREATE TABLE t (a int, b int)"],
        ["INSERT INTO t VALUES (1, 2)", "ALTER TABLE t CHANGE a x int"],
    )
    with pytest.raises(BinlogError, match="BINLOG-022"):
        captured.decode()


def test_many_rows(source_server: MariadbServer, schema: str) -> None:
    captured = capture(
        source_server,
        schema,
        [
            "CREATE TABLE t (id int PRIMARY KEY, k int, c char(120), v varchar(20) CHARACTER SET latin1)",
            "CREATE TABLE copy LIKE t",
        ],
        [
            "INSERT INTO t SELECT seq, nullif(seq % 9, 4), repeat(char(65 + seq % 26), seq % 120), concat('é', seq)"
            " FROM seq_1_to_20000"
        ],
    )
    load(source_server, schema, captured, captured.batch(), "copy")
    assert checksum(source_server, schema, "copy") == checksum(source_server, schema, "t")
