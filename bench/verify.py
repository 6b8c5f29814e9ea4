"""Shard tables copied into one and compared with it, by the servers' checksums and by reading all rows.

Then what continuous validation costs the sync: a backlog is applied with and without it, in turn.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any, Literal

from pyspark.sql import SparkSession

from bench import data
from bench.ends import MARIADB, Target
from bench.stage import BIG, Run, config, end_of, engine
from unshard.compare.lock_patience import LockPatience
from unshard.compare.places import SourceWatch
from unshard.compare.plan import ComparisonPlan, plan_comparison
from unshard.compare.run import CompareSettings, TableComparison
from unshard.compare.sides import TableWish, sides_of
from unshard.config.subtask import SubtaskConfig, ValidatorSettings
from unshard.model.position import Position
from unshard.mysql.endpoint import to_endpoint
from unshard.source.local_time import utc_of
from unshard.spark.jobs import run_tasks
from unshard.spark.lazy import started
from unshard.testing.mariadb_server import MariadbServer
from unshard.worker.build import build_subtask

_SCHEMA, _SHARDS, _INTO = "bench", 8, "merged"
RUNS = 4
"""Runs of the sync with validation, and as many without it."""


def run(target: Target = MARIADB, rows: int = 500_000, transactions: int = 50_000) -> dict[str, Any]:
    """Return rows a second of a copy, of two ways to compare it, and of the sync with and without validation.

    `x_copy` is `compare_rows_per_s` over `copy_rows_per_s`. `validation_cost` is the share of the sync's rows a second
    that continuous validation costs. Each figure is the best of its runs.
    """
    with tempfile.TemporaryDirectory(prefix="unshard-bench-") as name, engine(Path(name)) as spark:
        figures = _comparison(spark, Path(name), target, rows)
        return figures | _validation(spark, Path(name), target, transactions)


def _validation(spark: SparkSession, folder: Path, target: Target, transactions: int) -> dict[str, Any]:
    """Apply one backlog several times, with and without a validator."""
    with MariadbServer(BIG) as source:
        written = data.oltp(source, _SCHEMA, transactions=transactions)
        (_, create), *_ = source.query(f"SHOW CREATE TABLE {_SCHEMA}.oltp")
        modes: tuple[Literal["none", "full"], ...] = ("none", "full", "full", "none")
        taken: dict[str, list[float]] = {"none": [], "full": []}
        judged = 0
        for number in range(2 * RUNS):
            mode = modes[number % 4]
            with target.server(BIG) as reached:
                reached.server.run(f"CREATE DATABASE {_SCHEMA}", f"USE {_SCHEMA}", create)
                own = config(source, reached, folder / f"run{number}", mode="incremental", start=written.file.name)
                task = own.model_copy(update={"validator": ValidatorSettings(mode=mode)})
                seconds, done = _applied(task, spark, end_of(source))
                taken[mode].append(seconds)
                judged += done
        if not judged:
            raise AssertionError("the validator has looked at no row")
    plain, validated = (written.rows / min(taken[mode]) for mode in ("none", "full"))
    return {
        "sync_rows_per_s": round(plain),
        "validated_rows_per_s": round(validated),
        "validation_cost": round(1 - validated / plain, 3),
    }


def _applied(task: SubtaskConfig, spark: SparkSession, end: Position) -> tuple[float, int]:
    """Apply the backlog. Return how long it takes, and how many changes the validator has looked at at the end."""
    work = Run(build_subtask(task, started(spark)))
    begun = time.perf_counter()
    work.start()
    work.until(end)
    taken = time.perf_counter() - begun
    validation = work.subtask.validation
    if task.validator.mode == "none" or validation is None:
        work.stop()
        return taken, 0
    work.wait(lambda: (found := validation.reading()) is not None and sum(found.state.processed) > 0)
    reading = validation.reading()
    work.stop()
    if reading is None or any(reading.errors):
        raise AssertionError(f"rows differ: {reading}")
    return taken, sum(reading.state.processed)


def _comparison(spark: SparkSession, folder: Path, target: Target, rows: int) -> dict[str, Any]:
    """Copy the shards, and compare them in two ways."""
    with MariadbServer(BIG) as source, target.server(BIG) as reached:
        data.shards(source, _SCHEMA, tables=_SHARDS, rows=rows)
        task = config(source, reached, folder, mode="full", into=_INTO)
        work = build_subtask(task, started(spark))
        begun = time.perf_counter()
        work.dump.run()  # type: ignore[union-attr]
        work.load.run()  # type: ignore[union-attr]
        copied = time.perf_counter() - begun
        compared = min(_compared(task, spark, rows, lambda plan: plan) for _ in range(2))
        read = min(_compared(task, spark, rows, _read_only) for _ in range(2))
    return {
        "copy_rows_per_s": round(rows / copied),
        "compare_rows_per_s": round(rows / compared),
        "read_rows_per_s": round(rows / read),
        "x_copy": round(copied / compared, 2),
    }


def _compared(
    task: SubtaskConfig, spark: SparkSession, rows: int, way: Callable[[ComparisonPlan], ComparisonPlan]
) -> float:
    """How long a comparison takes, from its plan to its verdict."""
    sides, target = sides_of((task,), utc_of), to_endpoint(task.target)
    begun = time.perf_counter()
    plan = way(plan_comparison(sides, target, {}, lambda name: True, lambda name: TableWish()))
    watches = [SourceWatch(side, target, None) for side in sides]
    slots = spark.sparkContext.defaultParallelism
    run = LockPatience(partial(run_tasks, spark), _silent, lambda: False)
    work = TableComparison(plan, CompareSettings(source_load=0), watches, run, slots, _silent, Event())
    found = work.compare()
    taken = time.perf_counter() - begun
    if found.exit_code or sum(table.target_rows for table in found.tables) != rows:
        raise AssertionError(f"the copy is not equal: {found.to_dict()}")
    return taken


def _read_only(plan: ComparisonPlan) -> ComparisonPlan:
    """The plan with no checksums of the servers."""
    tables = [
        replace(table, columns=tuple(replace(column, server_side=False) for column in table.columns))
        for table in plan.tables
    ]
    return replace(plan, tables=tuple(tables))


def _silent(line: str) -> None:
    del line
