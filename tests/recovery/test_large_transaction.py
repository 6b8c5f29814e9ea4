"""A transaction that is applied in slices, broken off between two of them: the rest comes, and nothing twice."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from bench.stage import Memory
from pyspark.sql import SparkSession

from support.exactly_once import assert_exactly_once
from support.task_runs import TaskFiles, TaskRun
from unshard.errors import EngineError
from unshard.sync.batch.plan import BatchPlan
from unshard.sync.batch.row_counts import LedgerReport
from unshard.testing.servers import MariadbServer
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


def test_five_times_the_transaction_takes_the_same_memory(
    source: MariadbServer, target: MariadbServer, spark: SparkSession, tmp_path: Path
) -> None:
    for server in (source, target):
        server.run("CREATE DATABASE wide", "CREATE TABLE wide.t (id INT PRIMARY KEY, v LONGTEXT NOT NULL)")
    files = TaskFiles(tmp_path, "wide", {"s1": source}, target, ("wide",)).write()
    run = TaskRun(files, spark)
    run.sync_unit(slice_bytes=2 << 20)
    insert = "INSERT INTO wide.t SELECT seq, REPEAT(CHAR(97 + seq % 26), 10000) FROM seq_{}_to_{}"
    peaks = []
    with run:
        run.catch_up()
        for first, last in ((1, 100), (101, 2_100), (2_101, 12_100)):
            with Memory() as memory:
                source.run("USE wide", insert.format(first, last))
                run.catch_up()
            peaks.append(memory.peak())
    assert target.query("SELECT COUNT(*), SUM(CRC32(v)) FROM wide.t") == source.query(
        "SELECT COUNT(*), SUM(CRC32(v)) FROM wide.t"
    )
    _, short, long = peaks
    assert long["workers"] <= short["workers"] + 48
    assert long["driver"] <= short["driver"] + 48
