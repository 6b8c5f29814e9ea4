"""Sources that compress what they log: `log_bin_compress`, with whole rows, parts of rows, and large transactions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.binlog_listing import newest_codes
from support.exactly_once import assert_exactly_once
from support.shape_set import ShapeSet
from support.task_runs import TaskFiles, TaskRun, at_work, commit_more
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.shapes import SHAPES
from unshard.testing.workload import Workload, WorkPlan

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.scenarios]
TRANSACTIONS = 800
QUERY, ROWS = {165}, {166, 167, 168}


@pytest.fixture(scope="module")
def packing() -> Iterator[MariadbServer]:
    """A source that compresses all but the shortest events."""
    with MariadbServer({"log_bin_compress": "ON", "log_bin_compress_min_len": "10", "gtid_domain_id": "3"}) as server:
        yield server


@pytest.mark.parametrize(("image", "slice_bytes"), [("FULL", 0), ("MINIMAL", 2000)], ids=["whole", "slices"])
def test_every_shape_arrives_from_compressed_events(
    slice_bytes: int,
    image: str,
    spark: SparkSession,
    packing: MariadbServer,
    target_server: MariadbServer,
    schema: str,
    tmp_path: Path,
) -> None:
    packing.run(f"SET GLOBAL binlog_row_image = {image}", "FLUSH BINARY LOGS")
    shapes = ShapeSet.create(packing, schema, rows=200, seed=len(image) + slice_bytes)
    files = TaskFiles(tmp_path, schema, {"s1": packing}, target_server, shapes.schemas).write()
    run = TaskRun(files, spark)
    if slice_bytes:
        run.sync_unit(slice_bytes=slice_bytes, chunk_rows=5)
    with run:
        with at_work(*shapes.works):
            run.reach("sync")
            commit_more(*shapes.works, transactions=TRANSACTIONS)
        run.catch_up()
        shapes.assert_equal(target_server)
        (reading,) = run.crew.readings()
    assert reading.sync is not None
    assert reading.sync.rows > 100
    assert reading.sync.missing == 0
    assert newest_codes(packing) >= QUERY | ROWS


def test_each_change_is_applied_once(
    spark: SparkSession, packing: MariadbServer, target_server: MariadbServer, schema: str, tmp_path: Path
) -> None:
    packing.run("SET GLOBAL binlog_row_image = FULL", "FLUSH BINARY LOGS")
    work = Workload(packing, WorkPlan(schema, SHAPES["sysbench"], threads=1, tables=2))
    work.create()
    work.fill(200)
    syncer = {"compact": False}
    files = TaskFiles(tmp_path, schema, {"s1": packing}, target_server, (f"{schema}_1",), syncer=syncer).write()
    with TaskRun(files, spark) as run:
        run.reach("sync")
        with at_work(work):
            commit_more(work, transactions=TRANSACTIONS)
        run.catch_up()
    assert_exactly_once(packing, target_server, work.plan.names)
    assert newest_codes(packing) >= ROWS
