"""Dumps of other tools read here, and ours read by theirs."""

from __future__ import annotations

import gzip
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from support.foreign_dumps import METADATA
from unshard.dump.unit import DumpUnit
from unshard.errors import LoadError
from unshard.load import unit
from unshard.load.mydumper import read_foreign
from unshard.load.unit import LoadUnit
from unshard.model.position import Position
from unshard.model.table import TableName
from unshard.testing.mariadb_server import MariadbServer

LATER_METADATA = """# Started dump at: 2026-01-02 03:04:05
[config]
quote-character = BACKTICK

[source]
# SOURCE_LOG_FILE = "mysql-bin.000007"
# SOURCE_LOG_POS = 4711

# Finished dump at: 2026-01-02 03:04:06
"""
SCHEMA = """/*!40101 SET NAMES binary*/;
CREATE TABLE `{table}` (
  `id` int(11) NOT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB;
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A dumpling folder with one table of an odd name, in two files, one of them compressed."""
    folder = tmp_path / "dump"
    folder.mkdir()
    (folder / "metadata").write_text(METADATA)
    (folder / "sh-schema-create.sql").write_text("CREATE DATABASE `sh` /*!40100 DEFAULT CHARACTER SET utf8mb4 */;\n")
    (folder / "sh.a%2Eb-schema.sql").write_text(SCHEMA.format(table="a.b"))
    (folder / "sh.a%2Eb.0000000010000.sql").write_text("INSERT INTO `a.b` (`id`) VALUES\n(1),\n(2);\n")
    (folder / "sh.a%2Eb.000000002.sql.gz").write_bytes(gzip.compress(b"INSERT INTO `a.b` VALUES (3);\n"))
    (folder / "sh.v-schema.sql").write_text(SCHEMA.format(table="v"))
    (folder / "sh.v-schema-view.sql").write_text("CREATE VIEW v AS SELECT 1;\n")
    return folder


def test_a_dumpling_folder_is_understood(folder: Path) -> None:
    contents = read_foreign(folder)
    assert contents.result.begin.position == Position("mysql-bin.000007", 4711)
    assert contents.result.begin.gtid == "0-1-99"
    assert contents.result.tables == {TableName("sh", "a.b"): contents.result.begin}
    (table,) = contents.tables
    assert [file.name for file in table.files] == ["sh.a%2Eb.0000000010000.sql", "sh.a%2Eb.000000002.sql.gz"]
    assert list(contents.databases) == ["sh"]


def test_a_dump_without_a_lock_has_a_second_location(folder: Path) -> None:
    after = "SHOW MASTER STATUS: /* AFTER CONNECTION POOL ESTABLISHED */\n\tLog: mysql-bin.000007\n\tPos: 5000\n"
    (folder / "metadata").write_text(METADATA.replace("\nFinished", after + "\nFinished"))
    end = read_foreign(folder).result.end
    assert end is not None
    assert end.position.offset == 5000


@pytest.mark.parametrize(
    ("name", "text", "fault"),
    [
        ("metadata", METADATA.split("Finished")[0], "not finished"),
        ("metadata", "nothing", "no position"),
        ("metadata", LATER_METADATA, "of a mydumper later than 0.10; dump anew with dumpling or mydumper 0.10"),
        ("sh.other.1.sql", "INSERT INTO t VALUES (1);", "belongs to no table"),
        ("sh.c-schema.sql", "SELECT 1;", "0 CREATE"),
    ],
)
def test_a_folder_that_is_not_whole_is_refused(name: str, text: str, fault: str, folder: Path) -> None:
    (folder / name).write_text(text)
    with pytest.raises(LoadError, match=fault) as caught:
        read_foreign(folder)
    assert caught.value.code == "LOAD-001"


@pytest.mark.server
def test_a_dumpling_folder_is_loaded(
    folder: Path, make_load: Callable[..., LoadUnit], schema: str, target_server: MariadbServer
) -> None:
    route = {"route": lambda name: TableName(schema, name.table)}
    make_load(schema, **route).run()
    assert target_server.query(f"SELECT * FROM {schema}.`a.b` ORDER BY 1") == [(1,), (2,), (3,)]
    assert target_server.query(
        "SELECT table_name FROM information_schema.tables WHERE table_schema = %s", (schema,)
    ) == [("a.b",)]


