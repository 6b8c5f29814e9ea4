"""Comparisons of tasks, as `unshard compare` makes them, on the shared Spark session."""

from __future__ import annotations

import subprocess
from pathlib import Path
from threading import Event
from typing import Any

from pyspark.sql import SparkSession

from support.task_runs import TaskFiles
from unshard.cli.compare_subject import CompareWish, task_subject
from unshard.compare.result import ComparisonOutcome, TableOutcome
from unshard.compare.run import CompareSettings
from unshard.config.files import load_files
from unshard.testing.programs import program
from unshard.testing.throwaway_server import ThrowawayServer


def compared(
    files: TaskFiles, spark: SparkSession, wish: CompareWish | None = None, **settings: Any
) -> ComparisonOutcome:
    """Compare the task's ends now. `settings` are fields of CompareSettings."""
    wish = wish or CompareWish()
    subject = task_subject(load_files(files.task_path, files.source_paths), wish)
    lines: list[str] = []
    wanted = CompareSettings(**{"patience_seconds": 60.0, **settings})
    return subject.compare(wanted, spark, lines.append, Event(), wish.sql)


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
