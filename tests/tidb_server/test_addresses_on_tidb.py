"""UUID, INET6 and INET4 of MariaDB on a TiDB, which keeps them as text: copied, followed, and made by statements."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.task_runs import TaskFiles, TaskRun
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.tidb_server import TidbServer

pytestmark = [pytest.mark.server, pytest.mark.spark]

FIRST, SECOND = "00000000-0000-0000-0000-00000000000a", "ffffffff-ffff-ffff-ffff-ffffffffffff"
LONGEST = "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"


def test_they_arrive_as_the_text_that_mariadb_shows(
    source_server: MariadbServer, tidb: TidbServer, schema: str, tmp_path: Path, spark: SparkSession
) -> None:
    shown = f"SELECT CAST(u AS CHAR), CAST(i AS CHAR), CAST(f AS CHAR), v FROM {schema}.t ORDER BY 1, 2"
    source_server.run(
        f"CREATE DATABASE {schema}",
        f"CREATE TABLE {schema}.t (u UUID PRIMARY KEY, i INET6 UNIQUE, f INET4 NOT NULL DEFAULT '1.2.3.4', v INT)",
        f"INSERT INTO {schema}.t VALUES ('{FIRST}', '::1', '0.0.0.0', 1), ('{SECOND}', '{LONGEST}', '1.20.255.3', 2)",
    )
    with TaskRun(TaskFiles(tmp_path, schema, {"s": source_server}, tidb, (schema,)).write(), spark) as run:
        run.catch_up()
        assert tidb.query(shown) == source_server.query(shown)
        source_server.run(
            f"INSERT INTO {schema}.t (u, i) VALUES (UUID(), '::ffff:1.2.3.4'), (UUID(), NULL)",
            f"UPDATE {schema}.t SET i = '2001:DB8::A', v = 3 WHERE u = '{FIRST}'",
            f"DELETE FROM {schema}.t WHERE u = '{SECOND}'",
            f"ALTER TABLE {schema}.t ADD w INET4, ADD KEY (w)",
            f"UPDATE {schema}.t SET w = '9.8.7.6', f = '255.255.255.255'",
            f"CREATE TABLE {schema}.n (u UUID, KEY (u))",
            f"INSERT INTO {schema}.n VALUES ('{FIRST}'), (NULL), ('{FIRST}')",
            f"DELETE FROM {schema}.n WHERE u IS NOT NULL LIMIT 1",
        )
        run.catch_up()
    assert tidb.query(shown) == source_server.query(shown)
    assert {row[0] for row in tidb.query(f"SELECT w FROM {schema}.t")} == {"9.8.7.6"}
    nones_first = f"SELECT CAST(u AS CHAR) FROM {schema}.n ORDER BY 1"
    assert tidb.query(nones_first) == source_server.query(nones_first) == [(None,), (FIRST,)]
    columns = tidb.query(
        "SELECT COLUMN_NAME, COLUMN_TYPE, COLLATION_NAME FROM information_schema.COLUMNS"
        f" WHERE TABLE_SCHEMA = '{schema}' AND TABLE_NAME = 't' AND COLLATION_NAME IS NOT NULL ORDER BY 1"
    )
    assert columns == [
        ("f", "varchar(15)", "ascii_bin"),
        ("i", "varchar(39)", "ascii_bin"),
        ("u", "char(36)", "ascii_bin"),
        ("w", "varchar(15)", "ascii_bin"),
    ]
