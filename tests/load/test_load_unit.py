"""Dump and load on real servers: what arrives, and what is refused."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from unshard.dump.unit import DumpUnit
from unshard.errors import LoadError, UnshardError
from unshard.load.checkpoint import LoadTables
from unshard.load.unit import LoadUnit
from unshard.model.progress import CopyStage
from unshard.model.table import TableName
from unshard.mysql.connection import session
from unshard.testing.mariadb_server import MariadbServer
from unshard.transform.column_mapping import ColumnMapping
from unshard.transform.extract import Extracted

pytestmark = pytest.mark.server

EVERYDAY = """
CREATE TABLE {schema}.`all.types` (
  id BIGINT UNSIGNED NOT NULL PRIMARY KEY,
  t TINYINT, s SMALLINT UNSIGNED, m MEDIUMINT, i INT(5) ZEROFILL,
  d DECIMAL(40,10), f FLOAT, g DOUBLE, f2 FLOAT(7,2), y YEAR, b BIT(17),
  dt DATE, ti TIME(3), da DATETIME(6), ts TIMESTAMP(2) NULL,
  c CHAR(10), vc VARCHAR(200) CHARACTER SET latin1, tx TEXT CHARACTER SET gbk, mt MEDIUMTEXT CHARACTER SET utf8mb4,
  bi BINARY(5), vb VARBINARY(20), bl LONGBLOB,
  e ENUM('x','it''s'), st SET('a','b','c'), j JSON, p POINT, gen INT UNSIGNED AS (s * 2) STORED)
"""
ROWS = """
INSERT INTO {schema}.`all.types` (id,t,s,m,i,d,f,g,f2,y,b,dt,ti,da,ts,c,vc,tx,mt,bi,vb,bl,e,st,j,p) VALUES
 (18446744073709551615, -128, 65535, -8388608, 7,
  '-123456789012345678901234567890.0123456789', 0.1, 1e308, 12345.67, 1901, b'10000000000000001',
  '0000-00-00', '-838:59:59.999', '0000-00-00 00:00:00', '1970-01-01 00:00:01.25',
  'tail', 'é€', '汉字', '😀', 'a\\0b', x'00FF', '', 'it''s', 'a,c', '{{"a": [1, null]}}', POINT(1.5,-2)),
 (1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
  NULL, NULL, NULL, NULL, NULL, NULL),
 (0, 127, 0, 0, 0,
  0, 16777217, -1e-300, 0, 0, 0,
  '2024-02-30', '-00:00:00.001', '9999-12-31 23:59:59.999999', '2038-01-19 03:14:07',
  '', 'quote '' back \\\\ nl \\n', '', '', '', x'', 'a''b\\\\c', 'no member', '', 'null', POINT(0,0))
