"""Dumps as dumpling writes them: UTF-8 text under `SET NAMES binary`, and TIMESTAMP in the zone of its session."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.foreign_dumps import METADATA
from unshard.errors import LoadError
from unshard.load.mydumper import read_foreign
from unshard.load.unit import LoadUnit
from unshard.model.table import TableName
from unshard.testing.mariadb_server import MariadbServer

FROM_MARIADB = b"/*!40101 SET NAMES binary*/;\nSET FOREIGN_KEY_CHECKS=0;\n"
FROM_MYSQL = b"/*!40014 SET FOREIGN_KEY_CHECKS=0*/;\n/*!40101 SET NAMES binary*/;\n"
OLDER = b"/*!40101 SET NAMES binary*/;\n"
TABLE = """CREATE TABLE `t` (
  `id` int(11) NOT NULL,
  `v` varchar(9) DEFAULT NULL,
  `g` varchar(9) CHARACTER SET gbk COLLATE gbk_chinese_ci DEFAULT NULL,
  `u` varchar(9) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci DEFAULT NULL,
  `b` varbinary(9) DEFAULT NULL,
  `e` enum('é','x') DEFAULT NULL,
  `bi` bit(12) DEFAULT NULL,{more}
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=latin1 COLLATE=latin1_swedish_ci;
"""
ROWS = "INSERT INTO `t` VALUES\n(2,NULL,NULL,NULL,NULL,NULL,NULL),\n(1,'é€','中','中é',x'ff00c3a9','é',x'0aaa');\n"
STORED = [(1, "E980", "D6D0", "E4B8ADC3A9", "FF00C3A9", 1, 0xAAA), (2, None, None, None, None, None, None)]
ZONED = "INSERT INTO `t` VALUES\n(1,NULL,NULL,NULL,NULL,NULL,NULL,'2026-01-01 00:00:00');\n"

Folder = Callable[..., Path]


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    """`folder(head, rows, more)`: a dump of one table, with these lines before the rows and further columns."""

    def make(head: bytes, rows: str = ROWS, more: str = "") -> Path:
        folder = tmp_path / "dump"
        folder.mkdir()
        (folder / "metadata").write_text(METADATA)
        (folder / "a-schema-create.sql").write_bytes(head + b"CREATE DATABASE `a`;\n")
        (folder / "a.t-schema.sql").write_bytes(head + TABLE.format(more=more).encode())
        (folder / "a.t.000000000.sql").write_bytes(head + rows.encode())
        return folder

    return make


def load(make_load: Callable[..., LoadUnit], schema: str, **settings: Any) -> None:
    make_load(schema, route=lambda name: TableName(schema, name.table), **settings).run()


@pytest.mark.server
@pytest.mark.parametrize("head", [FROM_MARIADB, FROM_MYSQL, OLDER], ids=["of MariaDB", "of MySQL", "by an older one"])
def test_text_is_converted_to_the_character_set_of_its_column(
    head: bytes, folder: Folder, make_load: Callable[..., LoadUnit], schema: str, target_server: MariadbServer
) -> None:
    folder(head)
    load(make_load, schema)
    columns = "id, HEX(v), HEX(g), HEX(u), HEX(b), e + 0, bi + 0"
    assert target_server.query(f"SELECT {columns} FROM {schema}.t ORDER BY id") == STORED


@pytest.mark.server
def test_a_target_with_another_character_set_has_the_same_text(
    folder: Folder, make_load: Callable[..., LoadUnit], schema: str, target_server: MariadbServer
) -> None:
    folder(FROM_MYSQL)
    wide = TABLE.format(more="").replace("CHARSET=latin1 COLLATE=latin1_swedish_ci", "CHARSET=utf8mb4")
    target_server.run(f"CREATE DATABASE {schema}", wide.replace("`t`", f"{schema}.t"))
    load(make_load, schema)
    assert target_server.query(f"SELECT v, g, u, e FROM {schema}.t WHERE id = 1") == [("é€", "中", "中é", "é")]


@pytest.mark.server
def test_text_that_is_no_utf8_is_refused(
    folder: Folder, make_load: Callable[..., LoadUnit], schema: str, target_server: MariadbServer
) -> None:
    file = folder(FROM_MARIADB) / "a.t.000000000.sql"
    file.write_bytes(file.read_bytes().replace("'é€'".encode(), b"'\xe9'"))
    with pytest.raises(LoadError, match=r"LOAD-006.*a\.t\.000000000\.sql"):
        load(make_load, schema)
    assert target_server.query(f"SELECT COUNT(*) FROM {schema}.t") == [(0,)]


@pytest.mark.server
def test_times_of_an_unknown_zone_are_loaded_once_somebody_says_that_it_is_utc(
    folder: Folder, make_load: Callable[..., LoadUnit], schema: str, target_server: MariadbServer
) -> None:
    folder(FROM_MARIADB, ZONED, "\n  `ts` timestamp NULL DEFAULT NULL,")
    with pytest.raises(LoadError, match=r"LOAD-028.*in which time zone the values of column ts"):
        load(make_load, schema)
    assert target_server.query(f"SELECT COUNT(*) FROM {schema}.t") == [(0,)]
    load(make_load, schema, in_utc=True)
    assert target_server.query(f"SELECT UNIX_TIMESTAMP(ts) FROM {schema}.t") == [(1767225600,)]


@pytest.mark.parametrize(
    "name",
    ["a.t.000000000.csv", "a.t.000000000.csv.gz", "a.t.000000000.sql.zst", "a.t-schema.sql.snappy", "a.t.0.dat"],
)
def test_files_that_are_not_read_are_no_empty_tables(name: str, folder: Folder) -> None:
    directory = folder(FROM_MYSQL)
    (directory / name).write_bytes(b"1")
    with pytest.raises(LoadError, match=r"LOAD-001.*is no file of SQL, plain or compressed by gzip") as caught:
        read_foreign(directory)
    assert name in str(caught.value)
