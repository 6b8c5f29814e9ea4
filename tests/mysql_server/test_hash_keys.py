"""Unique keys that MariaDB keeps by a hash, in a hidden column that newer releases leave out of some row images."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.task_runs import TaskFiles, TaskRun
from unshard.testing.mysql_server import OtherMariadbServer

pytestmark = [pytest.mark.server, pytest.mark.spark]
COLUMNS = "(v INT, s TEXT, b BLOB NOT NULL, w VARCHAR(9), UNIQUE (s), UNIQUE (b, v), UNIQUE (w) USING HASH)"


@pytest.mark.parametrize("option", ["", "WITH SYSTEM VERSIONING"])
def test_rows_of_a_table_with_keys_by_a_hash(
    other_mariadb: OtherMariadbServer, schema: str, spark: SparkSession, tmp_path: Path, option: str
) -> None:
    """What the target holds in the end: a versioned table's current rows."""
    other_mariadb.run(f"CREATE DATABASE {schema}", f"CREATE TABLE {schema}.hashed {COLUMNS} {option}")
    long = "repeat('a', 5000)"
    with OtherMariadbServer() as target:
        files = TaskFiles(tmp_path, schema, {"s1": other_mariadb}, target, (schema,)).write()
        with TaskRun(files, spark) as run:
            run.catch_up()
            other_mariadb.run(
                f"USE {schema}",
                f"INSERT INTO hashed VALUES (1, {long}, 'a', 'a'), (2, 'b', '', NULL), (3, NULL, 'c', 'c')",
                "UPDATE hashed SET s = 'c' WHERE v = 1",
                f"UPDATE hashed SET s = {long} WHERE v = 2",
                "UPDATE hashed SET v = 4 WHERE v = 3",
                "DELETE FROM hashed WHERE v = 1",
            )
            run.catch_up()
        asked = f"SELECT v, LENGTH(s), b, w FROM {schema}.hashed ORDER BY v"
        assert target.query(asked) == other_mariadb.query(asked) == [(2, 5000, b"", None), (4, None, b"c", "c")]
