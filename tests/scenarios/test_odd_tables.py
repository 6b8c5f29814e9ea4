"""Tables at the limits, keys of every odd type, and system-versioned tables, through a whole task."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.task_runs import TaskFiles, TaskRun
from unshard.errors import UnshardError
from unshard.model.table import TableName
from unshard.testing.compare import assert_equal
from unshard.testing.mariadb_server import MariadbServer

pytestmark = [pytest.mark.server, pytest.mark.spark]

WIDE = ", ".join(f"c{number} tinyint" for number in range(1016))
ODD = "é`\"'.%-\\ 漢" + "x" * 53
"""A name of 64 characters."""

TABLES = {
    "wide": f"(id int PRIMARY KEY, {WIDE})",
    ODD: f"(`{ODD.replace('`', '``')}` int PRIMARY KEY, v int)",
    "lone": "(id int PRIMARY KEY)",
    "uuids": "(id uuid PRIMARY KEY, v inet6, w inet4, UNIQUE (v))",
    "addresses": "(id inet6, v inet4, w int, PRIMARY KEY (id, v))",
    "packed": "(id int PRIMARY KEY, v text COMPRESSED, w varchar(500) COMPRESSED)",
    "long_key": "(id varchar(768) COLLATE utf8mb4_bin PRIMARY KEY, v int)",
    "big": "(id int PRIMARY KEY, v longblob)",
    "isam": "(id int PRIMARY KEY, v char(9)) ENGINE=MyISAM ROW_FORMAT=FIXED",
    "aria": "(id int PRIMARY KEY, v int) ENGINE=Aria TRANSACTIONAL=1",
    "zeros": "(id int AUTO_INCREMENT PRIMARY KEY, d date, t timestamp NULL, k int DEFAULT 4, g int AS (k + 1) VIRTUAL,"
    " s int AS (k * 2) STORED, h int INVISIBLE DEFAULT 7, u varchar(40) DEFAULT (concat(uuid(), d)))",
    "versions": "(id int PRIMARY KEY, v int, w int WITHOUT SYSTEM VERSIONING) WITH SYSTEM VERSIONING",
    "spans": "(id int, s date, e date, v int, PERIOD FOR p (s, e), PRIMARY KEY (id, p WITHOUT OVERLAPS))",
    "hashed": "(v int, s text, DB_ROW_HASH_1 int, b blob NOT NULL, w varchar(9), UNIQUE (s), UNIQUE (b, v),"
    " UNIQUE (w) USING HASH) WITH SYSTEM VERSIONING",
    "memory": "(v varchar(9), UNIQUE (v)) ENGINE=MEMORY",
    "periods": "(id int PRIMARY KEY, v int, s timestamp(6) GENERATED ALWAYS AS ROW START,"
    " e timestamp(6) GENERATED ALWAYS AS ROW END, PERIOD FOR SYSTEM_TIME(s, e)) WITH SYSTEM VERSIONING",
}

FIRST = [
    "INSERT INTO wide (id, c0, c1015) VALUES (1, 1, 2), (2, NULL, 3)",
    "INSERT INTO odd VALUES (1, 1), (2, 2)",
    "INSERT INTO lone VALUES (1), (2)",
    "INSERT INTO uuids SELECT uuid(), concat('::', hex(seq)), concat('10.0.0.', seq) FROM seq_1_to_50",
    "INSERT INTO addresses SELECT concat('fe80::', hex(seq)), concat('10.0.', seq, '.0'), seq FROM seq_1_to_50",
    "INSERT INTO packed VALUES (1, repeat('ab', 5000), repeat('é', 400)), (2, '', 'short')",
    "INSERT INTO long_key VALUES (repeat('é', 768), 1), (repeat('😀', 768), 2)",
    "INSERT INTO big VALUES (1, repeat(x'00', 20000000))",
    "INSERT INTO isam VALUES (1, 'a'), (2, 'b')",
    "INSERT INTO aria VALUES (1, 1), (2, 2)",
    "INSERT INTO zeros (id, d, t) VALUES (0, '0000-00-00', '0000-00-00 00:00:00'), (5, '2024-02-31', NULL)",
    "INSERT INTO versions VALUES (1, 1, 1), (2, 2, 2), (3, 3, 3)",
    "UPDATE versions SET v = 9 WHERE id = 1",
    "INSERT INTO spans VALUES (1, '2020-01-01', '2030-01-01', 1), (2, '2020-01-01', '2030-01-01', 2)",
    "INSERT INTO hashed VALUES (1, repeat('a', 5000), 1, 'a', 'a'), (2, repeat('b', 5000), 2, '', NULL)",
    "INSERT INTO memory VALUES (1), (2)",
    "INSERT INTO periods (id, v) VALUES (1, 1), (2, 2), (3, 3)",
    "DELETE FROM periods WHERE id = 2",
]
LATER = [
    "UPDATE wide SET c1015 = 7, c500 = 1 WHERE id = 2",
    "UPDATE odd SET v = 8 WHERE v = 1",
    "DELETE FROM lone WHERE id = 1",
    "UPDATE uuids SET w = '0.0.0.0' WHERE v < '::9'",
    "DELETE FROM uuids WHERE v = '::5'",
    "INSERT INTO uuids VALUES ('123e4567-e89b-12d3-a456-426614174000', NULL, NULL)",
    "UPDATE addresses SET id = '::1.2.3.4' WHERE w = 3",
    "DELETE FROM addresses WHERE w = 4",
    "UPDATE packed SET v = repeat('é', 9000), w = '' WHERE id = 2",
    "UPDATE long_key SET v = 3 WHERE v = 2",
    "INSERT INTO big VALUES (2, repeat(x'27', 20000000))",
    "UPDATE isam SET v = 'c' WHERE id = 1",
    "DELETE FROM aria WHERE id = 1",
    "INSERT INTO zeros (id, d, t) VALUES (-1, '2024-00-00', '1970-01-01 00:00:01')",
    "UPDATE zeros SET d = '0000-00-00' WHERE id = 5",
    "UPDATE versions SET v = v + 1, w = 5",
    "UPDATE versions SET w = 6 WHERE id = 3",
    "DELETE FROM versions WHERE id = 2",
    "REPLACE INTO versions VALUES (3, 30, 30), (4, 4, 4)",
    "DELETE HISTORY FROM versions",
    *(f"DELETE FROM spans FOR PORTION OF p FROM '202{year}-06-01' TO '202{year}-07-01'" for year in range(8)),
    "UPDATE spans FOR PORTION OF p FROM '2021-01-01' TO '2028-01-01' SET v = 9 WHERE id = 2",
    "UPDATE hashed SET s = 'c' WHERE v = 1",
    "UPDATE hashed SET s = repeat('a', 5000) WHERE v = 2",
    "UPDATE hashed SET s = repeat('b', 5000), DB_ROW_HASH_1 = 7 WHERE v = 1",
    "ALTER TABLE hashed ADD x int DEFAULT 5, DROP KEY w",
    "INSERT INTO hashed VALUES (3, NULL, NULL, 'b', 'a', 6)",
    "UPDATE hashed SET b = w, x = 7 WHERE v = 3",
    "DELETE FROM memory WHERE v = 1",
    "UPDATE periods SET id = 10 WHERE id = 1",
    "INSERT INTO periods (id, v) VALUES (3, 0), (4, 4) ON DUPLICATE KEY UPDATE v = 33",
    "ALTER TABLE lone ADD v int DEFAULT 1, ADD SYSTEM VERSIONING",
    "INSERT INTO lone VALUES (7, 7)",
    "UPDATE lone SET v = 2 WHERE id = 2",
    "ALTER TABLE versions ADD x int DEFAULT 4, DROP SYSTEM VERSIONING",
    "UPDATE versions SET x = 1 WHERE id = 4",
]


def spelled(statements: list[str], schema: str) -> list[str]:
    odd = TableName(schema, ODD).quoted
    return [f"USE {schema}", "SET sql_mode = 'NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES'"] + [
        statement.replace("odd ", odd + " ") for statement in statements
    ]


@pytest.mark.scenarios
def test_odd_tables_arrive(
    spark: SparkSession, source_server: MariadbServer, target_server: MariadbServer, schema: str, tmp_path: Path
) -> None:
    source_server.run(
        f"CREATE DATABASE {schema}",
        "SET sql_mode = ''",
        "SET system_versioning_alter_history = KEEP",
        *(f"CREATE TABLE {TableName(schema, name).quoted} {columns}" for name, columns in TABLES.items()),
        *spelled(FIRST, schema),
    )
    files = TaskFiles(tmp_path, schema, {"s1": source_server}, target_server, (schema,)).write()
    with TaskRun(files, spark) as run:
        run.reach("sync")
        source_server.run("SET system_versioning_alter_history = KEEP", *spelled(LATER, schema))
        run.catch_up()
        for table in TABLES:
            name = TableName(schema, table)
            assert_equal([(source_server, name)], (target_server, name))
        (reading,) = run.crew.readings()
    assert reading.sync is not None
    assert reading.sync.missing == 0
    engines = target_server.query(
        f"SELECT DISTINCT ENGINE FROM information_schema.TABLES WHERE TABLE_SCHEMA = '{schema}'"
    )
    assert engines == [("InnoDB",)]
    for server in (source_server, target_server):
        server.run(f"DROP DATABASE {schema}")


def test_versions_need_whole_images(
    spark: SparkSession, source_server: MariadbServer, target_server: MariadbServer, schema: str, tmp_path: Path
) -> None:
    name = TableName(schema, "t")
    source_server.run(f"CREATE DATABASE {schema}", f"CREATE TABLE {name.quoted} {TABLES['versions']}")
    files = TaskFiles(tmp_path, schema, {"s1": source_server}, target_server, (schema,)).write()
    run = TaskRun(files, spark).start()
    run.reach("sync")
    source_server.run(f"INSERT INTO {name.quoted} VALUES (1, 1, 1)")
    run.catch_up()
    source_server.run("SET binlog_row_image = MINIMAL", f"UPDATE {name.quoted} SET v = 2")
    error = run.error()
    assert isinstance(error, UnshardError)
    assert error.code == "BINLOG-046"
    assert error.where.table == str(name)
    assert target_server.query(f"SELECT id, v, w FROM {name.quoted}") == [(1, 1, 1)]