"""


def checksum(server: MariadbServer, table: str) -> Any:
    return server.query(f"CHECKSUM TABLE {table} EXTENDED")[0][1]


@pytest.fixture
def shop(source_server: MariadbServer, schema: str) -> str:
    source_server.run(
        f"CREATE DATABASE {schema} CHARACTER SET latin1",
        f"CREATE TABLE {schema}.t_1 (id INT AUTO_INCREMENT PRIMARY KEY, v VARCHAR(20) NOT NULL)",
        f"INSERT INTO {schema}.t_1 (v) SELECT CONCAT('row ', seq) FROM seq_1_to_2500",
        f"ALTER TABLE {schema}.t_1 AUTO_INCREMENT = 9000",
        database="mysql",
    )
    return schema


Dumps = Callable[..., DumpUnit]
Loads = Callable[..., LoadUnit]


@pytest.mark.parametrize("form", ["parquet", "sql"])
def test_every_everyday_type_arrives_as_it_was(
    form: str,
    make_dump: Dumps,
    make_load: Loads,
    schema: str,
    source_server: MariadbServer,
    target_server: MariadbServer,
) -> None:
    source_server.run(
        f"CREATE DATABASE {schema}",
        "SET sql_mode = 'NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES'",  # lenient: 'no member' becomes the broken ENUM
        EVERYDAY.format(schema=schema),
        ROWS.format(schema=schema),
    )
    make_dump(schema, format=form).run()
    assert make_load(schema).run().rows == 3
    assert checksum(source_server, f"{schema}.`all.types`") == checksum(target_server, f"{schema}.`all.types`")
    shape = (
        "SELECT column_name, column_type, character_set_name FROM information_schema.columns WHERE table_schema = %s"
    )
    assert source_server.query(shape, (schema,)) == target_server.query(shape, (schema,))


def test_rows_counters_and_status_arrive_once(
    make_dump: Dumps, make_load: Loads, shop: str, source_server: MariadbServer, target_server: MariadbServer
) -> None:
    make_dump(shop, rows=1000).run()
    unit = make_load(shop)
    assert unit.progress().rows_done == 0
    result = unit.run()
    assert (result.files, result.rows) == (3, 2500)
    assert unit.progress().rows_before == 0
    assert unit.run() == result
    assert unit.progress().rows_before == 2500
    assert checksum(source_server, f"{shop}.t_1") == checksum(target_server, f"{shop}.t_1")
    assert "AUTO_INCREMENT=9000" in target_server.query(f"SHOW CREATE TABLE {shop}.t_1")[0][1]
    assert target_server.query(f"SELECT * FROM {shop}_meta.task_lightning_checkpoint_list") == [
        ("task", "shard-1", "finished")
    ]
    progress = unit.progress()
    assert (progress.tables_done, progress.tables_total, progress.rows_done) == (1, 1, 2500)
    assert progress.bytes_done == progress.bytes_total > 0
    (table,) = unit.tables()
    assert (table.stage, table.rows, table.rows_about) == (CopyStage.LOADED, 2500, 2500)
    assert table.size == progress.bytes_total


@pytest.mark.parametrize("form", ["parquet", "sql"])
def test_shards_merge_into_one_table_with_mapped_ids(
    form: str, make_dump: Dumps, make_load: Loads, shop: str, source_server: MariadbServer, target_server: MariadbServer
) -> None:
    source_server.run(
        f"ALTER TABLE {shop}.t_1 MODIFY id BIGINT AUTO_INCREMENT",
        f"CREATE TABLE {shop}.t_2 LIKE {shop}.t_1",
        f"INSERT INTO {shop}.t_2 SELECT * FROM {shop}.t_1",
    )
    make_dump(shop, format=form).run()
    bits = {
        f"t_{number}": ColumnMapping("rule", TableName(shop, f"t_{number}"), "id", "id", number << 44)
        for number in (1, 2)
    }
    make_load(shop, route=lambda name: TableName(f"{shop}_all", "t"), mapping_for=lambda name: bits[name.table]).run()
    merged = target_server.query(f"SELECT id >> 44, COUNT(*), SUM(id & 0xFFFFFFFF) FROM {shop}_all.t GROUP BY 1")
    total = sum(range(1, 2501))
    assert merged == [(1, 2500, total), (2, 2500, total)]


@pytest.mark.parametrize("form", ["parquet", "sql"])
def test_shards_merge_with_their_names_in_the_key_and_a_text_before_their_codes(
    form: str,
    make_dump: Dumps,
    make_load: Loads,
    schema: str,
    source_server: MariadbServer,
    target_server: MariadbServer,
) -> None:
    columns = "id BIGINT NOT NULL, code VARCHAR(8) CHARACTER SET latin1"
    rows = "(1, 'it''s'), (2, NULL), (3, 'é(')"
    made = [f"CREATE TABLE {schema}.t_{n} ({columns}, PRIMARY KEY (id))" for n in (1, 2)]
    filled = [f"INSERT INTO {schema}.t_{n} VALUES {rows}" for n in (1, 2)]
    source_server.run(f"CREATE DATABASE {schema}", *made, *filled)
    make_dump(schema, format=form).run()

    def load() -> LoadUnit:
        return make_load(
            schema,
            route=lambda name: TableName(f"{schema}_all", "t"),
            mapping_for=lambda name: ColumnMapping("m", name, "code", "CODE", prefix=f"{name.table}'-"),
            extracted=lambda name: (Extracted("r", "c", name.table[2:]), Extracted("r", "s", "\\'")),
        )

    missing = refused(load(), "CONFIG-017")
    target_server.run(*missing.values["mend"].split("; "))
    wide = refused(load(), "CONFIG-018" if form == "parquet" else "LOAD-006")
    assert wide.where.file is not None
    assert wide.where.table is not None
    target_server.run(f"ALTER TABLE {schema}_all.t MODIFY code VARCHAR(20), MODIFY c TINYINT NOT NULL")
    load().run()
    assert target_server.query(f"SELECT id, code, c, s FROM {schema}_all.t ORDER BY c, id") == [
        row for n in (1, 2) for row in ((1, f"t_{n}'-it's", n, "\\'"), (2, None, n, "\\'"), (3, f"t_{n}'-é(", n, "\\'"))
    ]
    assert "PRIMARY KEY (`id`,`c`,`s`)" in target_server.query(f"SHOW CREATE TABLE {schema}_all.t")[0][1]


def refused(unit: LoadUnit, code: str) -> UnshardError:
    with pytest.raises(UnshardError) as caught:
        unit.run()
    assert caught.value.code == code, str(caught.value)
    return caught.value


def test_a_duplicate_key_is_named_and_a_choice_settles_it(
    make_dump: Dumps, make_load: Loads, shop: str, target_server: MariadbServer
) -> None:
    make_dump(shop).run()
    target_server.run(
        f"CREATE DATABASE {shop}",
        f"CREATE TABLE {shop}.t_1 (id INT PRIMARY KEY, v VARCHAR(20) NOT NULL)",
        f"INSERT INTO {shop}.t_1 VALUES (77, 'mine')",
    )
    error = refused(make_load(shop, incremental_import=True), "LOAD-005")
    assert f"{shop}.t_1" in str(error)
    assert "77" in str(error)
    assert "on-duplicate" in error.hint
    assert target_server.query(f"SELECT COUNT(*) FROM {shop}.t_1") == [(1,)]
    make_load(shop, on_duplicate="ignore", incremental_import=True).run()
    assert target_server.query(f"SELECT v, (SELECT COUNT(*) FROM {shop}.t_1) FROM {shop}.t_1 WHERE id = 77") == [
        ("mine", 2500)
    ]
    make_load(f"{shop}_b", on_duplicate="replace", incremental_import=True).run()
    assert target_server.query(f"SELECT v FROM {shop}.t_1 WHERE id = 77") == [("row 77",)]


def test_a_target_of_another_shape_is_refused(
    make_dump: Dumps, make_load: Loads, shop: str, target_server: MariadbServer
) -> None:
    make_dump(shop).run()
    target_server.run(f"CREATE DATABASE {shop}", f"CREATE TABLE {shop}.t_1 (id INT PRIMARY KEY, v DATE)")
    error = refused(make_load(shop), "LOAD-004")
    assert "varchar(20)" in str(error)
    assert "date" in str(error)


def test_a_value_that_would_be_cut_stops_the_load(
    make_dump: Dumps, make_load: Loads, shop: str, target_server: MariadbServer
) -> None:
    make_dump(shop).run()
    target_server.run(f"CREATE DATABASE {shop}", f"CREATE TABLE {shop}.t_1 (id INT PRIMARY KEY, v VARCHAR(5))")
    error = refused(make_load(shop), "LOAD-006")
    assert "'v'" in error.cause
    assert target_server.query(f"SELECT COUNT(*) FROM {shop}.t_1") == [(0,)]


@pytest.mark.parametrize("damage", ["cut", "changed", "gone"])
@pytest.mark.parametrize("form", ["parquet", "sql"])
def test_a_damaged_file_is_found_before_it_is_loaded(
    form: str, damage: str, make_dump: Dumps, make_load: Loads, shop: str, tmp_path: Path, target_server: MariadbServer
) -> None:
    make_dump(shop, format=form).run()
    file = tmp_path / "dump" / f"{shop}.t_1.00001.{form}"
    data = file.read_bytes()
    if damage == "gone":
        file.unlink()
    else:
        file.write_bytes(data[:-7] if damage == "cut" else data[:50] + bytes([data[50] ^ 1]) + data[51:])
    error = refused(make_load(shop), "LOAD-002")
    assert file.name in str(error)
    file.write_bytes(data)
    assert make_load(shop).run().rows == 2500
    assert target_server.query(f"SELECT COUNT(*) FROM {shop}.t_1") == [(2500,)]


def test_another_dump_takes_the_place_of_one_of_which_nothing_is_loaded(
    make_dump: Dumps, make_load: Loads, shop: str, tmp_path: Path, target_server: MariadbServer
) -> None:
    """As a load leaves it that dies before its first piece."""
    make_dump(shop, rows=100).run()
    make_load(shop).run()
    target_server.run(
        f"UPDATE {shop}_meta.task_lightning_checkpoint_list SET status = 'running'",
        f"UPDATE {shop}_meta.task_load_chunk SET finished = FALSE, piece = 0, step = 0, done_rows = 0, done_bytes = 0",
        f"TRUNCATE {shop}.t_1",
    )
    shutil.rmtree(tmp_path / "dump")
    make_dump(shop).run()
    assert make_load(shop).run().rows == 2500
    assert target_server.query(f"SELECT COUNT(*) FROM {shop}.t_1") == [(2500,)]


def test_another_dump_does_not_go_on_where_the_first_was_loaded(
    make_dump: Dumps, make_load: Loads, shop: str, tmp_path: Path, target_server: MariadbServer
) -> None:
    make_dump(shop).run()
    unit = make_load(shop)
    unit.run()
    target_server.run(
        f"UPDATE {shop}_meta.task_lightning_checkpoint_list SET status = 'running'",
        f"UPDATE {shop}_meta.task_load_chunk SET finished = FALSE, size = size + 1",
    )
    refused(unit, "LOAD-008")


def test_a_load_that_has_begun_is_known_without_its_dump(
    make_dump: Dumps, make_load: Loads, shop: str, target_server: MariadbServer
) -> None:
    tables = LoadTables(f"{shop}_meta", "task", "shard-1")
    with session(target_server.endpoint, "target") as connection:
        assert tables.begun(connection) == "", "no table of it yet"
        make_dump(shop).run()
        make_load(shop).run()
        assert tables.begun(connection).startswith(f"{shop}.")


def test_a_later_dump_into_the_same_folder_is_another_one(
    make_dump: Dumps, make_load: Loads, shop: str, tmp_path: Path, target_server: MariadbServer
) -> None:
    make_dump(shop).run()
    make_load(shop).run()
    target_server.run(f"UPDATE {shop}_meta.task_lightning_checkpoint_list SET status = 'running'")
    shutil.rmtree(tmp_path / "dump")
    make_dump(shop).run()
    refused(make_load(shop), "LOAD-008")


def test_a_folder_without_a_dump_is_refused(make_load: Loads, shop: str, tmp_path: Path) -> None:
    refused(make_load(shop), "LOAD-001")
    (tmp_path / "dump").mkdir()
    refused(make_load(shop), "LOAD-001")


def test_a_row_over_the_packet_limit_is_named(
    make_dump: Dumps, make_load: Loads, schema: str, source_server: MariadbServer, target_server: MariadbServer
) -> None:
    source_server.run(
        f"CREATE DATABASE {schema}",
        f"CREATE TABLE {schema}.t (id INT PRIMARY KEY, b LONGBLOB)",
        f"INSERT INTO {schema}.t VALUES (1, REPEAT('x', 700000))",
    )
    make_dump(schema).run()
    ((before,),) = target_server.query("SELECT @@global.max_allowed_packet")
    target_server.run("SET GLOBAL max_allowed_packet = 1048576")
    try:
        error = refused(make_load(schema), "LOAD-009")
    finally:
        target_server.run(f"SET GLOBAL max_allowed_packet = {before}")
    assert isinstance(error, LoadError)
    assert "1048576" in str(error)
    make_load(schema).run()
