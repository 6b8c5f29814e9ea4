"""A transaction that is applied in slices, broken off between two of them: the rest comes, and nothing twice."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from support.exactly_once import assert_exactly_once
from support.task_runs import TaskFiles, TaskRun
from unshard.errors import EngineError
from unshard.sync.batch.plan import BatchPlan
from unshard.sync.batch.row_counts import LedgerReport
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.shapes import SHAPES
from unshard.testing.workload import Workload, WorkPlan

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.recovery, pytest.mark.faults]


def test_a_transaction_broken_off_between_slices(
    source: MariadbServer, target: MariadbServer, spark: SparkSession, tmp_path: Path
) -> None:
    work = Workload(source, WorkPlan("large", SHAPES["sysbench"], threads=1, tables=2))
    work.create()
    work.fill(300)
    one, two = work.plan.names
    syncer = {"compact": False, "batch": 20, "worker-count": 2}
    files = TaskFiles(tmp_path, "large", {"s1": source}, target, ("large_1",), syncer=syncer).write()
    broken: list[BatchPlan] = []

    run = TaskRun(files, spark)
    sync = run.sync_unit(slice_bytes=20_000)
    run_batch = sync.run_batch

    def break_off(plan: BatchPlan) -> list[LedgerReport]:
        if len(plan.ranges) < 4:
            return run_batch(plan)
        run_batch(replace(plan, ranges=plan.ranges[:2]))
        broken.append(plan)
        raise EngineError("ENGINE-002", values={"task": "batch"})

    sync.run_batch = break_off
    with run.failing():
        run.catch_up()
        source.run(
            "START TRANSACTION",
            f"UPDATE {one.quoted} SET k = k + 1",
            f"DELETE FROM {two.quoted} WHERE id > 100",
            f"UPDATE {one.quoted} SET k = k + 10 WHERE id < 200",
            "COMMIT",
        )
        with pytest.raises(EngineError):
            run.catch_up()
    assert broken[0].ranges[2].maps, "it was not cut within a statement"
    changed = target.query(f"SELECT COUNT(*) FROM {two.quoted}") != source.query(f"SELECT COUNT(*) FROM {two.quoted}")
    assert changed, "nothing was left to do"
    with TaskRun(files, spark) as again:
        again.catch_up()
    assert_exactly_once(source, target, work.plan.names)


@contextmanager
def most_allocated() -> Iterator[list[int]]:
    """The most bytes that Python and Arrow have at once in this process within the context; given at its end."""
    found: list[int] = []
    before, pool = pa.default_memory_pool(), pa.proxy_memory_pool(pa.default_memory_pool())
    pa.set_memory_pool(pool)
    tracemalloc.start()
    try:
        yield found
        found.append(tracemalloc.get_traced_memory()[1] + pool.max_memory())
    finally:
        tracemalloc.stop()
        pa.set_memory_pool(before)


def test_five_times_the_transaction_takes_the_same_memory(
    source: MariadbServer, target: MariadbServer, spark: SparkSession, tmp_path: Path
) -> None:
    """Counted where all runs in one process; `python -m bench large` measures that of each kind of process."""
    for server in (source, target):
        server.run("CREATE DATABASE wide", "CREATE TABLE wide.t (id INT PRIMARY KEY, v LONGTEXT NOT NULL)")
    files = TaskFiles(tmp_path, "wide", {"s1": source}, target, ("wide",)).write()
    run = TaskRun(files, spark)
    sync = run.sync_unit(slice_bytes=1 << 20)
    run_batch, slices = sync.run_batch, []

    def run_here(plan: BatchPlan) -> list[LedgerReport]:
        slices.append(len(list(plan.slices())))
        return run_batch(replace(plan, here=True, shares=1))

    sync.run_batch = run_here
    insert = "INSERT INTO wide.t SELECT seq, REPEAT(CHAR(97 + seq % 26), 10000) FROM seq_{}_to_{}"
    peaks = []
    with run:
        run.catch_up()
        for first, last in ((1, 100), (101, 600), (601, 3_100)):
            with most_allocated() as found:
                source.run("USE wide", insert.format(first, last))
                run.catch_up()
            peaks += found
    assert target.query("SELECT COUNT(*), SUM(CRC32(v)) FROM wide.t") == source.query(
        "SELECT COUNT(*), SUM(CRC32(v)) FROM wide.t"
    )
    assert slices[-1] > 4 * slices[-2] > 4
    _, short, long = peaks
    assert long <= short + (4 << 20), (peaks, slices)
