"""A process is frozen right before it sends a DDL, and wakes when its successor is long past it."""

from __future__ import annotations

import signal
from pathlib import Path

import psutil
import pytest
from pyspark.sql import SparkSession

from support.shard_processes import REFUSED, Process
from support.task_runs import TaskFiles, TaskRun
from support.waiting import wait_until
from unshard.testing.mariadb_server import MariadbServer

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.recovery, pytest.mark.faults]


def is_frozen(process: Process) -> bool:
    """Whether it stopped itself: its own Python process, that is, of the whole family."""
    family = psutil.Process(process.child.pid)
    return any(one.status() == psutil.STATUS_STOPPED for one in (family, *family.children(recursive=True)))


def test_a_late_ddl_meets_a_dead_connection(
    source: MariadbServer, target: MariadbServer, spark: SparkSession, schema: str, tmp_path: Path
) -> None:
    source.run(f"CREATE DATABASE {schema}", f"CREATE TABLE {schema}.t (id INT PRIMARY KEY, c INT)")
    source.run(f"INSERT INTO {schema}.t VALUES (1, 1)")
    files = TaskFiles(tmp_path, schema, {"s1": source}, target, (schema,)).write()
    zombie = Process(files, "s1", 0, crash_at="ddl-execute-before", crash_by="SIGSTOP")
    try:
        wait_until(lambda: files.applied("s1") is not None, "begun")
        source.run(f"ALTER TABLE {schema}.t DROP COLUMN c")
        wait_until(lambda: is_frozen(zombie), "stopped before the DDL")
        with TaskRun(files, spark) as heir:
            source.run(f"ALTER TABLE {schema}.t ADD COLUMN c INT", f"INSERT INTO {schema}.t VALUES (2, 2)")
            heir.catch_up()
            zombie.send(signal.SIGCONT)
            wait_until(lambda: zombie.ended is not None, "the zombie has ended")
            assert zombie.ended == REFUSED, zombie.text
            assert "SYNC-001" in zombie.text, zombie.text
            source.run(f"INSERT INTO {schema}.t VALUES (3, 3)")
            heir.catch_up()
    finally:
        zombie.send(signal.SIGCONT)
        zombie.kill()
    assert target.query(f"SELECT id, c FROM {schema}.t ORDER BY id") == [(1, None), (2, 2), (3, 3)]
