"""Routes, column mappings and extracted columns that change while the target has rows that were written by others."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from support.operated_tasks import ctl, go_on, stopped_run
from support.task_runs import TaskFiles
from unshard.errors import SyncError
from unshard.testing.mariadb_server import MariadbServer

pytestmark = [pytest.mark.server, pytest.mark.spark]
ONE, TWO = (number << 59 for number in (1, 2))


def mapping(schema: str, instance: int) -> dict[str, Any]:
    rule: dict[str, Any] = {
        "schema-pattern": schema,
        "table-pattern": "t",
        "source-column": "id",
        "target-column": "id",
    }
    rule |= {"expression": "partition id", "arguments": [str(instance), "", ""]}
    return {"column-mappings": {"own": rule}}


def route(schema: str, table: str, **more: Any) -> dict[str, Any]:
    return {
        "routes": {
            "own": {
                "schema-pattern": schema,
                "table-pattern": "t",
                "target-schema": schema,
                "target-table": table,
                **more,
            }
        }
    }


def refused(files: TaskFiles, spark: SparkSession, keys: dict[str, Any], *shown: str) -> TaskFiles:
    """The task with other keys, by which it does not start."""
    files = replace(files, keys=keys).write()
    error = stopped_run(files, spark)
    assert isinstance(error, SyncError)
    assert (error.code, error.where.table) == ("SYNC-085", f"{files.name}.t")
    for text in shown:
        assert text in str(error)
    return files


def confirm(files: TaskFiles) -> None:
    """`binlog-schema update`: the rows are as the rules say now."""
    ctl(
        "binlog-schema",
        "update",
        str(files.task_path),
        files.name,
        "t",
        "--from-source",
        "-s",
        str(*files.source_paths),
    )


def test_another_column_mapping_stops_the_task_until_the_rows_are_moved(
    spark: SparkSession, source_server: MariadbServer, target_server: MariadbServer, schema: str, tmp_path: Path
) -> None:
    """The advice of SYNC-085, to its end: both ways."""
    source_server.run(
        f"CREATE DATABASE {schema}",
        f"CREATE TABLE {schema}.t (id BIGINT PRIMARY KEY, v VARCHAR(20))",
        f"INSERT INTO {schema}.t VALUES (1, 'a'), (2, 'b')",
    )
    first = mapping(schema, 1)
    files = TaskFiles(
        tmp_path,
        schema,
        {"s1": source_server},
        target_server,
        (schema,),
        keys=first,
        instance={"column-mapping-rules": ["own"]},
    ).write()
    go_on(files, spark)
    source_server.run(f"UPDATE {schema}.t SET v = 'changed' WHERE id = 1", f"DELETE FROM {schema}.t WHERE id = 2")
    second = refused(files, spark, mapping(schema, 2), f"`id` | {ONE}", f"`id` | {TWO}")
    go_on(replace(files, keys=first).write(), spark)
    assert target_server.query(f"SELECT id, v FROM {schema}.t") == [(ONE | 1, "changed")]
    source_server.run(f"UPDATE {schema}.t SET v = 'again' WHERE id = 1")
    second.write()
    target_server.run(f"UPDATE {schema}.t SET id = id - {ONE} + {TWO}")
    confirm(second)
    go_on(second, spark)
    go_on(second, spark)
    assert target_server.query(f"SELECT id, v FROM {schema}.t") == [(TWO | 1, "again")]
    refused(second, spark, first)


@pytest.mark.scenarios
@pytest.mark.parametrize("case", ["another target", "another text"])
def test_another_route_stops_the_task(
    case: str,
    spark: SparkSession,
    source_server: MariadbServer,
    target_server: MariadbServer,
    schema: str,
    tmp_path: Path,
) -> None:
    source_server.run(
        f"CREATE DATABASE {schema}",
        f"CREATE TABLE {schema}.t (id INT PRIMARY KEY)",
        f"INSERT INTO {schema}.t VALUES (1)",
    )

    def extracting(pattern: str) -> dict[str, Any]:
        return route(schema, "one", **{"extract-table": {"table-regexp": pattern, "target-column": "origin"}})

    before, after = route(schema, "one"), route(schema, "two")
    if case == "another text":
        before, after = extracting("(.*)"), extracting("(.*)t")
        target_server.run(
            f"CREATE DATABASE {schema}", f"CREATE TABLE {schema}.one (id INT PRIMARY KEY, origin VARCHAR(20))"
        )
    files = TaskFiles(
        tmp_path,
        schema,
        {"s1": source_server},
        target_server,
        (schema,),
        keys=before,
        instance={"route-rules": ["own"]},
    ).write()
    go_on(files, spark)
    shown = (f"`{schema}`.`one`", f"`{schema}`.`two`") if case == "another target" else ('"t"', '""')
    refused(files, spark, after, *shown)


@pytest.mark.scenarios
def test_a_record_of_an_earlier_version_is_taken_as_it_is_and_gets_the_rules(
    spark: SparkSession, source_server: MariadbServer, target_server: MariadbServer, schema: str, tmp_path: Path
) -> None:
    source_server.run(f"CREATE DATABASE {schema}", f"CREATE TABLE {schema}.t (id BIGINT PRIMARY KEY)")
    keys = mapping(schema, 1)
    instance = {"column-mapping-rules": ["own"]}
    files = TaskFiles(tmp_path, schema, {"s1": source_server}, target_server, (schema,), keys, instance).write()
    go_on(files, spark)
    target_server.run(
        f"UPDATE {files.meta}.{schema}_syncer_checkpoint SET table_info = JSON_REMOVE(table_info, '$.rules')"
        " WHERE NOT is_global"
    )
    files = replace(files, keys=mapping(schema, 2)).write()
    source_server.run(f"INSERT INTO {schema}.t VALUES (1)")
    go_on(files, spark)
    assert target_server.query(f"SELECT id FROM {schema}.t") == [(TWO | 1,)]
    refused(files, spark, mapping(schema, 1))
