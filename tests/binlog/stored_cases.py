"""The stored binlog files: what made each, and how to make all of them again.

`python tests/binlog/stored_cases.py` boots the three servers (`make test-mysql` fetches two of them) and writes
`stored/NAME.binlog` with `stored/NAME.json` beside it: the server's version, what ran, and what the server's own tool
says of the file. The tests compare our reading with that, so a file is only made again to add to it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from support.binlog_tools import ask
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.mysql_server import MysqlServer, OtherMariadbServer, mysqlbinlog
from unshard.testing.programs import program

STORED = Path(__file__).parent / "stored"


@dataclass(frozen=True, slots=True)
class Case:
    """One file: `options` at the server's start, `settings` before the file begins, `statements` within it.

    `stopped`: the server is shut down in the file, else the file is ended by FLUSH BINARY LOGS.
    """

    server: str
    statements: tuple[str, ...]
    settings: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    stopped: bool = False


_CLOCK = "SET timestamp = 1700000000"
_TABLE = "CREATE TABLE s.t (id INT PRIMARY KEY, name VARCHAR(20), price DECIMAL(8,2), at DATETIME(3), note TEXT)"
_ROWS = (
    "INSERT INTO s.t VALUES (1,'one',1.50,'2020-01-02 03:04:05.678',NULL), (2,'two',-2.25,NULL,'second')",
    "UPDATE s.t SET name = 'zwei', note = NULL WHERE id = 2",
    "DELETE FROM s.t WHERE id = 1",
)
_PLAIN = (_TABLE, *_ROWS, "DROP TABLE s.t")
_TYPES = (
    "CREATE TABLE s.types (id BIGINT UNSIGNED PRIMARY KEY, tiny TINYINT, small SMALLINT UNSIGNED, medium MEDIUMINT,"
    " f FLOAT, d DOUBLE, price DECIMAL(20,6), day DATE, span TIME(2), moment DATETIME(6), stamp TIMESTAMP(3) NULL,"
    " y YEAR, flags BIT(12), size ENUM('s','m','l'), tags SET('a','b','c'), c CHAR(8) CHARACTER SET latin1,"
    " v VARCHAR(300) CHARACTER SET utf8mb4, b BINARY(4), vb VARBINARY(8), note TEXT CHARACTER SET utf8mb4, body BLOB)",
    "INSERT INTO s.types VALUES (18446744073709551615,-128,65535,-8388608,1.5,-2.25,'12345678901234.567890',"
    "'2020-02-29','-12:34:56.78','9999-12-31 23:59:59.999999','2023-11-14 22:13:20.123',1999,b'101010101010','m','a,c',"
    "'plain','varied','ab','cd','text','blob'), (0,127,0,8388607,-0.5,1e300,'-0.000001','1000-01-01','838:59:59.00',"
    "'1000-01-01 00:00:00.000000',NULL,2155,b'0','s','',NULL,'','','','',NULL)",
)
_STATEMENTS = (
    "CREATE TABLE s.t (id INT AUTO_INCREMENT PRIMARY KEY, x DOUBLE, name VARCHAR(20))",
    "INSERT INTO s.t (x) VALUES (RAND(7))",
    "SET @who = 'me', @count = -3, @none = NULL",
    "INSERT INTO s.t (x, name) VALUES (@count, @who), (@none, NULL)",
)
_STATEMENT_FORMAT = ("SET SESSION binlog_format = STATEMENT",)
_XA_TABLE = "CREATE TABLE s.t (id INT PRIMARY KEY)"
_XA = (
    _XA_TABLE,
    "XA START 'first','branch',7", "INSERT INTO s.t VALUES (1)", "XA END 'first','branch',7",
    "XA PREPARE 'first','branch',7", "XA COMMIT 'first','branch',7",
    "XA START 'second'", "INSERT INTO s.t VALUES (2)", "XA END 'second'", "XA PREPARE 'second'",
    "XA ROLLBACK 'second'",
    "XA START 'third'", "INSERT INTO s.t VALUES (3)", "XA END 'third'", "XA COMMIT 'third' ONE PHASE",
)  # fmt: skip
_JSON = (
    "CREATE TABLE s.t (id INT PRIMARY KEY, j JSON)",
    """INSERT INTO s.t VALUES (1, '{"a": 1, "b": "a long enough text to be worth a diff", "c": [1, 2, 3]}')""",
    "UPDATE s.t SET j = JSON_SET(j, '$.a', 2) WHERE id = 1",
    "UPDATE s.t SET j = JSON_REMOVE(j, '$.c[1]') WHERE id = 1",
)
_LONG = (
    "CREATE TABLE s.t (id INT PRIMARY KEY, name VARCHAR(200))",
    "INSERT INTO s.t VALUES (1, REPEAT('abc', 50)), (2, REPEAT('xyz', 50))",
    "UPDATE s.t SET name = REPEAT('new', 50)",
    "DELETE FROM s.t WHERE id = 1",
)
_SCHEMA = "CREATE DATABASE IF NOT EXISTS s"
_MARIADB, _NEWER, _MYSQL = "mariadb-10.11", "mariadb-11.8", "mysql-9.7"
_NO_CHECKSUM = ("SET GLOBAL binlog_checksum = NONE",)
_DOMAINS = ("SET gtid_domain_id = 5", *_PLAIN[:2], "SET gtid_domain_id = 0", "SET server_id = 77", *_ROWS[1:])

_TAGGED_BEFORE = ("SET gtid_next = 'AUTOMATIC:crm'", "CREATE TABLE s.before (id INT)", "SET gtid_next = 'AUTOMATIC'")

CASES: dict[str, Case] = {
    "mariadb-plain": Case(_MARIADB, _PLAIN),
    "mariadb-no-checksum": Case(_MARIADB, _PLAIN, _NO_CHECKSUM),
    "mariadb-metadata-minimal": Case(_MARIADB, _TYPES, options={"binlog_row_metadata": "MINIMAL"}),
    "mariadb-metadata-full": Case(_MARIADB, _TYPES, options={"binlog_row_metadata": "FULL"}),
    "mariadb-image-minimal": Case(_MARIADB, _PLAIN, ("SET SESSION binlog_row_image = MINIMAL",)),
    "mariadb-image-noblob": Case(_MARIADB, _PLAIN, ("SET SESSION binlog_row_image = NOBLOB",)),
    "mariadb-compressed": Case(_MARIADB, _LONG, options={"log_bin_compress": "ON", "log_bin_compress_min_len": "10"}),
    "mariadb-domains": Case(_MARIADB, _DOMAINS, ("SET gtid_domain_id = 3", "CREATE TABLE s.before (id INT)")),
    "mariadb-xa": Case(_MARIADB, _XA),
    "mariadb-two-phase-alter": Case(
        _MARIADB, (_TABLE, "ALTER TABLE s.t ADD COLUMN extra INT"), ("SET SESSION binlog_alter_two_phase = ON",)
    ),
    "mariadb-statements": Case(_MARIADB, _STATEMENTS, _STATEMENT_FORMAT),
    "mariadb-stopped": Case(_MARIADB, _PLAIN, stopped=True),
    "mariadb-11.8-plain": Case(_NEWER, _PLAIN),
    "mariadb-11.8-metadata-full": Case(_NEWER, _TYPES, options={"binlog_row_metadata": "FULL"}),
    "mysql-plain": Case(_MYSQL, _PLAIN),
    "mysql-no-checksum": Case(_MYSQL, _PLAIN, _NO_CHECKSUM),
    "mysql-metadata-minimal": Case(_MYSQL, _TYPES),
    "mysql-metadata-full": Case(_MYSQL, _TYPES, options={"binlog_row_metadata": "FULL"}),
    "mysql-anonymous": Case(_MYSQL, _PLAIN, options={"gtid_mode": "OFF"}),
    "mysql-tagged": Case(_MYSQL, ("SET gtid_next = 'AUTOMATIC:shop'", *_PLAIN), _TAGGED_BEFORE),
    "mysql-payload": Case(_MYSQL, _LONG, ("SET SESSION binlog_transaction_compression = ON",)),
    "mysql-partial-json": Case(_MYSQL, _JSON, ("SET SESSION binlog_row_value_options = PARTIAL_JSON",)),
    "mysql-xa": Case(_MYSQL, _XA),
    "mysql-rows-query": Case(_MYSQL, _PLAIN, ("SET SESSION binlog_rows_query_log_events = ON",)),
    "mysql-image-minimal": Case(_MYSQL, _PLAIN, ("SET SESSION binlog_row_image = MINIMAL",)),
    "mysql-image-noblob": Case(_MYSQL, _PLAIN, ("SET SESSION binlog_row_image = NOBLOB",)),
    "mysql-statements": Case(_MYSQL, _STATEMENTS, _STATEMENT_FORMAT),
    "mysql-stopped": Case(_MYSQL, _PLAIN, stopped=True),
}  # fmt: skip

_SERVERS = {_MARIADB: MariadbServer, _NEWER: OtherMariadbServer, _MYSQL: MysqlServer}


def make(name: str, case: Case) -> None:
    """Run the case on a server of its own and store what it wrote."""
    with _SERVERS[case.server]({"server_id": "1"} | dict(case.options)) as server:
        version = server.query("SELECT VERSION()")[0][0]
        server.run(_SCHEMA)
        begin = "FLUSH BINARY LOGS"
        settings = [statement for statement in case.settings if "GLOBAL" in statement]
        server.run(*settings)
        session = [statement for statement in case.settings if "GLOBAL" not in statement]
        server.run(_CLOCK, *session, begin, *case.statements, *([] if case.stopped else [begin]))
        file = server.binlog_files()[-1 if case.stopped else -2]
        if case.stopped:
            server.stop()
        data = file.read_bytes()
    path = STORED / f"{name}.binlog"
    path.write_bytes(data)
    told, whole = ask(tool(case.server), path)
    assert whole, name
    form = {"version": version, "case": asdict(case), **asdict(told)}
    (STORED / f"{name}.json").write_text(json.dumps(form, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    sys.stdout.write(f"{name}: {len(data)} bytes, {len(told.events)} events, {len(told.rows)} rows\n")


def tool(server: str) -> list[str]:
    """The program that prints its binlogs: the server's own, or that of the installed MariaDB."""
    return mysqlbinlog() if server == _MYSQL else [program("mariadb-binlog")]


if __name__ == "__main__":
    STORED.mkdir(exist_ok=True)
    for wanted in sys.argv[1:] or CASES:
        make(wanted, CASES[wanted])
