"""Large tables, read over several connections that have one snapshot: each row once, as of the table's location."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.scripted_connection import ScriptedConnection, first_match, located, logged
from unshard.dump import lock_free, plan, ranges
from unshard.dump.metadata import read_dump
from unshard.dump.plan import Listed, key_ranges, readers_of
from unshard.dump.read import read_rows
from unshard.dump.unit import DumpUnit
from unshard.errors import DumpError, Where
from unshard.model.position import Location, Position
from unshard.model.table import TableName
from unshard.mysql.connection import session
from unshard.mysql.structure import read_table
from unshard.source import snapshot
from unshard.source.snapshot import ask, open_reader, snapshots_apart_from_xa
from unshard.testing.mariadb_server import MariadbServer

pytestmark = pytest.mark.server
MB = 1 << 20


def listed(name: str, size: int) -> Listed:
    return Listed(TableName("s", name), True, 1000, size)


@pytest.mark.parametrize(
    ("sizes", "threads", "expected"),
    [
        ([100 * MB], 4, {"t0": 4}),
        ([100 * MB], 1, {}),
        ([31 * MB], 4, {}),
        ([100 * MB, 100 * MB], 4, {"t0": 2, "t1": 2}),
        ([100 * MB] * 4, 4, {}),
        ([700 * MB, *[10 * MB] * 30], 4, {"t0": 2}),
        ([900 * MB, 100 * MB], 8, {"t0": 7}),
        ([0, 0], 4, {}),
        ([], 4, {}),
    ],
)
def test_large_tables_get_several_readers(sizes: list[int], threads: int, expected: dict[str, int]) -> None:
    found = readers_of([listed(f"t{number}", size) for number, size in enumerate(sizes)], threads)
    assert {name.table: readers for name, readers in found.items()} == expected
    assert sum(found.values()) <= threads


@pytest.mark.parametrize(
    ("columns", "rows", "expected"),
    [
        ("id INT PRIMARY KEY", "SELECT CAST(seq AS INT) * 3 - 500 FROM seq_1_to_1000", 8),
        ("id BIGINT UNSIGNED PRIMARY KEY", "SELECT 18446744073709551615 - seq * seq FROM seq_0_to_999", 8),
        ("id INT PRIMARY KEY", "SELECT seq FROM seq_1_to_3", 3),
        ("id INT PRIMARY KEY", "SELECT 7", 1),
        ("id INT PRIMARY KEY", "SELECT 7 FROM dual WHERE FALSE", 1),
        ("id INT, v INT, PRIMARY KEY (id, v)", "SELECT seq % 20, seq FROM seq_1_to_1000", 8),
        ("id VARCHAR(9) PRIMARY KEY", "SELECT seq FROM seq_1_to_100", 1),
        ("id INT", "SELECT seq FROM seq_1_to_100", 1),
        ("id INT, UNIQUE KEY (id)", "SELECT seq FROM seq_1_to_100", 1),
    ],
)
def test_ranges_cover_every_row_once(
    columns: str, rows: str, expected: int, source_server: MariadbServer, schema: str
) -> None:
    source_server.run(
        f"CREATE DATABASE {schema}",
        f"CREATE TABLE {schema}.t ({columns})",
        f"INSERT INTO {schema}.t {rows}",
        database="mysql",
    )
    with session(source_server.endpoint, "source") as connection:
        table = read_table(connection, TableName(schema, "t"))
        assert table is not None
        found = key_ranges(connection, table, 8)
    counts = [source_server.query(f"SELECT COUNT(*) FROM {schema}.t WHERE {one or 'TRUE'}")[0][0] for one in found]
    assert len(found) == expected
    assert sum(counts) == source_server.query(f"SELECT COUNT(*) FROM {schema}.t")[0][0]


def scripted(*offsets: int) -> ScriptedConnection:
    """Its server tells these offsets of its snapshots, one for each, the last one for ever."""
    left = list(offsets)
    answers: dict[str, Callable[[], Any]] = {
        "START TRANS": lambda: [(left.pop(0) if len(left) > 1 else left[0],)],
        "SHOW GLOBAL": lambda: located(0, "b.000001", left[0]),
        "SHOW MASTER": lambda: [("b.000001", "40", "", "")],
        "SHOW BINLOG": lambda: logged(10, 25, 40),
        "SELECT @@glo": lambda: [("0-1-7",)],
        "SELECT GET_LOCK": lambda: [(1,)],
    }
    return ScriptedConnection(lambda statement: first_match(statement, answers) or [])


def test_snapshots_are_taken_until_they_have_one_position() -> None:
    plain, other = scripted(40), scripted(0, 30, 35, 40)
    found, count = snapshots_apart_from_xa((plain, other), plain)
    assert (found.position, count) == (Position("b.000001", 40), 2)
    assert sum("START" in statement for statement in other.statements) == 3


def test_where_that_never_is_one_connection_reads() -> None:
    plain, other = scripted(40), scripted(30)
    found, count = snapshots_apart_from_xa((plain, other), plain)
    assert (found.position, count) == (Position("b.000001", 40), 1)
    assert "ROLLBACK" in other.statements[-1]


def test_one_connection_reads_before_the_patience_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each try may take seconds, on a busy server or behind the snapshots of other tasks."""
    monkeypatch.setattr(snapshot, "_MOST_TRIES", 10**9)
    plain, other = scripted(40), scripted(30)
    found, count = snapshots_apart_from_xa((plain, other), plain, patience=0.2)
    assert (found.position, count) == (Position("b.000001", 40), 1)


