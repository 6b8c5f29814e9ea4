"""Sharding DDL between MySQL servers: held rows of several structures, without names of columns in the log."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.shard_runs import Shards
from support.task_runs import TaskRun
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.mysql_server import MysqlServer

pytestmark = [pytest.mark.server, pytest.mark.spark]


def test_sharding_ddl(
    spark: SparkSession, mysql_source: MysqlServer, mysql_target: MysqlServer, schema: str, tmp_path: Path
) -> None:
    shards = Shards(schema, {"s1": mysql_source}, mysql_target, tmp_path)
    changes = (
        "ADD COLUMN c INT NOT NULL DEFAULT 4, ALGORITHM=INSTANT",
        "ADD COLUMN d VARCHAR(10) NULL DEFAULT 'x' AFTER id, ADD KEY (c)",
        "RENAME COLUMN c TO e, MODIFY d VARCHAR(300) NULL DEFAULT 'y'",
        "DROP COLUMN d, ADD COLUMN g INT AS (e + 1) STORED",
    )
    with TaskRun(shards.files(), spark) as run:
        run.reach("sync")
        run.catch_up()
        for number, change in enumerate(changes, 1):
            shards.alter("s1", 0, change)
            shards.insert("s1", 0, number)
            shards.update("s1", 0, 0, f"v = {number}")
        shards.run("s1", f"CREATE TABLE {shards.at(7)} LIKE {shards.at(0)}")
        shards.insert("s1", 7, 1, e="7")
        xid = f"'{schema}'"
        row = f"INSERT INTO {shards.at(0)} (id, v) VALUES ({shards.id('s1', 0, 9)}, 'never')"
        for end in ("ROLLBACK", "COMMIT"):
            mysql_source.run(f"XA START {xid}", row, f"XA END {xid}", f"XA PREPARE {xid}", f"XA {end} {xid}")
        run.catch_up()
        run.stop()
    with TaskRun(shards.files(), spark) as run:
        for change in changes:
            shards.alter("s1", 1, change)
            shards.update("s1", 1, 0, "v = CONCAT(v, '+')")
        shards.settle(run)


def test_a_statement_of_mariadb_that_a_copy_has_and_that_leaves_it_as_it_is(
    spark: SparkSession, source_server: MariadbServer, mysql_target: MysqlServer, schema: str, tmp_path: Path
) -> None:
    """MySQL shows widths and defaults otherwise than MariaDB does, which is no difference between the copies."""
    row = "id INT PRIMARY KEY, v VARCHAR(20) DEFAULT 'a', n INT(5), t DATETIME DEFAULT NOW()"
    shards = Shards(schema, {"s1": source_server}, mysql_target, tmp_path, row=row)
    change = "MODIFY v VARCHAR(20) DEFAULT 'a'"
    with shards.copied_late("s1", 1, change) as let, TaskRun(shards.files(), spark) as run:
        let(run)
        run.catch_up()
        shards.alter("s1", 0, change)
        shards.settle(run)
