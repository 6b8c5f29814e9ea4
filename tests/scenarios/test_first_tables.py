"""The first table of a schema that held none when it was copied: the target's schema is made with it."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.exactly_once import assert_exactly_once
from support.shard_runs import ROW, Shards
from support.task_runs import Command, TaskFiles, TaskRun
from unshard.model.table import TableName
from unshard.testing.compare import assert_equal
from unshard.testing.mariadb_server import MariadbServer

pytestmark = [pytest.mark.server, pytest.mark.spark]


def test_a_schema_is_made_with_its_first_table(
    spark: SparkSession, source_server: MariadbServer, target_server: MariadbServer, schema: str, tmp_path: Path
) -> None:
    """By CREATE and by RENAME, with the character set that it has upstream, and under the name that a route gives."""
    source_server.run(
        f"CREATE DATABASE {schema}",
        f"CREATE TABLE {schema}.there (id INT PRIMARY KEY)",
        *(f"CREATE DATABASE {schema}_{n} CHARACTER SET latin1 COLLATE latin1_german2_ci" for n in "abc"),
    )
    route = {"schema-pattern": f"{schema}_c", "target-schema": f"{schema}_routed"}
    keys = {"routes": {"one": route}}
    schemas = (schema, *(f"{schema}_{n}" for n in "abc"))
    files = TaskFiles(
        tmp_path, schema, {"s1": source_server}, target_server, schemas, keys=keys, instance={"route-rules": ["one"]}
    ).write()
    with TaskRun(files, spark) as run:
        run.reach("sync")
        source_server.run(
            f"CREATE TABLE {schema}_a.t (id INT PRIMARY KEY, v VARCHAR(9))",
            f"INSERT INTO {schema}_a.t VALUES (1, 'ä')",
            f"RENAME TABLE {schema}.there TO {schema}_b.there",
            f"INSERT INTO {schema}_b.there VALUES (1)",
            f"CREATE TABLE {schema}_c.m LIKE {schema}_a.t",
            f"INSERT INTO {schema}_c.m VALUES (1, 'ö')",
        )
        run.catch_up()
    for name, target in (("a.t", "a.t"), ("b.there", "b.there"), ("c.m", "routed.m")):
        source, there = (TableName(*f"{schema}_{one}".split(".")) for one in (name, target))
        assert_equal([(source_server, source)], (target_server, there))
    sql = "SELECT DEFAULT_COLLATION_NAME FROM information_schema.SCHEMATA WHERE SCHEMA_NAME LIKE %s"
    assert target_server.query(sql, (f"{schema}\\_%",)) == [("latin1_german2_ci",)] * 3


@pytest.mark.faults
def test_it_is_made_once_wherever_a_process_dies(
    source_server: MariadbServer, target_server: MariadbServer, schema: str, tmp_path: Path
) -> None:
    source_server.run(f"CREATE DATABASE {schema}")
    files = TaskFiles(tmp_path, schema, {"s1": source_server}, target_server, (schema,)).write()
    with Command(files) as command:
        command.shows("sync")
        command.catch_up()
        command.interrupt()
        command.wait()
    source_server.run(f"CREATE TABLE {schema}.t (id INT PRIMARY KEY)", f"INSERT INTO {schema}.t VALUES (1), (2)")
    for place in ("ddl-execute-after", "ddl-noted:2"):
        with Command(files, crash_at=place) as command:
            command.dies(place)
    with Command(files) as command:
        command.catch_up()
        command.interrupt()
        assert command.wait() == 0
    assert_exactly_once(source_server, target_server, [TableName(schema, "t")])


def test_the_first_shards(
    source_server: MariadbServer, target_server: MariadbServer, spark: SparkSession, schema: str, tmp_path: Path
) -> None:
    source_server.run(f"CREATE DATABASE {schema}_s")
    shards = Shards(schema, {"s1": source_server}, target_server, tmp_path, tables=0)
    with TaskRun(shards.files(), spark) as run:
        run.reach("sync")
        for table in (0, 1):
            shards.run("s1", f"CREATE TABLE {shards.at(table)} ({ROW})")
            shards.insert("s1", table, 1)
        shards.settle(run)
