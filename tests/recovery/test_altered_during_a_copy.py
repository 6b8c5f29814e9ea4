"""Tables that are altered while a copy stands still: its restart takes each as its rows were read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.shard_runs import ends_at
from support.task_runs import TaskFiles, TaskRun
from unshard.checks.run import check_task, require
from unshard.config.files import load_source, load_task
from unshard.config.subtask import plan_subtasks
from unshard.model.table import TableName
from unshard.testing.compare import assert_equal
from unshard.testing.mariadb_server import MariadbServer

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.recovery, pytest.mark.faults]

STATEMENTS = {
    "add_column": "ALTER TABLE {t} ADD COLUMN b INT NOT NULL DEFAULT 7",
    "drop_column": "ALTER TABLE {t} DROP COLUMN v",
    "rename_column": "ALTER TABLE {t} CHANGE v w VARCHAR(20)",
    "wider": "ALTER TABLE {t} MODIFY v VARCHAR(200), MODIFY id BIGINT",
    "other_type": "ALTER TABLE {t} MODIFY n VARCHAR(20)",
    "add_key": "ALTER TABLE {t} ADD UNIQUE KEY k (n)",
    "drop_key": "ALTER TABLE {t} DROP PRIMARY KEY, ADD PRIMARY KEY (id, n)",
    "emptied": "TRUNCATE TABLE {t}",
    "dropped": "DROP TABLE {t}",
    "renamed": "RENAME TABLE {t} TO {t}_later",
    "may_be_null": "ALTER TABLE {t} MODIFY n INT NULL DEFAULT 3",
    "first": "ALTER TABLE {t} MODIFY v VARCHAR(20) FIRST",
    "other_charset": "ALTER TABLE {t} CONVERT TO CHARACTER SET latin1",
    "generated": "ALTER TABLE {t} ADD COLUMN g INT AS (n + 1) VIRTUAL",
    "partitioned": "ALTER TABLE {t} PARTITION BY HASH (id) PARTITIONS 2",
    "by_another": "CREATE OR REPLACE TABLE {t} (id INT PRIMARY KEY, other DATE)",
}
"""A table each."""

CRASH_POINTS = {
    "in the dump": "dump-rename-after:4",
    "in the first batch": "sync-open-after",
    "behind the first batch": "sync-close-before",
}


@pytest.mark.parametrize("dies", ["behind the dump", "in the load", "behind the load", *CRASH_POINTS])
def test_a_restart_goes_on_whatever_was_altered(
    dies: str,
    spark: SparkSession,
    source: MariadbServer,
    target: MariadbServer,
    schema: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source.run(f"CREATE DATABASE {schema}")
    for name in (*STATEMENTS, "z_last"):
        source.run(
            f"CREATE TABLE {schema}.{name} (id INT PRIMARY KEY, n INT NOT NULL, v VARCHAR(20))",
            f"INSERT INTO {schema}.{name} VALUES (1, 1, 'a'), (2, 2, 'b')",
        )
    loader = {"own": {"dir": str(tmp_path / "dump"), "incremental-import": dies == "in the load"}}
    files = TaskFiles(tmp_path, schema, {"s1": source}, target, (schema,), {"loaders": loader}).write()
    if dies == "in the load":
        target.run(
            f"CREATE DATABASE {schema}",
            f"CREATE TABLE {schema}.z_last (id INT PRIMARY KEY, n INT NOT NULL, v VARCHAR(20))",
            f"INSERT INTO {schema}.z_last VALUES (2, 2, 'in the way')",
        )
        run = TaskRun(files, spark).start()
        with pytest.raises(type(run.error()), match="LOAD-005"):
            run.stop()
        target.run(f"DELETE FROM {schema}.z_last WHERE v = 'in the way'")
    elif dies == "in the dump":
        assert ends_at(CRASH_POINTS[dies], files, spark, monkeypatch)
    else:
        (subtask,) = TaskRun(files, spark).crew.subtasks
        assert subtask.dump is not None
        assert subtask.load is not None
        subtask.beginning.checkpoint()
        subtask.dump.run()
        if dies == "behind the load":
            subtask.load.run()
        if dies in CRASH_POINTS:
            for name in STATEMENTS:
                source.run(f"UPDATE {schema}.{name} SET v = 'changed' WHERE id = 2")
            assert ends_at(CRASH_POINTS[dies], files, spark, monkeypatch)
    for name, statement in STATEMENTS.items():
        source.run(statement.format(t=f"{schema}.{name}"))
    source.run(f"INSERT INTO {schema}.add_column VALUES (3, 3, 'c', 8)", f"CREATE TABLE {schema}.made (id INT)")
    configs = plan_subtasks(load_task(files.task_path), [load_source(path) for path in files.source_paths])
    require(check_task(load_task(files.task_path), configs))
    with TaskRun(replace(files), spark) as again:
        again.catch_up()
    asked = f"SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = '{schema}'"
    assert sorted(target.query(asked)) == sorted(source.query(asked))
    for (name,) in source.query(asked):
        if name != "made":
            assert_equal([(source, TableName(schema, name))], (target, TableName(schema, name)))
