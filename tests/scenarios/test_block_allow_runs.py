"""The block-allow list in dump, load and sync, on real servers and for names of any script."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from support.task_runs import TaskFiles, TaskRun
from unshard.testing.mariadb_server import MariadbServer

pytestmark = [pytest.mark.server, pytest.mark.spark]
TABLES = ("kept", "tmp_1", "größe", "größer", "表_1", "表_x")
TAKEN = {"kept", "größe", "表_1"}


def rule(schema: str, **more: Any) -> dict[str, Any]:
    """A list that takes those tables of the schema."""
    names = ((schema, "gr?ße"), (schema, "表_[0-9]"), (f"~^{schema}$", "kept"))
    return {"do-tables": [{"db-name": name, "tbl-name": table} for name, table in names], **more}


def make(server: MariadbServer, schema: str) -> None:
    server.run(f"CREATE DATABASE {schema}", f"CREATE DATABASE {schema}_other")
    server.run(f"CREATE TABLE {schema}_other.kept (id INT PRIMARY KEY)")
    for name in TABLES:
        server.run(f"CREATE TABLE {schema}.`{name}` (id INT PRIMARY KEY)", f"INSERT INTO {schema}.`{name}` VALUES (1)")


def there(server: MariadbServer, schema: str) -> dict[str, list[int]]:
    tables = [name for (name,) in server.query(f"SHOW TABLES FROM {schema}")]
    return {name: [n for (n,) in server.query(f"SELECT id FROM {schema}.`{name}` ORDER BY 1")] for name in tables}


def schemas(server: MariadbServer, schema: str) -> set[str]:
    return {name for (name,) in server.query("SHOW DATABASES") if name.startswith(schema)}


def test_copy_and_follow_with_the_old_name_of_the_list(
    spark: SparkSession, source_server: MariadbServer, target_server: MariadbServer, schema: str, tmp_path: Path
) -> None:
    make(source_server, schema)
    keys = {"block-allow-list": {"own": rule(schema)}}
    files = TaskFiles(tmp_path, schema, {"s1": source_server}, target_server, (schema,), keys).write()
    files.task_path.write_text(files.task_path.read_text().replace("block-allow-list", "black-white-list"))
    with TaskRun(files, spark) as run:
        run.reach("sync")
        for name in TABLES:
            source_server.run(f"INSERT INTO {schema}.`{name}` VALUES (2)")
        source_server.run(f"ALTER TABLE {schema}.`größer` ADD x INT", f"ALTER TABLE {schema}.`größe` ADD x INT")
        run.catch_up()
    assert there(target_server, schema) == {name: [1, 2] for name in TAKEN}
    assert [name for name, *_ in target_server.query(f"SHOW COLUMNS FROM {schema}.`größe`")] == ["id", "x"]
    assert schemas(target_server, schema) == {schema}


def test_a_dump_by_filter_is_loaded_by_the_list(
    spark: SparkSession, source_server: MariadbServer, target_server: MariadbServer, schema: str, tmp_path: Path
) -> None:
    make(source_server, schema)
    both = (schema, f"{schema}_other")
    chosen = {"mydumper": {"extra-args": f"--filter '{schema}*.*,!/{schema}$/.*[_]x' -W"}}
    dump = TaskFiles(tmp_path, schema, {"s1": source_server}, target_server, both, {"task-mode": "dump"}, chosen)
    TaskRun(dump.write(), spark).start().crew.join()
    dumped = {path.name.split(".")[1] for path in tmp_path.rglob("*.parquet")}
    assert len(dumped) == len(TABLES) - 1
    (folder,) = {path.parent for path in tmp_path.rglob("metadata*")} & set(tmp_path.rglob("s1"))
    keys = {
        "task-mode": "load",
        "block-allow-list": {"own": rule(schema, **{"ignore-dbs": [f"{schema}_o*"]})},
        "loaders": {"own": {"dir": str(folder)}},
    }
    load = TaskFiles(tmp_path, schema, {"s1": source_server}, target_server, both, keys).write()
    TaskRun(load, spark).start().crew.join()
    assert there(target_server, schema) == {name: [1] for name in TAKEN}
    assert schemas(target_server, schema) == {schema}
