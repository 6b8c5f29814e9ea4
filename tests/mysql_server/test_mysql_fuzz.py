"""Real binlog files of MySQL, damaged in every way, through every reader (`binlog_fuzz`)."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.binlog_fuzz import campaign
from unshard.testing.mysql_server import MysqlServer

pytestmark = pytest.mark.server

EXAMPLES = 300
COLUMNS = (
    "doc JSON, vec VECTOR(3), num DECIMAL(20,5), at DATETIME(3), gone TIME(6), kind ENUM('a','b'), flags SET('x','y'),"
    " name VARCHAR(30), raw VARBINARY(300), big BIGINT UNSIGNED, f FLOAT, bits BIT(9), place POINT, y YEAR"
)
ROW = (
    """'{"a": [1, 2.5, "x\\\\n", {"b": null}], "long": 12345678901}', x'0000803F0000004000004040', -1.5,"""
    " '2024-02-29 12:00:00.5', '-12:00:00.25', 'b', 'x,y', 'é', REPEAT(x'FF', 280), 18446744073709551615, 1.1, 257,"
    " ST_GeomFromText('POINT(1 2)'), 2024"
)
WORK = (
    f"CREATE TABLE t (id INT PRIMARY KEY, {COLUMNS})",
    f"INSERT INTO t VALUES (1, {ROW}), (2, {ROW}), (3, {ROW})",
    "INSERT INTO t (id, doc) VALUES (4, JSON_ARRAY(DATE'2024-01-01', x'00FF', CAST(1.50 AS DECIMAL(5,2)), 1e100))",
    "UPDATE t SET doc = JSON_SET(doc, '$.a[1]', 'y'), name = NULL WHERE id < 3",
    "BEGIN",
    "DELETE FROM t WHERE id = 1",
    "SAVEPOINT one",
    "UPDATE t SET num = 7",
    "COMMIT",
    "ALTER TABLE t ADD COLUMN more INT DEFAULT 5",
    "UPDATE t SET more = 6 WHERE id = 2",
    "XA START 'one'",
    "DELETE FROM t WHERE id = 2",
    "XA END 'one'",
    "XA PREPARE 'one'",
    "XA COMMIT 'one'",
)


def test_any_bytes_of_mysql_give_values_or_a_binlog_error(tmp_path: Path) -> None:
    ways = {
        "plain": ["SET binlog_rows_query_log_events = ON"],
        "compressed": ["SET binlog_transaction_compression = ON"],
        "packed": ["SET binlog_transaction_compression = ON", "SET binlog_row_value_options = PARTIAL_JSON"],
        "partial": ["SET binlog_row_value_options = PARTIAL_JSON"],
        "minimal": ["SET binlog_row_image = MINIMAL", "SET binlog_transaction_compression = ON"],
        "tagged": ["SET gtid_next = 'AUTOMATIC:tag'"],
    }
    with MysqlServer({"binlog_row_metadata": "FULL"}) as server:
        for way, settings in ways.items():
            server.run("FLUSH BINARY LOGS", f"CREATE DATABASE {way}")
            server.run(*settings, *WORK, database=way)
            file = server.binlog_files()[-1]
            (tmp_path / way).write_bytes(file.read_bytes())
    campaign(tmp_path, examples=EXAMPLES)
