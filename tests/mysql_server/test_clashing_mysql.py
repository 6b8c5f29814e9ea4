"""Shards of a MySQL source with the same ids, in a MySQL target, told apart by a column and by a text."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.task_runs import TaskFiles, TaskRun, newest
from unshard.errors import ConfigError
from unshard.testing.mysql_server import MysqlServer

pytestmark = [pytest.mark.server, pytest.mark.spark]
COLUMNS = "(id BIGINT AUTO_INCREMENT, code VARCHAR(20) NOT NULL, doc JSON, PRIMARY KEY (id), UNIQUE KEY code (code))"


@pytest.mark.parametrize("mode", ["all", "incremental"])
def test_shards_fold_with_their_names_in_the_keys(
    mode: str, spark: SparkSession, mysql_source: MysqlServer, mysql_target: MysqlServer, schema: str, tmp_path: Path
) -> None:
    place = {"schema-pattern": f"{schema}_1", "table-pattern": "t_*"}
    extract = {"table-regexp": "t_(.*)", "target-column": "shard"}
    route = {**place, "target-schema": f"{schema}_all", "target-table": "t", "extract-table": extract}
    mapping = {**place, "expression": "add suffix", "source-column": "code", "target-column": "code"}
    shards = [f"{schema}_1.t_{n}" for n in (1, 2)]
    mysql_source.run(f"CREATE DATABASE {schema}_1", *(f"CREATE TABLE {shard} {COLUMNS}" for shard in shards))
    where = newest(mysql_source)
    for shard in shards:
        mysql_source.run(f"INSERT INTO {shard} VALUES (1, 'a', '[1]'), (2, 'b', NULL)")
    begin = {"meta": {"binlog-name": where.file, "binlog-pos": where.offset}} if mode == "incremental" else {}
    files = TaskFiles(
        tmp_path,
        schema,
        {"s1": mysql_source},
        mysql_target,
        (f"{schema}_1",),
        keys={
            "task-mode": mode,
            "routes": {"r": route},
            "column-mappings": {"m": {**mapping, "arguments": ["-é"]}},
        },
        instance={"route-rules": ["r"], "column-mapping-rules": ["m"], **begin},
    ).write()
    if mode == "incremental":
        mysql_target.run(
            f"CREATE DATABASE {schema}_all",
            f"CREATE TABLE {schema}_all.t {COLUMNS}",
            f"ALTER TABLE {schema}_all.t ADD shard TINYINT NOT NULL, DROP PRIMARY KEY, ADD PRIMARY KEY (id, shard),"
            " DROP KEY code, ADD UNIQUE KEY code (shard, code) PARTITION BY LIST (shard)"
            " (PARTITION p1 VALUES IN (1), PARTITION p2 VALUES IN (2))",
        )
    else:
        with pytest.raises(ConfigError, match="CONFIG-017") as caught, TaskRun(files, spark) as run:
            raise run.error()
        mysql_target.run(*caught.value.values["mend"].split("; "))
    with TaskRun(files, spark) as run:
        run.reach("sync")
        mysql_source.run(
            "SET SESSION binlog_row_image = MINIMAL",
            f"UPDATE {shards[0]} SET id = 7, doc = '[2]' WHERE id = 1",
            f"DELETE FROM {shards[1]} WHERE id = 1",
            f"INSERT INTO {shards[1]} (code) VALUES ('a')",
        )
        run.catch_up()
        found = mysql_target.query(
            f"SELECT id, code, CAST(doc AS CHAR), CONCAT(shard) FROM {schema}_all.t ORDER BY 4, 1"
        )
    assert found == [
        (2, "b-é", None, "1"),
        (7, "a-é", "[2]", "1"),
        (2, "b-é", None, "2"),
        (3, "a-é", None, "2"),
    ]
