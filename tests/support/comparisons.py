"""Comparisons of tasks, as `unshard compare` makes them, on the shared Spark session."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession

from support.task_runs import TaskFiles
from unshard.cli import compare_subject
from unshard.cli.compare_subject import CompareWish, task_subject
from unshard.compare.result import ComparisonOutcome, TableOutcome
from unshard.compare.run import CompareSettings
from unshard.config.files import load_files
from unshard.testing.programs import program
from unshard.testing.throwaway_server import ThrowawayServer


@contextmanager
def not_followed(source: ThrowawayServer, target: ThrowawayServer, schema: str, folder: Path) -> Iterator[TaskFiles]:
    """A task that copies an empty schema, which is on both ends, and does not follow: what differs stays so."""
    for server in (source, target):
        server.run(f"CREATE DATABASE {schema} CHARACTER SET utf8mb4")
    yield TaskFiles(folder, f"task_{schema}", {"s1": source}, target, (schema,), {"task-mode": "full"}).write()
    for server in (source, target):
        server.run(f"DROP DATABASE IF EXISTS {schema}")
    target.run(f"DROP DATABASE IF EXISTS meta_task_{schema}")


@contextmanager
def merged_into_one(
    source: ThrowawayServer, target: ThrowawayServer, schema: str, folder: Path, *made: str
) -> Iterator[TaskFiles]:
    """A task that merges the tables `t_*` of one source, which the statements make, into `t`."""
    source.run(f"CREATE DATABASE {schema}", f"USE {schema}", *made)
    route = {"schema-pattern": schema, "table-pattern": "t_*", "target-schema": schema, "target-table": "t"}
    files = TaskFiles(folder, f"task_{schema}", {"s1": source}, target, (schema,))
    yield replace(files, keys={"routes": {"r": route}}, instance={"route-rules": ["r"]}).write()
    source.run(f"DROP DATABASE {schema}")
    target.run(f"DROP DATABASE IF EXISTS {schema}", f"DROP DATABASE IF EXISTS {files.meta}")


def in_this_process(patch: pytest.MonkeyPatch) -> None:
    """Run the tasks of comparisons one after the other in this process. No session of Spark is needed."""

    def run_here(
        session: object, payloads: Sequence[bytes], task: Callable[[bytes], bytes], *, barrier: bool = False
    ) -> list[bytes]:
        return [task(payload) for payload in payloads]

    patch.setattr(compare_subject, "run_tasks", run_here)
    patch.setattr(compare_subject, "slots", lambda session: 1)


def compared(
    files: TaskFiles, spark: SparkSession | None, wish: CompareWish | None = None, **settings: Any
) -> ComparisonOutcome:
    """Compare the task's ends now. `settings` are fields of CompareSettings."""
    return compared_and_told(files, spark, lambda line: None, wish, **settings)


def compared_and_told(
    files: TaskFiles,
    spark: SparkSession | None,
    tell: Callable[[str], None],
    wish: CompareWish | None = None,
    **settings: Any,
) -> ComparisonOutcome:
    """Compare the task's ends now; `tell` takes the lines of progress."""
    wish = wish or CompareWish()
    subject = task_subject(load_files(files.task_path, files.source_paths), wish)
    wanted = CompareSettings(**{"patience_seconds": 60.0, **settings})
    return subject.compare(wanted, cast(SparkSession, spark), tell, Event(), wish.sql)


def repaired(
    files: TaskFiles, found: ComparisonOutcome, spark: SparkSession | None = None, **settings: Any
) -> ComparisonOutcome:
    """Repair what a comparison found. `settings` are fields of CompareSettings."""
    subject = task_subject(load_files(files.task_path, files.source_paths), CompareWish())
    wanted = CompareSettings(**{"patience_seconds": 60.0, **settings})
    return subject.repair(found, wanted, cast(SparkSession, spark), lambda line: None, Event())


def only_table(outcome: ComparisonOutcome) -> TableOutcome:
    """The one table that was compared."""
    (table,) = outcome.tables
    return table


def kinds(table: TableOutcome) -> dict[str, str]:
    """By key, what a row that differs is."""
    return {one.key: one.kind.value for one in table.differences}


def run_file(server: ThrowawayServer, path: Path) -> None:
    """Run a file of statements as a user does, with the client program, which stops at the first error."""
    with path.open("rb") as statements:
        command = [program("mariadb"), "--no-defaults", "-h127.0.0.1", f"-P{server.port}", "-uroot"]
        ran = subprocess.run(command, stdin=statements, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr


def state_file(folder: Path) -> Path:
    return folder / "progress.jsonl"