@contextmanager
def adding(server: MariadbServer, table: str) -> Iterator[None]:
    """Add 1 to the first and the last row of the table, both in one transaction, again and again."""
    ended = threading.Event()

    def add() -> None:
        with closing(server.connection()) as connection, connection.cursor() as cursor:
            while not ended.wait(0.001):  # all the time, and four snapshots may have one position
                cursor.execute("BEGIN")
                cursor.execute(f"UPDATE {table} SET n = n + 1 WHERE id = 1")
                cursor.execute(f"UPDATE {table} SET n = n + 1 WHERE id = 5000")
                cursor.execute("COMMIT")

    thread = threading.Thread(target=add)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@pytest.fixture
def large(source_server: MariadbServer, schema: str, monkeypatch: pytest.MonkeyPatch) -> TableName:
    """A table that counts as large."""
    monkeypatch.setattr(plan, "_LARGE", 1)
    source_server.run(
        f"CREATE DATABASE {schema}",
        f"CREATE TABLE {schema}.t (id INT PRIMARY KEY, n INT NOT NULL, v VARCHAR(50))",
        f"INSERT INTO {schema}.t SELECT seq, 0, MD5(seq) FROM seq_1_to_5000",
        f"ANALYZE TABLE {schema}.t",
        database="mysql",
    )
    return TableName(schema, "t")


def rows_of(folder: Path, name: TableName) -> tuple[dict[int, int], Location]:
    record = read_dump(folder).records[name]
    table = pa.concat_tables([pq.read_table(folder / file.name) for file in record.files])
    assert record.location is not None
    return dict(zip(table.column("id").to_pylist(), table.column("n").to_pylist(), strict=True)), record.location


def test_all_readers_see_the_rows_of_the_location(
    large: TableName,
    make_dump: Callable[..., DumpUnit],
    source_server: MariadbServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    used: list[int] = []
    real = ranges.read_ranges

    def counted(readers: Any, *more: Any) -> Any:
        used.append(len(readers))
        return real(readers, *more)

    monkeypatch.setattr(lock_free, "read_ranges", counted)
    with adding(source_server, str(large)):
        make_dump(large.schema, threads=4).run()
    found, location = rows_of(tmp_path / "dump", large)
    assert used == [4]
    assert len(found) == 5000
    (file,) = [log for log in source_server.binlog_files() if log.name == location.position.file]
    events = source_server.query(f"SHOW BINLOG EVENTS IN '{file.name}'")
    rows = [row for row in events if row[4] <= location.position.offset]
    mapped = [str(row[5]).endswith(f"({large})") for row in rows if row[2] == "Table_map"]
    assert found[1] == found[5000] == sum(mapped) // 2, "one for the rows at first, two for each transaction"
    assert {n for id, n in found.items() if id not in (1, 5000)} == {0}


def test_a_reader_that_fails_lets_all_begin_again(
    large: TableName, make_dump: Callable[..., DumpUnit], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, failed = read_rows, threading.Event()

    def failing(reader: Any, table: Any, conditions: Any, **more: Any) -> Iterator[Any]:
        yield from real(reader, table, conditions, **more)
        if not failed.is_set() and ">" in conditions[1]:
            failed.set()
            raise DumpError("DUMP-010", Where(table=str(table.name)))

    monkeypatch.setattr(ranges, "read_rows", failing)
    make_dump(large.schema, threads=4).run()
    assert failed.is_set()
    found, _ = rows_of(tmp_path / "dump", large)
    assert sorted(found) == list(range(1, 5001))
    assert len(list((tmp_path / "dump").glob("*.t.*.parquet"))) == 16, "no file of the first attempt is left"


def test_a_condition_on_the_rows_holds_in_each_range(
    large: TableName, make_dump: Callable[..., DumpUnit], tmp_path: Path
) -> None:
    make_dump(large.schema, threads=4, where="id % 2 = 0 OR id = 1").run()
    found, _ = rows_of(tmp_path / "dump", large)
    assert sorted(found) == [1, *range(2, 5001, 2)]


def test_the_connections_let_the_table_go(large: TableName, source_server: MariadbServer) -> None:
    """A DDL runs as soon as the table is read."""
    plain, *bulks = (open_reader(source_server.endpoint, text=number == 0) for number in range(4))
    tables, _, same = lock_free._open_snapshot(plain, tuple(bulks), (large,))
    assert (len(tables), same) == (1, 3)
    for bulk in bulks:
        ask(bulk, "ROLLBACK")
    source_server.run(f"ALTER TABLE {large} ADD COLUMN w INT")
    for connection in (plain, *bulks):
        connection.close()
