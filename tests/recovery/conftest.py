"""Servers of this folder's own: they are killed, and their whole binlogs are read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.advice_walks import Walk
from support.source_servers import new_source
from support.target_servers import new_target
from support.task_runs import TaskFiles
from unshard.testing.throwaway_server import ThrowawayServer
from unshard.testing.workload import Workload, WorkPlan


@pytest.fixture(scope="module")
def source() -> Iterator[ThrowawayServer]:
    with new_source() as server:
        yield server


@pytest.fixture(scope="module")
def target() -> Iterator[ThrowawayServer]:
    with new_target() as server:
        yield server


@pytest.fixture
def work(source: ThrowawayServer, schema: str) -> Workload:
    """Two tables with 300 rows each, only inserted so far."""
    made = Workload(source, WorkPlan(schema, threads=1, large_rows=100))
    made.create()
    made.fill(300)
    return made


@pytest.fixture
def files(work: Workload, source: ThrowawayServer, target: ThrowawayServer, schema: str, tmp_path: Path) -> TaskFiles:
    """A task on them that compacts nothing, so that every change shows in the target's binlog."""
    syncer = {"compact": False, "batch": 20, "worker-count": 2}
    return TaskFiles(tmp_path, schema, {"s1": source}, target, (f"{schema}_1",), syncer=syncer).write()


@pytest.fixture
def walk(source: ThrowawayServer, target: ThrowawayServer, schema: str, spark: SparkSession, tmp_path: Path) -> Walk:
    return Walk.begin(source, target, schema, spark, tmp_path)
