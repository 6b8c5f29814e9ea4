"""Tasks that an error has stopped, and the commands that get them past it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from typer.testing import CliRunner

from support.task_runs import TaskFiles, TaskRun
from unshard.cli.app import app
from unshard.testing.throwaway_server import ThrowawayServer


def ctl(*words: str, code: int = 0) -> Any:
    """What `unshard ctl …` prints, as JSON."""
    result = CliRunner().invoke(app, ["ctl", *words])
    assert result.exit_code == code, result.output
    return json.loads(result.output)


def operators_of(files: TaskFiles) -> list[tuple[str, str]]:
    """Each operator of the task's record and its state, oldest first."""
    asked = f"SELECT op, state FROM `{files.meta}`.`{files.name}_binlog_operator` ORDER BY number"
    return [(op, state) for op, state in files.target.query(asked)]


def operator_states(files: TaskFiles) -> list[str]:
    """The states alone."""
    return [state for _, state in operators_of(files)]


def copied_task(
    spark: SparkSession, source: ThrowawayServer, target: ThrowawayServer, schema: str, folder: Path
) -> TaskFiles:
    """A task that is copied: one table `t` (id, v) with one row."""
    source.run(
        f"CREATE DATABASE {schema}",
        f"CREATE TABLE {schema}.t (id INT PRIMARY KEY, v VARCHAR(20))",
        f"INSERT INTO {schema}.t VALUES (1, 'one')",
    )
    files = TaskFiles(folder, schema, {"s1": source}, target, (schema,)).write()
    go_on(files, spark)
    return files


def stopped_run(files: TaskFiles, spark: SparkSession) -> BaseException:
    """A run until it fails; its error."""
    run = TaskRun(files, spark).start()
    error = run.error()
    run.crew.stop.set()
    for thread in run.crew._threads:
        thread.join()
    return error


def go_on(files: TaskFiles, spark: SparkSession) -> None:
    with TaskRun(files, spark) as run:
        run.catch_up()
