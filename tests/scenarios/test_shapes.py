"""Full copy and live replication of every shape of table, with writers at work during dump, load and sync."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from pyspark.sql import SparkSession

from support.noted_plans import noted_plans
from support.shape_set import ALL_SHAPES, ShapeSet
from support.task_runs import TaskFiles, TaskRun, at_work, commit_more
from unshard.sync.planning import planner as planning
from unshard.testing.mariadb_server import MariadbServer

pytestmark = [pytest.mark.server, pytest.mark.spark]
TRANSACTIONS = 1000
TIED = frozenset({"several_unique", "string_key", "composite_key"})
UNTIED = {name: shape for name, shape in ALL_SHAPES.items() if name not in TIED}
"""Rows of the others may be tied to each other, which ranges that are decoded apart can't tell: never shuffled."""

WAYS: dict[str, dict[str, Any]] = {
    "as it comes": {},
    "not compacted": {"syncer": {"compact": False}},
    "a row a statement": {"syncer": {"multiple-rows": False, "compact": False}},
    "small chunks": {"syncer": {"batch": 7, "worker-count": 3}},
    "by gtid": {"source": {"enable-gtid": True}},
}


@pytest.mark.parametrize(
    "way", ["as it comes", *(pytest.param(way, marks=pytest.mark.scenarios) for way in WAYS if way != "as it comes")]
)
def test_every_shape_arrives_while_writers_go_on(
    way: str,
    spark: SparkSession,
    source_server: MariadbServer,
    target_server: MariadbServer,
    schema: str,
    tmp_path: Path,
) -> None:
    shapes = ShapeSet.create(source_server, schema, rows=300, seed=len(way))
    sources = {"s1": source_server}
    files = TaskFiles(tmp_path, schema, sources, target_server, shapes.schemas, **WAYS[way]).write()
    with TaskRun(files, spark) as run:
        with at_work(*shapes.works):
            run.reach("sync")
            commit_more(*shapes.works, transactions=TRANSACTIONS)
        run.catch_up()
        shapes.assert_equal(target_server)
        (reading,) = run.crew.readings()
    assert shapes.transactions > 100
    assert reading.sync is not None
    assert reading.sync.rows > 100
    assert reading.sync.missing == 0, "an UPDATE or DELETE found no row: the copy and the log don't meet"


@pytest.mark.scenarios
def test_the_shuffle_gives_what_keeping_ones_own_gives(
    spark: SparkSession,
    source_server: MariadbServer,
    target_server: MariadbServer,
    schema: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(planning, "SHUFFLE_SLOTS", 1)
    monkeypatch.setattr(planning, "SHUFFLE_BYTES", 0)
    shapes = ShapeSet.create(source_server, schema, rows=300, seed=5, shapes=UNTIED)
    files = TaskFiles(tmp_path, schema, {"s1": source_server}, target_server, shapes.schemas).write()
    run = TaskRun(files, spark)
    sync = run.sync_unit()
    sync.planner = replace(sync.planner, slots=5)
    much = Event()
    plans = noted_plans(sync, much)
    with run:
        run.reach("sync")
        with at_work(*shapes.works):
            commit_more(*shapes.works, transactions=TRANSACTIONS)
            much.set()
        run.catch_up()
        shapes.assert_equal(target_server)
        assert run.sync.missing == 0
    assert all(plan.shuffled for plan in plans)
    assert max(len(plan.ranges) for plan in plans) == 5


@pytest.mark.scenarios
def test_large_transactions_arrive_in_slices(
    spark: SparkSession,
    source_server: MariadbServer,
    target_server: MariadbServer,
    schema: str,
    tmp_path: Path,
) -> None:
    shapes = ShapeSet.create(source_server, schema, rows=300, seed=11)
    files = TaskFiles(tmp_path, schema, {"s1": source_server}, target_server, shapes.schemas).write()
    run = TaskRun(files, spark)
    much = Event()
    plans = noted_plans(run.sync_unit(slice_bytes=2000, chunk_rows=5), much)
    with run:
        with at_work(*shapes.works):
            run.reach("sync")
            commit_more(*shapes.works, transactions=TRANSACTIONS // 2)
            much.set()
        run.catch_up()
        shapes.assert_equal(target_server)
    assert any(len(plan.slices()) > 3 for plan in plans)
    assert any(piece.maps for plan in plans for piece in plan.ranges), "no statement was cut"
