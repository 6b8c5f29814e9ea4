"""A copy without a lock, beside which statements are run once its first tables are dumped."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from support.schema_tables import tables_of
from support.task_runs import TaskFiles, TaskRun
from support.waiting import wait_until
from unshard.testing.compare import assert_equal
from unshard.testing.mariadb_server import MariadbServer


def copied_meanwhile(
    script: str,
    spark: SparkSession,
    source: MariadbServer,
    target: MariadbServer,
    schemas: tuple[str, ...],
    folder: Path,
    more: Mapping[str, Any] | None = None,
) -> None:
    """Copy the schemas, and run the script behind the first tables, while the dump waits for table m. Both are equal.

    `more` are keys of the task's file.
    """
    keys = {"mydumpers": {"own": {"threads": 1}}, **(more or {})}
    instance = {"mydumper-config-name": "own"}
    files = TaskFiles(folder, schemas[0], {"s1": source}, target, schemas, keys, instance).write()
    held = source.connection()
    held.query(f"LOCK TABLES {schemas[0]}.m WRITE")
    with TaskRun(files, spark) as run:
        (subtask,) = run.crew.subtasks

        def one_is_copied() -> bool:
            assert not run.crew.errors, run.crew.errors
            progress = subtask.status().progress
            return progress is not None and progress.tables_done > 0

        try:
            wait_until(one_is_copied, "the first table is copied")
            source.run(*(one for one in script.format(s=schemas[0]).split(";") if one.strip()))
        finally:
            held.close()
        run.catch_up()
        there = tables_of(source, schemas)
        source.run(*(f"DELETE FROM {name.quoted} LIMIT 1" for name in there))
        run.catch_up()
    assert tables_of(target, schemas) == there
    for name in there:
        assert_equal([(source, name)], (target, name))
