"""Every task of a whole migration has two attempts at once, as under Spark's speculation: each row is written once.

Spark itself never starts the second attempt on the host of the first, so that one machine can't show it: here jobs get
each task twice, and batches that are shuffled are run as two jobs at once.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.exactly_once import assert_exactly_once
from support.task_runs import TaskFiles, TaskRun, at_work
from support.waiting import wait_until
from unshard.errors import Where
from unshard.spark.batch_tasks import run_attempt
from unshard.spark.batches import run_batch
from unshard.spark.jobs import run_tasks
from unshard.spark.lazy import started
from unshard.sync.batch.plan import BatchPlan
from unshard.sync.batch.row_counts import LedgerReport, balance
from unshard.sync.planning import planner as planning
from unshard.testing.hold import row_held, stands_still
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.shapes import SHAPES
from unshard.testing.workload import Workload, WorkPlan

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.recovery, pytest.mark.faults]
Task = Callable[[bytes], bytes]


@pytest.mark.usefixtures("small_jobs")
def test_two_attempts_at_once(
    source: MariadbServer,
    target: MariadbServer,
    spark: SparkSession,
    schema: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ran: list[tuple[Task, list[bytes]]] = []

    def each_twice(
        spark: SparkSession, payloads: Sequence[bytes], task: Task, *, barrier: bool = False, tag: str | None = None
    ) -> list[bytes]:
        """Two attempts of a task are neighbours: both slots work at one. The last to be asked for counts."""
        ran.append((task, list(payloads)))
        return run_tasks(spark, [p for p in payloads for _ in range(2)], task, barrier=barrier, tag=tag)[1::2]

    shuffled: list[bool] = []

    def as_two_jobs(plan: BatchPlan) -> list[LedgerReport]:
        """Two jobs of the batch at once; both report all of it."""
        with ThreadPoolExecutor(2) as pool:
            first, second = pool.map(partial(run_batch, started(spark)), [plan, plan])
        counted = partial(balance, shuffled=plan.shuffled, row_events=plan.row_events, where=Where(source=plan.source))
        assert counted(first) == counted(second)
        shuffled.append(plan.shuffled)
        return second

    monkeypatch.setattr("unshard.spark.lazy.run_tasks", each_twice)
    monkeypatch.setattr("unshard.spark.batches.run_tasks", each_twice)
    works = [
        Workload(source, WorkPlan(schema, SHAPES["sysbench"], threads=1, large_rows=90)),
        Workload(source, WorkPlan(f"{schema}_tied", SHAPES["several_unique"], threads=1, tables=1, large_rows=20)),
        Workload(source, WorkPlan(f"{schema}_bare", SHAPES["no_key"], threads=1, tables=1, large_rows=20)),
    ]
    for work in works:
        work.create()
        work.fill(400)
    names = [name for work in works for name in work.plan.names]
    syncer = {"compact": False, "batch": 10, "worker-count": 3}
    schemas = tuple(sorted({name.schema for name in names}))
    files = TaskFiles(tmp_path, schema, {"s1": source}, target, schemas, syncer=syncer).write()
    with TaskRun(files, spark) as run:
        run.catch_up()
        with at_work(*works, share=0.1):
            wait_until(lambda: len(ran) > 20, "some batches")
        with row_held(target, names[0].quoted):
            source.run(f"UPDATE {names[0].quoted} SET k = k + 1")
            wait_until(lambda: stands_still(target), "both attempts wait for the same row")
        run.catch_up()
        task, late = ran[-8]
        assert task is run_attempt
        outcomes = [pickle.loads(outcome) for outcome in run_tasks(spark, late, run_attempt)]
        assert [outcome.error["code"] for outcome in outcomes] == ["SYNC-001"] * len(late)

        (subtask,) = run.crew.subtasks
        assert subtask.sync is not None
        subtask.sync.run_batch = as_two_jobs
        monkeypatch.setattr(planning, "SHUFFLE_SLOTS", 1)
        monkeypatch.setattr(planning, "SHUFFLE_BYTES", 0)
        with at_work(works[0], works[2], share=0.1):
            wait_until(lambda: sum(shuffled) > 3 or run.crew.ended.is_set(), "some batches as two jobs")
        run.catch_up()
    assert {task.__name__ for task, _ in ran} == {"dump_tables", "load_files", "run_attempt"}
    assert_exactly_once(source, target, names)
