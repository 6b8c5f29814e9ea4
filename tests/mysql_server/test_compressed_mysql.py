"""A MySQL that compresses its transactions: every shape, tagged GTIDs, parts of rows, differences of JSON."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.binlog_listing import newest_codes
from support.exactly_once import assert_exactly_once
from support.shape_set import ShapeSet
from support.task_runs import TaskFiles, TaskRun, at_work, commit_more
from unshard.model.table import TableName
from unshard.testing.compare import assert_equal
from unshard.testing.mysql_server import MysqlServer
from unshard.testing.shapes import SHAPES
from unshard.testing.workload import Workload, WorkPlan

pytestmark = [pytest.mark.server, pytest.mark.spark]
TRANSACTIONS = 400
PAYLOAD, ROW_EVENTS = 40, {30, 31, 32, 39}


@pytest.mark.parametrize(
    ("image", "by_gtid", "slice_bytes"),
    [("FULL", False, 0), ("FULL", True, 0), ("MINIMAL", False, 0), ("FULL", False, 2000)],
    ids=["position", "gtid", "minimal", "slices"],
)
def test_every_shape_arrives_from_payloads(
    image: str,
    by_gtid: bool,
    slice_bytes: int,
    spark: SparkSession,
    packing_mysql: MysqlServer,
    mysql_target: MysqlServer,
    schema: str,
    tmp_path: Path,
) -> None:
    packing_mysql.run(f"SET GLOBAL binlog_row_image = {image}", "FLUSH BINARY LOGS")
    shapes = ShapeSet.create(packing_mysql, schema, rows=200, seed=5)
    files = TaskFiles(
        tmp_path, schema, {"s1": packing_mysql}, mysql_target, shapes.schemas, source={"enable-gtid": by_gtid}
    ).write()
    run = TaskRun(files, spark)
    if slice_bytes:
        run.sync_unit(slice_bytes=slice_bytes, chunk_rows=5)
    with run:
        with at_work(*shapes.works):
            run.reach("sync")
            commit_more(*shapes.works, transactions=TRANSACTIONS)
        run.catch_up()
        shapes.assert_equal(mysql_target)
        (reading,) = run.crew.readings()
    packing_mysql.run("SET GLOBAL binlog_row_image = FULL")
    assert reading.sync is not None
    assert reading.sync.rows > 100
    assert reading.sync.missing == 0
    found = newest_codes(packing_mysql)
    assert PAYLOAD in found
    assert not found & ROW_EVENTS


def test_each_change_is_applied_once(
    spark: SparkSession, packing_mysql: MysqlServer, mysql_target: MysqlServer, schema: str, tmp_path: Path
) -> None:
    work = Workload(packing_mysql, WorkPlan(schema, SHAPES["sysbench"], threads=1, tables=2))
    work.create()
    work.fill(200)
    syncer = {"compact": False}
    files = TaskFiles(tmp_path, schema, {"s1": packing_mysql}, mysql_target, (f"{schema}_1",), syncer=syncer).write()
    with TaskRun(files, spark) as run:
        run.reach("sync")
        with at_work(work):
            commit_more(work, transactions=TRANSACTIONS)
        run.catch_up()
    assert_exactly_once(packing_mysql, mysql_target, work.plan.names)


def test_differences_of_json(
    spark: SparkSession, packing_mysql: MysqlServer, mysql_target: MysqlServer, schema: str, tmp_path: Path
) -> None:
    name = TableName(schema, "documents")
    document = '{"a": [1, {"b": "x"}, 3], "long": "' + "z" * 300 + '"}'
    packing_mysql.run(
        f"CREATE DATABASE {schema}",
        f"CREATE TABLE {name.quoted} (id INT PRIMARY KEY, j JSON, v INT)",
        f"INSERT INTO {name.quoted} VALUES " + ", ".join(f"({n}, '{document}', {n})" for n in range(20)),
    )
    files = TaskFiles(tmp_path, schema, {"s1": packing_mysql}, mysql_target, (schema,)).write()
    with TaskRun(files, spark) as run:
        run.reach("sync")
        for number in range(30):
            changed = f"j = JSON_SET(j, '$.a[1].b', {number}), v = v + 1"
            packing_mysql.run(
                "SET binlog_row_value_options = PARTIAL_JSON",
                f"UPDATE {name.quoted} SET {changed} WHERE id % 3 = {number % 3}",
                f"UPDATE {name.quoted} SET j = JSON_REMOVE(j, '$.a[0]') WHERE id = {number}",
            )
        run.catch_up()
        assert_equal([(packing_mysql, name)], (mysql_target, name))
        (reading,) = run.crew.readings()
    assert reading.sync is not None
    assert reading.sync.missing == 0
