"""`binlog-schema`: the structure that rows are read by, shown and set while the task is stopped."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.operated_tasks import ctl, go_on, stopped_run
from support.task_runs import TaskFiles
from unshard.model.table import TableName
from unshard.testing.compare import assert_equal
from unshard.testing.mariadb_server import MariadbServer

pytestmark = [pytest.mark.server, pytest.mark.spark]


def test_a_wrong_structure_stops_the_task_until_it_is_set_right(
    spark: SparkSession, source_server: MariadbServer, target_server: MariadbServer, schema: str, tmp_path: Path
) -> None:
    source_server.run(
        f"CREATE DATABASE {schema}",
        f"CREATE TABLE {schema}.t (id INT PRIMARY KEY, v VARCHAR(20))",
        f"INSERT INTO {schema}.t VALUES (1, 'one')",
    )
    files = TaskFiles(tmp_path, schema, {"s1": source_server}, target_server, (schema,)).write()
    go_on(files, spark)
    task, source = str(files.task_path), str(files.source_paths[0])
    shown = ctl("binlog-schema", "list", task, schema, "t")["sources"][0]["msg"]
    assert shown.startswith("CREATE TABLE `t`")
    assert "varchar(20)" in shown
    assert not ctl("binlog-schema", "list", task, schema, "nobody", code=1)["result"]
    wrong = tmp_path / "wrong.sql"
    wrong.write_text("CREATE TABLE t (id INT PRIMARY KEY, v INT);")
    said = ctl("binlog-schema", "update", task, schema, "t", str(wrong), "-s", "s1")["sources"][0]
    assert said["source"] == "s1"
    assert re.search(r"`v` int(\(11\))? ", said["msg"])  # MySQL 8.0 has no widths
    source_server.run(f"INSERT INTO {schema}.t VALUES (2, 'two')")
    error = stopped_run(files, spark)
    assert "SYNC-007" in str(error) or "BINLOG-022" in str(error), error
    for way in ("--from-target", "--from-source"):
        said = ctl("binlog-schema", "update", task, schema, "t", way, "-s", source)["sources"][0]
        assert "varchar(20)" in said["msg"]
    go_on(files, spark)
    assert_equal([(source_server, TableName(schema, "t"))], (target_server, TableName(schema, "t")))
    ctl("binlog-schema", "delete", task, schema, "t")
    source_server.run(f"INSERT INTO {schema}.t VALUES (3, 'three')")
    go_on(files, spark)
    assert_equal([(source_server, TableName(schema, "t"))], (target_server, TableName(schema, "t")))
    assert "varchar(20)" in ctl("binlog-schema", "list", task, schema, "t")["sources"][0]["msg"]