@pytest.mark.server
def test_what_such_a_dump_cannot_hold_is_told(
    folder: Path, make_load: Callable[..., LoadUnit], schema: str, caplog: pytest.LogCaptureFixture
) -> None:
    more = "`e` enum('a','') DEFAULT NULL, `k` enum('a') DEFAULT NULL, `f` float DEFAULT NULL, PRIMARY"
    (folder / "sh.a%2Eb-schema.sql").write_text(SCHEMA.format(table="a.b").replace("PRIMARY", more))
    (folder / "sh.a%2Eb.000000002.sql.gz").unlink()
    make_load(schema, route=lambda name: TableName(schema, name.table)).run()
    told = [record.msg for record in caplog.records if isinstance(record.msg, dict) and record.levelname == "WARNING"]
    assert [line["column"] for line in told if "column" in line] == ["e", "f"]


@pytest.mark.server
@pytest.mark.parametrize(("written", "code"), [("''", ""), ("'aa'", "LOAD-006")])
def test_warnings_about_rows_of_a_file_of_bytes_are_judged(
    written: str,
    code: str,
    folder: Path,
    make_load: Callable[..., LoadUnit],
    schema: str,
    target_server: MariadbServer,
) -> None:
    kind = "varchar(1)" if code else "enum('a')"
    schema_file = SCHEMA.format(table="a.b").replace("PRIMARY", f"`v` {kind} NOT NULL, PRIMARY")
    (folder / "sh.a%2Eb-schema.sql").write_text(schema_file)
    (folder / "sh.a%2Eb.000000002.sql.gz").unlink()
    rows = f"/*!40101 SET NAMES binary*/;\nINSERT INTO `a.b` VALUES (1,{written});\n".replace("'", '"')
    (folder / "sh.a%2Eb.0000000010000.sql").write_text(rows)
    load = make_load(schema, route=lambda name: TableName(schema, name.table))
    if code:
        with pytest.raises(LoadError, match=code):
            load.run()
    else:
        load.run()
        assert target_server.query(f"SELECT id, v + 0 FROM {schema}.`a.b`") == [(1, 0)]


@pytest.mark.server
@pytest.mark.parametrize(
    ("kind", "written", "held", "kept", "refused"),
    [
        ("enum('é','a')", b'"\xe9"', "latin1", "utf8mb4", True),
        ("varchar(9)", b'"\xc3\xa9"', "utf8mb4", "latin1", True),
        ("varchar(9)", b'"\xc3\xa9"', "latin1", "utf8mb4", True),
        ("varchar(9)", b'"\0a"', "ucs2", "utf8mb4", True),
        ("varchar(9)", b'"a"', "latin1", "utf8mb4", False),
        ("varchar(9)", b'"a"),(2,"\xe9"', "latin1", "utf8mb4", True),
        ("varchar(9)", b'"\xc3\xa9"', "utf8mb3", "utf8mb4", False),
        ("varchar(9)", b'"\xe9"', "latin1", "latin1", False),
    ],
)
def test_bytes_that_the_target_would_take_for_other_text_are_refused(
    kind: str,
    written: bytes,
    held: str,
    kept: str,
    refused: bool,
    folder: Path,
    make_load: Callable[..., LoadUnit],
    schema: str,
    target_server: MariadbServer,
) -> None:
    more = f"`v` {kind} CHARACTER SET {held} NOT NULL, PRIMARY"
    (folder / "sh.a%2Eb-schema.sql").write_text(SCHEMA.format(table="a.b").replace("PRIMARY", more))
    (folder / "sh.a%2Eb.000000002.sql.gz").unlink()
    head = b"/*!40101 SET NAMES binary*/;\n/*!40014 SET FOREIGN_KEY_CHECKS=0*/;\n"
    (folder / "sh.a%2Eb.0000000010000.sql").write_bytes(head + b"INSERT INTO `a.b` VALUES (1," + written + b");\n")
    made = f"CREATE TABLE {schema}.`a.b` (id INT PRIMARY KEY, v {kind} CHARACTER SET {kept} NOT NULL)"
    target_server.run(f"CREATE DATABASE {schema}", made)
    load = make_load(schema, route=lambda name: TableName(schema, name.table))
    if not refused:
        load.run()
    else:
        with pytest.raises(LoadError, match=f"LOAD-024.*bytes in {held}.*keeps it as {kept}"):
            load.run()
    assert target_server.query(f"SELECT COUNT(*) FROM {schema}.`a.b`") == [(0 if refused else 1,)]


