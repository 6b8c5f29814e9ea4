"""Where a task may begin, and what its rules leave out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from support.task_runs import TaskFiles, TaskRun, at_work, executed_gtids, newest
from unshard.model.table import TableName
from unshard.testing.compare import assert_equal
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.workload import Workload, WorkPlan

pytestmark = [pytest.mark.server, pytest.mark.spark]


@pytest.mark.parametrize("by_gtid", [False, True], ids=["position", "gtid"])
def test_incremental_begins_at_meta(
    by_gtid: bool,
    spark: SparkSession,
    source_server: MariadbServer,
    target_server: MariadbServer,
    schema: str,
    tmp_path: Path,
) -> None:
    works = [Workload(source_server, WorkPlan(schema, threads=1)), Workload(target_server, WorkPlan(schema, threads=1))]
    for work in works:  # the same seed gives the same rows on both ends
        work.create()
        work.fill(100)
    source_server.run("FLUSH BINARY LOGS")
    at = newest(source_server)
    gtid = executed_gtids(source_server)
    meta: dict[str, Any] = {"binlog-name": at.file, "binlog-pos": at.offset}
    if by_gtid:
        meta["binlog-gtid"] = gtid
    work = works[0]
    work.run(transactions=50)
    files = TaskFiles(
        tmp_path,
        schema,
        {"s1": source_server},
        target_server,
        (f"{schema}_1",),
        keys={"task-mode": "incremental"},
        instance={"meta": meta},
        source={"enable-gtid": by_gtid},
    ).write()
    for _ in range(2):  # the second start goes on from the checkpoint, not from meta
        with TaskRun(files, spark) as run:
            with at_work(work):
                run.reach("sync")
                run.catch_up()
            run.catch_up()
            assert run.sync.missing == 0
        for name in work.plan.names:
            assert_equal([(source_server, name)], (target_server, name))


def test_full_mode_ends_by_itself(
    spark: SparkSession, source_server: MariadbServer, target_server: MariadbServer, schema: str, tmp_path: Path
) -> None:
    work = Workload(source_server, WorkPlan(schema))
    work.create()
    work.fill(300)
    keys = {"task-mode": "full"}
    files = TaskFiles(tmp_path, schema, {"s1": source_server}, target_server, (f"{schema}_1",), keys=keys).write()
    for _ in range(2):  # a second start finds that nothing is left to do
        run = TaskRun(files, spark).start()
        run.crew.join()
        assert run.crew.readings()[0].unit == "finished"
        for name in work.plan.names:
            assert_equal([(source_server, name)], (target_server, name))


def test_what_the_list_leaves_out_never_arrives(
    spark: SparkSession, source_server: MariadbServer, target_server: MariadbServer, schema: str, tmp_path: Path
) -> None:
    work = Workload(source_server, WorkPlan(schema, schemas=2, tables=3, threads=1))
    work.create()
    work.fill(50)
    rules = {
        "do-dbs": [f"{schema}_*"],
        "do-tables": [
            {"db-name": f"{schema}_1", "tbl-name": "table_[13]"},
            {"db-name": f"{schema}_1", "tbl-name": "late"},
            {"db-name": f"{schema}_2", "tbl-name": "~_[12]$"},
        ],
    }
    files = TaskFiles(
        tmp_path, schema, {"s1": source_server}, target_server, (), keys={"block-allow-list": {"own": rules}}
    ).write()
    with TaskRun(files, spark) as run:
        with at_work(work):
            run.reach("sync")
            source_server.run(f"ALTER TABLE {schema}_2.table_3 ADD z INT")
            source_server.run(f"CREATE TABLE {schema}_1.late (id INT PRIMARY KEY)")
            source_server.run(f"INSERT INTO {schema}_1.late VALUES (1)")
            run.catch_up()
        run.catch_up()
    kept = {(1, "table_1"), (1, "table_3"), (1, "late"), (2, "table_1"), (2, "table_2")}
    for number, table in kept:
        name = TableName(f"{schema}_{number}", table)
        assert_equal([(source_server, name)], (target_server, name))
    listed = target_server.query(
        "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA LIKE %s", (f"{schema}\\_%",)
    )
    assert set(listed) == {(f"{schema}_{number}", table) for number, table in kept}
