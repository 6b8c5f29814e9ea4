"""Real binlog files of MariaDB, and one made by hand, damaged in every way, through every reader (`binlog_fuzz`)."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from made_events import File
from row_images import map_table, rows
from test_compressed import bare, inner, payload
from test_index_xa import prepare_body
from test_rows_types import EVERYTHING
from test_tagged_gtids import TAG_ONE_1, TAG_ONE_2

from support.binlog_fuzz import campaign
from unshard.testing.mariadb_server import MariadbServer

pytestmark = pytest.mark.server

EXAMPLES = 300
LARGE = ("30000", "70000")


def one_of_all() -> list[str]:
    """Tables of every type, and what happens to their rows."""
    chance = random.Random(7)
    values = {
        kind: [value for value in found if not any(size in value for size in LARGE)]
        for kind, found in EVERYTHING.items()
    }
    kinds = [kind for kind, found in values.items() if found]
    columns = ", ".join(f"`c{number}` {kind}" for number, kind in enumerate(kinds))
    drawn = (f"({number}, " + ", ".join(chance.choice(values[kind]) for kind in kinds) + ")" for number in range(6))
    return [
        "SET sql_mode = ''",
        f"CREATE TABLE t (id INT PRIMARY KEY, {columns}) ENGINE=Aria",
        "CREATE TABLE s (id INT PRIMARY KEY, name VARCHAR(20), sums INT AS (id * 2) STORED) ENGINE=InnoDB",
        "INSERT INTO t VALUES " + ",".join(drawn),
        "UPDATE t SET c0 = c0 + 1, c1 = NULL WHERE id < 4",
        "DELETE FROM t WHERE id = 5",
        "BEGIN",
        "INSERT INTO s (id, name) VALUES (1, 'a'), (2, REPEAT('b', 20))",
        "SAVEPOINT one",
        "UPDATE s SET name = NULL WHERE id = 2",
        "ROLLBACK TO one",
        "COMMIT",
        "CREATE TABLE made AS SELECT id, name FROM s",
        "SET @value = 'x'",
        "ALTER TABLE s ADD COLUMN more DECIMAL(9, 2) DEFAULT 1.5",
        "UPDATE s SET more = -7 WHERE id = 1",
        "DROP TABLE made",
        "XA START 'one'",
        "INSERT INTO s (id, name) VALUES (7, REPEAT('x', 200))",
        "XA END 'one'",
        "XA PREPARE 'one'",
        "XA COMMIT 'one'",
        "TRUNCATE TABLE s",
    ]


def mysql_made_by_hand() -> bytes:
    """Events that MariaDB doesn't write: MySQL's GTIDs, row events of version 2, JSON and VECTOR, payloads."""
    file = File(version=b"9.7.0")
    document = bytes.fromhex(
        "000300430019000100 1a0002001c000300021f0005000000370061c3a9622063"
        "0300180005010 00b0d000c1500000000000000044002780a01000c000b00010005 01006b".replace(" ", "")
    )
    image = b"\0" + bytes([len(document), 0, 0, 0]) + document + b"\x04\0\0\0\0\0\x80\x3f"
    for number, code in enumerate((30, 31, 32), 1):
        file.mysql_gtid(bytes(range(16)), number)
        file.query("BEGIN")
        map_table(file, [245, 242], b"\x04\x04")
        rows(file, image * 2, columns=2, code=code, extra=b"\0\x05ab")
        file.xid(number)
    packed_up = bare()
    packed_up.query("XA START X'71',X'',1")
    map_table(packed_up, [245, 242], b"\x04\x04")
    rows(packed_up, image * 2, columns=2, code=30)
    packed_up.query("XA END X'71',X'',1")
    packed_up.event(38, prepare_body())
    file.event(42, TAG_ONE_1)
    file.event(40, payload(packed_up.data))
    file.event(42, TAG_ONE_2)
    file.event(40, payload(inner(tables=3).data))
    file.mysql_gtid(bytes(range(16)), 4)
    file.query("XA COMMIT X'71',X'',1")
    return bytes(file.data)


@pytest.mark.storms
def test_any_bytes_give_values_or_a_binlog_error(tmp_path: Path) -> None:
    options = {"binlog_row_metadata": "FULL", "log_bin_compress_min_len": "10"}
    with MariadbServer(options) as server:
        server.run("CREATE DATABASE d", "CREATE DATABASE e", "CREATE DATABASE f", "CREATE DATABASE g")
        server.run("FLUSH BINARY LOGS")
        server.run(*one_of_all(), database="d")
        server.run("SET GLOBAL log_bin_compress = ON", "SET GLOBAL binlog_row_metadata = MINIMAL", "FLUSH BINARY LOGS")
        server.run(*one_of_all(), database="e")
        server.run("SET GLOBAL binlog_row_image = MINIMAL", "FLUSH BINARY LOGS")
        server.run(*one_of_all(), database="g")
        server.run("SET GLOBAL log_bin_compress = OFF", "SET GLOBAL binlog_row_image = FULL")
        server.run("SET GLOBAL binlog_checksum = NONE")
        server.run(*one_of_all(), database="f")
        for file in server.binlog_files()[1:]:
            (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / "mysql").write_bytes(mysql_made_by_hand())
    campaign(tmp_path, examples=EXAMPLES)