@pytest.mark.server
@pytest.mark.parametrize("name", ["sh.a%2Eb.0000000010000.sql", "sh.a%2Eb.000000002.sql.gz"])
def test_a_cut_file_is_found(
    name: str, folder: Path, make_load: Callable[..., LoadUnit], schema: str, target_server: MariadbServer
) -> None:
    (folder / name).write_bytes((folder / name).read_bytes()[:-9])
    with pytest.raises(LoadError, match=name) as caught:
        make_load(schema, route=lambda name: TableName(schema, name.table)).run()
    assert caught.value.code == "LOAD-002"


@pytest.fixture
def shop(source_server: MariadbServer, schema: str) -> str:
    source_server.run(
        f"CREATE DATABASE {schema}",
        f"CREATE TABLE {schema}.orders (id INT AUTO_INCREMENT PRIMARY KEY, v TEXT CHARACTER SET latin1, b BLOB,"
        " g INT AS (id + 1))",
        f"INSERT INTO {schema}.orders (v, b) SELECT CONCAT('ü;''\\\\', seq), UNHEX(MD5(seq)) FROM seq_1_to_3000",
        database="mysql",
    )
    return schema


def same(one: MariadbServer, other: MariadbServer, table: str) -> bool:
    return bool(one.query(f"CHECKSUM TABLE {table} EXTENDED") == other.query(f"CHECKSUM TABLE {table} EXTENDED"))


@pytest.mark.mydumper
@pytest.mark.server
@pytest.mark.parametrize("flags", [["-r", "1000"], ["-c"], ["-s", "20000"]])
def test_mydumper_s_dump_is_loaded(
    flags: list[str],
    make_load: Callable[..., LoadUnit],
    shop: str,
    source_server: MariadbServer,
    target_server: MariadbServer,
    tmp_path: Path,
) -> None:
    target = ["-h", "127.0.0.1", "-P", str(source_server.port), "-u", "root", "-B", shop, "-o", str(tmp_path / "dump")]
    subprocess.run(["mydumper", *target, *flags], check=True, timeout=300)
    assert make_load(shop).run().rows == 3000
    assert same(source_server, target_server, f"{shop}.orders")


@pytest.mark.mydumper
@pytest.mark.server
def test_text_that_tidb_would_take_for_utf8_is_refused(
    make_load: Callable[..., LoadUnit],
    shop: str,
    source_server: MariadbServer,
    target_server: MariadbServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(unit, "is_tidb", lambda connection: True)
    target = ["-h", "127.0.0.1", "-P", str(source_server.port), "-u", "root", "-B", shop, "-o", str(tmp_path / "dump")]
    subprocess.run(["mydumper", *target], check=True, timeout=300)
    with pytest.raises(LoadError, match=r"LOAD-024.*text of column v as bytes in latin1"):
        make_load(shop).run()
    assert target_server.query(f"SELECT COUNT(*) FROM {shop}.orders") == [(0,)]


@pytest.mark.mydumper
@pytest.mark.server
def test_myloader_loads_our_sql(
    make_dump: Callable[..., DumpUnit],
    shop: str,
    source_server: MariadbServer,
    target_server: MariadbServer,
    tmp_path: Path,
) -> None:
    make_dump(shop, format="sql", rows=1000, statement_size=20_000).run()
    where = ["-h", "127.0.0.1", "-P", str(target_server.port), "-u", "root", "-d", str(tmp_path / "dump")]
    # with its own four threads, which wait for each other between its steps, it has been seen not to end
    subprocess.run(["myloader", *where, "--threads", "1"], check=True, timeout=300)
    assert same(source_server, target_server, f"{shop}.orders")
