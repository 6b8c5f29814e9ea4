"""`unshard compare` from a MariaDB to a TiDB over keys of every kind, cut into small ranges."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.comparisons import compared, only_table
from support.task_runs import TaskFiles
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.tidb_server import TidbServer

pytestmark = [pytest.mark.server, pytest.mark.spark]

_TEXT = "CONCAT(IF(seq % 2, 'ä', 'Z'), CHAR(65 + seq % 26), '\\\\''', seq)"
_KEYS = {
    "unsigned": ("k BIGINT UNSIGNED PRIMARY KEY", "18446744073709551615 - seq * 7", True),
    "binary_text": ("k VARCHAR(30) COLLATE utf8mb4_bin PRIMARY KEY", _TEXT, True),
    "folding_text": ("k VARCHAR(30) COLLATE utf8mb4_general_ci PRIMARY KEY", _TEXT, True),
    "latin1": ("k CHAR(30) CHARACTER SET latin1 COLLATE latin1_bin PRIMARY KEY", _TEXT, True),
    "bytes": ("k VARBINARY(30) PRIMARY KEY", "UNHEX(MD5(seq))", True),
    "moments": ("k DATETIME(3) PRIMARY KEY", "'2024-02-29 23:59:59.995' + INTERVAL seq * 5000 MICROSECOND", True),
    "composite": ("a DECIMAL(9,2), k VARCHAR(30) COLLATE utf8mb4_bin, PRIMARY KEY (k, a)", "seq / 4, seq % 5", True),
    "unique": ("k INT NOT NULL UNIQUE", "-seq", True),
    "members": ("k ENUM('x', 'y') NOT NULL, n INT, PRIMARY KEY (k, n)", "1 + seq % 2, seq", False),
    "none": ("k INT", "seq % 50", False),
}


@pytest.mark.parametrize("kind", _KEYS)
def test_rows_are_found_by_their_key(
    kind: str, source_server: MariadbServer, tidb: TidbServer, schema: str, tmp_path: Path, spark: SparkSession
) -> None:
    columns, values, cut = _KEYS[kind]
    name = f"{schema}.t"
    for server in (source_server, tidb):
        server.run(f"CREATE DATABASE {schema} CHARACTER SET utf8mb4", f"CREATE TABLE {name} ({columns}, v INT)")
    source_server.run("SET NAMES utf8mb4", f"INSERT INTO {name} SELECT {values}, seq FROM mysql.seq_1_to_300")
    rows = source_server.query(f"SELECT * FROM {name}")
    marks = ", ".join(["%s"] * len(rows[0]))
    connection = tidb.connection()
    with connection.cursor() as cursor:
        cursor.executemany(f"INSERT INTO {name} VALUES ({marks})", rows)
    connection.close()
    keys = {"task-mode": "full"}
    files = TaskFiles(tmp_path, f"task_{schema}", {"s1": source_server}, tidb, (schema,), keys).write()
    equal = compared(files, spark, chunk_rows=40)
    table = only_table(equal)
    assert (equal.exit_code, table.source_rows, table.target_rows) == (0, 300, 300), table.to_dict()
    assert (table.chunks > 5) == cut
    tidb.run(f"DELETE FROM {name} WHERE v = 30", f"UPDATE {name} SET v = -1 WHERE v = 123")
    source_server.run(f"DELETE FROM {name} WHERE v = 200")
    table = only_table(compared(files, spark, chunk_rows=40))
    told = sorted(one.kind.value for one in table.differences)
    assert told == (["extra", "extra", "missing", "missing"] if kind == "none" else ["changed", "extra", "missing"])
    for server in (source_server, tidb):
        server.run(f"DROP DATABASE {schema}")
