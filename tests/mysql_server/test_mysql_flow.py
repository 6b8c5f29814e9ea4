"""Full copy and live replication between the flavours, with writers at work during dump, load and sync."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.shape_set import ALL_SHAPES, BEFORE_JSON, ShapeSet
from support.task_runs import TaskFiles, TaskRun, at_work, commit_more
from unshard.testing.throwaway_server import ThrowawayServer

pytestmark = [pytest.mark.server, pytest.mark.spark]
TRANSACTIONS = 400


PAIRS = (
    ("mysql_source", "mysql_target"),
    ("mysql_source", "other_mariadb"),
    ("source_server", "mysql_target"),
    ("other_mariadb", "target_server"),
    ("source_server", "other_mariadb"),
    ("mysql_56", "mysql_80"),
)


@pytest.mark.parametrize(
    ("source", "target", "by_gtid"),
    [
        *((source, target, by_gtid) for source, target in PAIRS for by_gtid in (False, True)),
        ("mysql_80", "mysql_target", True),
        ("old_mariadb", "mysql_80", False),
        ("source_server", "old_mariadb", True),
    ],
)
def test_every_shape_arrives_while_writers_go_on(
    source: str,
    target: str,
    by_gtid: bool,
    spark: SparkSession,
    schema: str,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    upstream: ThrowawayServer = request.getfixturevalue(source)
    downstream: ThrowawayServer = request.getfixturevalue(target)
    shapes = ShapeSet.create(
        upstream, schema, rows=200, seed=5, shapes=BEFORE_JSON if source == "mysql_56" else ALL_SHAPES
    )
    files = TaskFiles(
        tmp_path, schema, {"s1": upstream}, downstream, shapes.schemas, source={"enable-gtid": by_gtid}
    ).write()
    with TaskRun(files, spark) as run:
        with at_work(*shapes.works):
            run.reach("sync")
            commit_more(*shapes.works, transactions=TRANSACTIONS)
        run.catch_up()
        shapes.assert_equal(downstream)
        (reading,) = run.crew.readings()
    assert shapes.transactions > 100
    assert reading.sync is not None
    assert reading.sync.rows > 100
    assert reading.sync.missing == 0, "an UPDATE or DELETE found no row: the copy and the log don't meet"
