"""Tables that are renamed out of the names that the rules let through, past such names, and into them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.operated_tasks import ctl, go_on, stopped_run
from support.task_runs import TaskFiles, TaskRun
from unshard.errors import DdlError
from unshard.model.table import TableName
from unshard.testing.compare import assert_equal
from unshard.testing.mariadb_server import MariadbServer

pytestmark = [pytest.mark.server, pytest.mark.spark]

SCRIPT = """
INSERT INTO log VALUES (2, 'old')
RENAME TABLE log TO shut_log
INSERT INTO shut_log VALUES (3, 'not followed')
CREATE TABLE log LIKE shut_log
INSERT INTO log VALUES (2, 'new')
RENAME TABLE b TO shut_tmp, c TO b, shut_tmp TO c
INSERT INTO b VALUES (7)
INSERT INTO c VALUES (8, 8)
RENAME TABLE shard_1 TO shard_2
INSERT INTO shard_2 VALUES (2)
ALTER TABLE shard_2 ADD v INT, RENAME TO shard_3
INSERT INTO shard_3 VALUES (3, 3)
CREATE TABLE new_log LIKE log
INSERT INTO new_log VALUES (9, 'next')
RENAME TABLE log TO shut_log2, new_log TO log
INSERT INTO log VALUES (10, 'last')
"""


def test_nothing_is_lost_across_the_rules(
    spark: SparkSession, source_server: MariadbServer, target_server: MariadbServer, schema: str, tmp_path: Path
) -> None:
    source_server.run(
        f"CREATE DATABASE {schema}",
        f"CREATE TABLE {schema}.log (id INT PRIMARY KEY, v VARCHAR(20))",
        f"INSERT INTO {schema}.log VALUES (1, 'old')",
        f"CREATE TABLE {schema}.b (id INT PRIMARY KEY, v INT)",
        f"CREATE TABLE {schema}.c (id INT PRIMARY KEY)",
        f"CREATE TABLE {schema}.shard_1 (id INT PRIMARY KEY)",
        f"INSERT INTO {schema}.shard_1 VALUES (1)",
    )
    allow = {"do-dbs": [schema], "ignore-tables": [{"db-name": schema, "tbl-name": "shut*"}]}
    route = {"schema-pattern": schema, "table-pattern": "shard_*", "target-schema": schema, "target-table": "one"}
    keys = {"block-allow-list": {"own": allow}, "routes": {"one": route}}
    files = TaskFiles(
        tmp_path,
        schema,
        {"s1": source_server},
        target_server,
        (schema,),
        keys=keys,
        instance={"route-rules": ["one"]},
    ).write()
    with TaskRun(files, spark) as run:
        run.reach("sync")
        source_server.run(*SCRIPT.strip().splitlines(), database=schema)
        run.catch_up()
        for table in ("log", "b", "c"):
            name = TableName(schema, table)
            assert_equal([(source_server, name)], (target_server, name))
        assert_equal([(source_server, TableName(schema, "shard_3"))], (target_server, TableName(schema, "one")))
    rows_left = target_server.query(f"SELECT * FROM {schema}.shut_log ORDER BY id")
    assert rows_left == [(1, "old"), (2, "old")]
    assert target_server.query(f"SELECT * FROM {schema}.shut_log2") == [(2, "new")]
    back = TableName(schema, "back")
    source_server.run(f"RENAME TABLE {schema}.shut_log TO {back}", f"INSERT INTO {back} VALUES (4, 'in the copy too')")
    error = stopped_run(files, spark)
    assert isinstance(error, DdlError)
    assert error.code == "DDL-011"
    assert f"{schema}.shut_log" in str(error)
    target_server.run(f"CREATE TABLE {back} LIKE {schema}.shut_log")
    for row in source_server.query(f"SELECT * FROM {back}"):
        target_server.run(f"INSERT INTO {back} VALUES {row}")
    ctl("binlog", "skip", str(files.task_path), "-s", "s1")
    go_on(replace(files, syncer={"safe-mode": True}).write(), spark)
    source_server.run(f"ALTER TABLE {back} ADD COLUMN c INT", f"INSERT INTO {back} VALUES (5, 'later', 1)")
    go_on(files.write(), spark)
    assert_equal([(source_server, back)], (target_server, back))


@pytest.mark.parametrize("then", ["goes on", pytest.param("starts again", marks=pytest.mark.scenarios)])
def test_a_table_that_an_excluded_one_replaces_is_read_by_its_new_structure(
    then: str,
    spark: SparkSession,
    source_server: MariadbServer,
    target_server: MariadbServer,
    schema: str,
    tmp_path: Path,
) -> None:
    """The advice of DDL-011 where a tool that the task does not know has altered a table by a copy of it."""
    name = TableName(schema, "t")
    source_server.run(
        f"CREATE DATABASE {schema}",
        f"CREATE TABLE {name} (id INT PRIMARY KEY, e ENUM('a', 'b'), v INT)",
        f"INSERT INTO {name} VALUES (1, 'a', 10)",
    )
    allow = {"do-dbs": [schema], "ignore-tables": [{"db-name": schema, "tbl-name": "lhm*"}]}
    files = TaskFiles(
        tmp_path, schema, {"s1": source_server}, target_server, (schema,), keys={"block-allow-list": {"own": allow}}
    ).write()
    go_on(files, spark)
    source_server.run(
        f"CREATE TABLE {schema}.lhmn_t (id INT PRIMARY KEY, e ENUM('x', 'a', 'b'), v INT)",
        f"INSERT INTO {schema}.lhmn_t SELECT id, e, v FROM {name}",
        f"RENAME TABLE {name} TO {schema}.lhma_t, {schema}.lhmn_t TO {name}",
        f"INSERT INTO {name} VALUES (2, 'a', 20)",
    )
    error = stopped_run(files, spark)
    assert isinstance(error, DdlError)
    assert error.code == "DDL-011"
    target_server.run(
        f"RENAME TABLE {name} TO {schema}.lhma_t",
        f"CREATE TABLE {name} (id INT PRIMARY KEY, e ENUM('x', 'a', 'b'), v INT)",
    )
    for row in source_server.query(f"SELECT * FROM {name}"):
        target_server.run(f"INSERT INTO {name} VALUES {row}")
    ctl("binlog", "skip", str(files.task_path), "-s", "s1")
    safe = replace(files, syncer={"safe-mode": True}).write()
    go_on(safe, spark)
    source_server.run(f"UPDATE {name} SET e = 'b' WHERE id = 1")
    with TaskRun(files.write(), spark) as run:
        run.catch_up()
        source_server.run(f"INSERT INTO {name} VALUES (3, 'x', 30)")
        run.catch_up()
        if then == "starts again":
            run.stop()
            source_server.run(f"INSERT INTO {name} VALUES (4, 'a', 40)")
            go_on(files, spark)
    assert_equal([(source_server, name)], (target_server, name))
