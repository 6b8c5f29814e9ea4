"""The dump unit on a real server: what is in the folder, and where each table stands."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from support.dump_units import values_of
from unshard.dump.metadata import read_dump
from unshard.dump.unit import DumpUnit
from unshard.errors import DumpError
from unshard.model.position import Position
from unshard.model.progress import CopyStage
from unshard.model.table import TableName
from unshard.testing.mariadb_server import MariadbServer

pytestmark = pytest.mark.server


@pytest.fixture
def two_tables(source_server: MariadbServer, schema: str) -> str:
    source_server.run(
        f"CREATE DATABASE {schema}",
        f"CREATE TABLE {schema}.a (id INT AUTO_INCREMENT PRIMARY KEY, v VARCHAR(20), twice INT AS (id * 2))",
        f"CREATE TABLE {schema}.b (id INT PRIMARY KEY, f FLOAT)",
        f"INSERT INTO {schema}.a (v) SELECT CONCAT('row ', seq) FROM seq_1_to_2500",
        f"INSERT INTO {schema}.b VALUES (1, 0.1), (2, 16777217), (3, 1.17549e-38), (4, 3.4028234e38), (5, NULL)",
        database="mysql",
    )
    return schema


@contextmanager
def writing(server: MariadbServer, schema: str) -> Iterator[None]:
    """One row a transaction into a, then one into b, again and again from another thread."""
    stop = threading.Event()

    def write() -> None:
        connection = server.connection(schema)
        with connection.cursor() as cursor:
            number = 1_000_000
            while not stop.is_set():
                number += 1
                cursor.execute(f"INSERT INTO a (id, v) VALUES ({number}, 'late')")
                cursor.execute(f"INSERT INTO b VALUES ({number}, 1)")
        connection.close()

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def written_until(server: MariadbServer, table: TableName, end: Position) -> int:
    """Row events of the table in the binlog up to `end`; those of `writing` hold one row each."""
    mine, count = False, 0
    with closing(server.connection()) as connection, connection.cursor() as cursor:
        connection.set_character_set("latin2")  # any byte is a letter: statements of other tests stand there too
        for log in server.binlog_files():
            cursor.execute(f"SHOW BINLOG EVENTS IN '{log.name}'")
            for _, start, kind, _, stop, info in cursor.fetchall():
                if Position(log.name, int(stop)) > end or Position(log.name, int(start)) > end:
                    continue
                if kind == "Table_map":
                    mine = info.endswith(f"({table})")
                count += mine and kind.startswith("Write_rows")
    return count


def dumped_ids(directory: Path, table: TableName) -> list[int]:
    return values_of(directory, read_dump(directory).records[table])


def test_a_dump_holds_every_row_and_leaves_generated_columns_out(
    make_dump: Callable[..., DumpUnit], two_tables: str, tmp_path: Path
) -> None:
    unit = make_dump(two_tables, rows=1000)
    result = unit.run()
    names = {path.name for path in (tmp_path / "dump").iterdir()}
    assert {f"{two_tables}.a.0000{number}.parquet" for number in (1, 2, 3)} <= names
    assert {"metadata", f"{two_tables}-schema-create.sql", f"{two_tables}.a-schema.sql"} <= names
    assert dumped_ids(tmp_path / "dump", TableName(two_tables, "a")) == list(range(1, 2501))
    assert pq.read_schema(tmp_path / "dump" / f"{two_tables}.a.00001.parquet").names == ["id", "v"]
    assert read_dump(tmp_path / "dump").records[TableName(two_tables, "a")].counter is not None
    assert set(result.tables) == {TableName(two_tables, "a"), TableName(two_tables, "b")}
    assert result.begin.gtid != ""
    progress = unit.progress()
    assert (progress.tables_done, progress.rows_done, progress.rows_total_estimate) == (2, 2505, 2505)
    assert progress.rows_before == 0
    assert [(str(one.table), one.stage, one.rows) for one in unit.tables()] == [
        (f"{two_tables}.a", CopyStage.DUMPED, 2500),
        (f"{two_tables}.b", CopyStage.DUMPED, 5),
    ]
    again = make_dump(two_tables, rows=1000)
    again.run()
    assert again.progress() == replace(progress, rows_before=2505)


def test_floats_are_not_rounded(make_dump: Callable[..., DumpUnit], two_tables: str, tmp_path: Path) -> None:
    make_dump(two_tables).run()
    table = pq.read_table(tmp_path / "dump" / f"{two_tables}.b.00001.parquet")
    values = table.column("f").to_pylist()
    assert values[:2] == [0.10000000149011612, 16777216.0]
    assert values[3] == 3.4028234663852886e38
    assert values[4] is None


@pytest.mark.parametrize("consistency", ["auto", "flush", "lock"])
def test_each_table_holds_just_what_the_binlog_had_at_its_location(
    consistency: str, make_dump: Callable[..., DumpUnit], two_tables: str, source_server: MariadbServer, tmp_path: Path
) -> None:
    tables = {TableName(two_tables, "a"): 2500, TableName(two_tables, "b"): 5}
    ((file, offset, *_),) = source_server.query("SHOW MASTER STATUS")
    set_up = {table: written_until(source_server, table, Position(file, int(offset))) for table in tables}
    with writing(source_server, two_tables):
        result = make_dump(two_tables, consistency=consistency, rows=1000).run()
    for table, bulk_rows in tables.items():
        location = result.tables[table]
        late = len(dumped_ids(tmp_path / "dump", table)) - bulk_rows
        assert late == written_until(source_server, table, location.position) - set_up[table]
        at = source_server.query("SELECT BINLOG_GTID_POS(%s, %s)", (location.position.file, location.position.offset))
        assert location.gtid == at[0][0]
        assert result.begin.position <= location.position
    if consistency == "flush":
        assert len(set(result.tables.values())) == 1


def test_an_unlocked_dump_tells_where_it_began_and_ended(
    make_dump: Callable[..., DumpUnit], two_tables: str, source_server: MariadbServer
) -> None:
    unit = make_dump(two_tables, consistency="none", rows=1000)
    dump_tables = unit._run_tasks

    def write_and_dump(*tasks: Any, **how: Any) -> list[bytes]:
        source_server.run(f"INSERT INTO {two_tables}.b VALUES (1000000, 1)")
        return dump_tables(*tasks, **how)

    unit._run_tasks = write_and_dump
    result = unit.run()
    assert result.end is not None
    assert result.begin.position < result.end.position


def test_a_finished_dump_is_read_back(make_dump: Callable[..., DumpUnit], two_tables: str) -> None:
    assert make_dump(two_tables).run() == make_dump(two_tables).run()


def test_a_table_that_is_not_transactional_makes_auto_lock(
    make_dump: Callable[..., DumpUnit], two_tables: str, source_server: MariadbServer, tmp_path: Path
) -> None:
    source_server.run(
        f"CREATE TABLE {two_tables}.m (id INT PRIMARY KEY) ENGINE=MyISAM", f"INSERT INTO {two_tables}.m VALUES (1), (2)"
    )
    result = make_dump(two_tables).run()
    assert read_dump(tmp_path / "dump").header.consistency == "flush"
    assert dumped_ids(tmp_path / "dump", TableName(two_tables, "m")) == [1, 2]
    assert len(set(result.tables.values())) == 1


def test_a_folder_that_holds_something_else_is_refused(
    make_dump: Callable[..., DumpUnit], two_tables: str, tmp_path: Path
) -> None:
    (tmp_path / "dump").mkdir()
    (tmp_path / "dump" / "precious.txt").write_text("mine")
    with pytest.raises(DumpError, match="precious") as caught:
        make_dump(two_tables).run()
    assert caught.value.code == "DUMP-002"
    (tmp_path / "dump" / "precious.txt").unlink()
    make_dump(two_tables).run()
    with pytest.raises(DumpError, match="DUMP-002"):
        make_dump(two_tables, where="id < 5").run()


def test_a_condition_filters_rows(make_dump: Callable[..., DumpUnit], two_tables: str, tmp_path: Path) -> None:
    make_dump(two_tables, where="id <= 2 OR id = 4").run()
    assert dumped_ids(tmp_path / "dump", TableName(two_tables, "a")) == [1, 2, 4]


def test_of_a_versioned_table_the_current_rows_are_dumped(
    make_dump: Callable[..., DumpUnit], two_tables: str, source_server: MariadbServer, tmp_path: Path
) -> None:
    source_server.run(f"CREATE TABLE {two_tables}.v (id INT) WITH SYSTEM VERSIONING")
    source_server.run(f"INSERT INTO {two_tables}.v VALUES (1), (2)", f"DELETE FROM {two_tables}.v WHERE id = 1")
    make_dump(two_tables).run()
    assert dumped_ids(tmp_path / "dump", TableName(two_tables, "v")) == [2]


def test_a_dump_of_an_earlier_attempt_is_made_again(
    make_dump: Callable[..., DumpUnit], source_server: MariadbServer, two_tables: str, tmp_path: Path
) -> None:
    """Also with other settings, which a dump of the same attempt may not have."""

    def rows(**settings: Any) -> int:
        make_dump(two_tables, **settings).run()
        return read_dump(tmp_path / "dump").records[TableName(two_tables, "b")].rows

    assert rows() == 5
    source_server.run(f"INSERT INTO {two_tables}.b VALUES (6, 6)")
    assert rows() == 5
    assert rows(attempt="first", rows=1000) == 6
    source_server.run(f"INSERT INTO {two_tables}.b VALUES (7, 7)")
    assert rows(attempt="first", rows=1000) == rows(rows=1000) == 6
    with pytest.raises(DumpError) as caught:
        rows(attempt="first")
    assert caught.value.code == "DUMP-002"
