"""Shards of two live sources that use the same ids, folded into one table with the sources' names in its keys."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from support.task_runs import Command, TaskFiles, TaskRun, at_work, commit_more
from unshard.errors import ConfigError
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.shapes import SHAPES
from unshard.testing.workload import Workload, WorkPlan

pytestmark = [pytest.mark.server, pytest.mark.spark]
TRANSACTIONS = 200
EXTRACTED = {
    "extract-source": {"source-regexp": "^s(.*)$", "target-column": "c_source"},
    "extract-schema": {"schema-regexp": "_(\\d+)$", "target-column": "c_schema"},
    "extract-table": {"table-regexp": "(ta)ble_(.*)", "target-column": "c_table"},
}


def shards(shape: str, schema: str, servers: Sequence[MariadbServer]) -> list[Workload]:
    plans = [WorkPlan(schema, SHAPES[shape], schemas=2, threads=1, seed=n, disjoint_ids=False) for n in (1, 2)]
    works = [Workload(server, plan) for server, plan in zip(servers, plans, strict=True)]
    for work in works:
        work.create()
        work.fill(150)
    return works


def task(
    folder: Path, schema: str, servers: Sequence[MariadbServer], target: MariadbServer, **syncer: Any
) -> TaskFiles:
    place = {"schema-pattern": f"{schema}_*", "table-pattern": "table_*"}
    fold = {**place, "target-schema": f"{schema}_all", "target-table": "folded", **EXTRACTED}
    return TaskFiles(
        folder,
        schema,
        {f"s{number}": server for number, server in enumerate(servers, 1)},
        target,
        (f"{schema}_*",),
        keys={"routes": {"fold": fold}},
        instance={"route-rules": ["fold"]},
        syncer=syncer,
    ).write()


def make_target(files: TaskFiles, spark: SparkSession) -> None:
    """The target table as the refusal of a task without it says."""
    with pytest.raises(ConfigError) as caught, TaskRun(files, spark) as run:
        raise run.error()
    assert caught.value.code == "CONFIG-017"
    files.target.run(*caught.value.values["mend"].split("; "))


def assert_folded(works: Sequence[Workload], target: MariadbServer, schema: str) -> None:
    """Each shard is in the target just as it is in its source, under its own names, and nothing else is."""
    total = 0
    for number, work in enumerate(works, 1):
        columns = ", ".join(f"`{name}`" for name in work.plan.shape.columns)
        sums = f"SELECT COUNT(*), COALESCE(SUM(CRC32(CONCAT_WS('#', {columns}))), 0)"
        for name in work.plan.names:
            ours = work.server.query(f"{sums} FROM {name.quoted}")
            theirs = target.query(
                f"{sums} FROM `{schema}_all`.folded WHERE c_source = %s AND c_schema = %s AND c_table = %s",
                (str(number), name.schema.rpartition("_")[2], "ta" + name.table.rpartition("_")[2]),
            )
            assert ours == theirs, f"s{number} {name}"
            total += ours[0][0]
    assert target.query(f"SELECT COUNT(*) FROM `{schema}_all`.folded") == [(total,)]


@pytest.mark.parametrize(
    ("shape", "image", "syncer"),
    [
        pytest.param("sysbench", "FULL", {}, marks=pytest.mark.scenarios),
        pytest.param("several_unique", "FULL", {}, marks=pytest.mark.scenarios),
        ("no_key", "FULL", {}),
        ("sysbench", "MINIMAL", {}),
        ("several_unique", "FULL", {"safe-mode": True, "multiple-rows": False}),
    ],
)
def test_extracted_columns_tell_shards_apart(
    shape: str,
    image: str,
    syncer: dict[str, Any],
    spark: SparkSession,
    source_server: MariadbServer,
    second_source: MariadbServer,
    target_server: MariadbServer,
    schema: str,
    tmp_path: Path,
) -> None:
    servers = (source_server, second_source)
    works = shards(shape, schema, servers)
    files = task(tmp_path, schema, servers, target_server, **syncer)
    make_target(files, spark)
    try:
        for server in servers:
            server.run(f"SET GLOBAL binlog_row_image = {image}")
        with TaskRun(files, spark) as run:
            with at_work(*works):
                run.reach("sync")
                commit_more(*works, transactions=TRANSACTIONS)
            run.catch_up()
            assert_folded(works, target_server, schema)
    finally:
        for server in servers:
            server.run("SET GLOBAL binlog_row_image = FULL")


@pytest.mark.faults
def test_a_kill_in_the_middle_of_it(
    spark: SparkSession,
    source_server: MariadbServer,
    second_source: MariadbServer,
    target_server: MariadbServer,
    schema: str,
    tmp_path: Path,
) -> None:
    servers = (source_server, second_source)
    works = shards("several_unique", schema, servers)
    files = task(tmp_path, schema, servers, target_server)
    make_target(files, spark)
    with at_work(*works):
        with Command(files, crash_at="sync-chunk-after") as command:
            command.dies("sync-chunk-after")
        with Command(files) as command:
            command.shows("sync")
            commit_more(*works, transactions=TRANSACTIONS)
            command.kill()
    with Command(files) as command:
        command.catch_up()
    assert_folded(works, target_server, schema)
