"""What an operator gives for statements and for a row change, with MySQL at both ends."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.operated_tasks import ctl, go_on, operators_of, stopped_run
from support.task_runs import TaskFiles
from unshard.model.table import TableName
from unshard.testing.compare import assert_equal
from unshard.testing.mysql_server import MysqlServer

pytestmark = [pytest.mark.server, pytest.mark.spark]


def test_a_task_gets_past_statements_and_a_row(
    spark: SparkSession, mysql_source: MysqlServer, mysql_target: MysqlServer, schema: str, tmp_path: Path
) -> None:
    name, others = TableName(schema, "t"), f"{schema}.t"
    mysql_source.run(f"CREATE DATABASE {schema}", f"CREATE TABLE {others} (id INT PRIMARY KEY, v VARCHAR(20))")
    mysql_source.run(f"INSERT INTO {others} VALUES (1, 'one')")
    files = TaskFiles(tmp_path, schema, {"s1": mysql_source}, mysql_target, (schema,)).write()
    go_on(files, spark)
    task = str(files.task_path)
    given = {
        "skipped": ("skip",),
        "replaced": ("replace", f"ALTER TABLE {others} MODIFY replaced BIGINT NULL"),
        "injected": ("inject", f"ALTER TABLE {others} DROP COLUMN injected"),
    }
    for number, (column, (verb, *statements)) in enumerate(given.items(), 2):
        mysql_target.run(f"ALTER TABLE {others} ADD COLUMN {column} INT NULL")
        mysql_source.run(f"ALTER TABLE {others} ADD COLUMN {column} INT NULL")
        mysql_source.run(f"INSERT INTO {others} (id, v, {column}) VALUES ({number}, 'x', {number})")
        error = stopped_run(files, spark)
        assert column in str(error)
        ctl("binlog", verb, task, "-s", "s1", *statements)
        go_on(files, spark)
    assert_equal([(mysql_source, name)], (mysql_target, name))
    mysql_target.run(f"ALTER TABLE {others} ADD CONSTRAINT c CHECK (v <> 'bad')")
    mysql_source.run(
        f"INSERT INTO {others} (id, v) VALUES (10, 'bad')", f"INSERT INTO {others} (id, v) VALUES (11, 'b')"
    )
    assert getattr(stopped_run(files, spark), "code", "") == "SYNC-004"
    ctl("binlog", "skip", task)
    go_on(files, spark)
    assert mysql_target.query(f"SELECT id FROM {others} WHERE id > 9") == [(11,)]
    assert operators_of(files) == [(op, "applied") for op in ("skip", "replace", "inject", "skip")]
