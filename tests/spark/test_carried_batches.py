"""Executors that don't see the relay log: the bytes of each batch go with its jobs, a large transaction's by slices."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.noted_plans import noted_plans
from support.task_runs import TaskFiles, TaskRun
from unshard.errors import EngineError
from unshard.spark import batches
from unshard.sync.batch import shipped_log
from unshard.sync.batch.plan import Range
from unshard.sync.planning import planner as plan_module
from unshard.testing.compare import assert_equal
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.workload import Workload, WorkPlan

pytestmark = [pytest.mark.server, pytest.mark.spark]


@pytest.fixture
def unseen(monkeypatch: pytest.MonkeyPatch) -> None:
    """As from executors on other machines."""
    monkeypatch.setattr(batches, "sees", lambda session, folder: False)


@pytest.mark.parametrize("shuffled", [pytest.param(False, marks=pytest.mark.scenarios), True])
def test_batches_and_large_transactions_are_carried(
    shuffled: bool,
    unseen: None,
    spark: SparkSession,
    source_server: MariadbServer,
    target_server: MariadbServer,
    schema: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if shuffled:
        monkeypatch.setattr(plan_module, "SHUFFLE_SLOTS", 1)
        monkeypatch.setattr(plan_module, "SHUFFLE_BYTES", 1)
    work = Workload(source_server, WorkPlan(schema, threads=1, tables=2))
    work.create()
    work.fill(300)
    one, two = work.plan.names
    syncer = {"batch": 20, "worker-count": 3}
    files = TaskFiles(tmp_path, schema, {"s1": source_server}, target_server, (f"{schema}_1",), syncer=syncer).write()
    run = TaskRun(files, spark)
    ran = noted_plans(run.sync_unit(slice_bytes=20_000))
    with run:
        run.catch_up()
        for _ in range(3):  # a batch of all of them would be large, and a large one is not shuffled
            work.run(transactions=3)
            run.catch_up()
        source_server.run(
            "START TRANSACTION",
            f"UPDATE {one.quoted} SET k = k + 1",
            f"DELETE FROM {two.quoted} WHERE id > 100",
            f"UPDATE {one.quoted} SET k = k + 10 WHERE id < 200",
            "COMMIT",
        )
        run.catch_up()
    assert any(plan.shuffled for plan in ran) == shuffled
    assert any(plan.sliced and len(plan.ranges) > 3 for plan in ran), "no large transaction"
    for name in work.plan.names:
        assert_equal([(source_server, name)], (target_server, name))


def test_what_is_carried_is_what_a_range_needs(tmp_path: Path) -> None:
    path = tmp_path / "log"
    event = bytes(9) + (30).to_bytes(4, "little") + bytes(17)
    path.write_bytes(b"x" * 100 + event + b"y" * 200)
    piece = Range(str(path), "log", 200, 250, maps=(100,))
    taken = shipped_log.with_bytes(piece)
    assert taken.carried == ((100, event), (200, b"y" * 50))
    path.unlink()
    assert bytes(shipped_log.in_memory(taken)) == bytes(100) + event + bytes(70) + b"y" * 50


@pytest.mark.usefixtures("small_jobs")
def test_too_much_for_one_job(
    unseen: None,
    spark: SparkSession,
    source_server: MariadbServer,
    target_server: MariadbServer,
    schema: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(shipped_log, "LARGEST_CARRIED", 100)
    source_server.run(f"CREATE DATABASE {schema}", f"CREATE TABLE {schema}.t (id INT PRIMARY KEY)")
    files = TaskFiles(tmp_path, schema, {"s1": source_server}, target_server, (schema,)).write()
    with TaskRun(files, spark).failing() as run:
        run.catch_up()
        source_server.run(f"INSERT INTO {schema}.t VALUES (1)")
        with pytest.raises(EngineError, match=r"ENGINE-011"):
            run.catch_up()
