"""Shards of two live sources folded into one table."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.task_runs import TaskFiles, TaskRun, at_work, commit_more
from unshard.model.table import TableName
from unshard.testing.compare import assert_equal
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.shapes import SHAPES
from unshard.testing.workload import Workload, WorkPlan

pytestmark = [pytest.mark.server, pytest.mark.spark]
TRANSACTIONS = 300


@pytest.mark.parametrize("shape", ["sysbench", pytest.param("types", marks=pytest.mark.scenarios), "no_key"])
def test_disjoint_shards_become_one_table(
    shape: str,
    spark: SparkSession,
    source_server: MariadbServer,
    second_source: MariadbServer,
    target_server: MariadbServer,
    schema: str,
    tmp_path: Path,
) -> None:
    works = [
        Workload(source_server, WorkPlan(schema, SHAPES[shape], schemas=2, threads=1, seed=1)),
        Workload(second_source, WorkPlan(schema, SHAPES[shape], schemas=2, threads=1, seed=2, first_schema=3)),
    ]
    for work in works:
        work.create()
        work.fill(200)
    sources = {"s1": source_server, "s2": second_source}
    route = {"schema-pattern": f"{schema}_*", "table-pattern": "table_*"}
    files = TaskFiles(
        tmp_path,
        schema,
        sources,
        target_server,
        (f"{schema}_*",),
        keys={"routes": {"fold": {**route, "target-schema": f"{schema}_all", "target-table": "folded"}}},
        instance={"route-rules": ["fold"]},
    ).write()
    with TaskRun(files, spark) as run:
        with at_work(*works):
            run.reach("sync")
            commit_more(*works, transactions=TRANSACTIONS)
        run.catch_up()
        shards = [(work.server, name) for work in works for name in work.plan.names]
        assert len(shards) == 8
        assert_equal(shards, (target_server, TableName(f"{schema}_all", "folded")))


def test_clashing_ids_are_told_apart_by_column_mapping(
    spark: SparkSession,
    source_server: MariadbServer,
    second_source: MariadbServer,
    target_server: MariadbServer,
    schema: str,
    tmp_path: Path,
) -> None:
    shape = SHAPES["sysbench"]
    plans = [
        WorkPlan(schema, shape, schemas=2, threads=1, seed=seed, first_schema=1, disjoint_ids=False) for seed in (1, 2)
    ]
    works = [Workload(server, plan) for server, plan in zip((source_server, second_source), plans, strict=True)]
    for work in works:
        work.create()
        work.fill(200)
    place = {"schema-pattern": f"{schema}_*", "table-pattern": "table_*"}
    partition = {**place, "expression": "partition id", "source-column": "id", "target-column": "id"}
    files = TaskFiles(
        tmp_path,
        schema,
        {"s1": source_server, "s2": second_source},
        target_server,
        (f"{schema}_*",),
        keys={
            "routes": {"fold": {**place, "target-schema": f"{schema}_all", "target-table": "folded"}},
            "column-mappings": {
                f"m{number}": {**partition, "arguments": [str(number), f"{schema}_", "table_"]} for number in (1, 2)
            },
        },
        instance={"route-rules": ["fold"]},
        instances={f"s{number}": {"column-mapping-rules": [f"m{number}"]} for number in (1, 2)},
    ).write()
    with TaskRun(files, spark) as run:
        with at_work(*works):
            run.reach("sync")
            commit_more(*works, transactions=TRANSACTIONS)
        run.catch_up()
        folded = 0
        for instance, work in enumerate(works, 1):
            for name in work.plan.names:
                bits = _bits(instance, name)
                columns = "COUNT(*), COALESCE(SUM(CRC32(CONCAT_WS('#', id - {}, k, c, pad))), 0)"
                ours = work.server.query(f"SELECT {columns.format(0)} FROM {name.quoted}")
                theirs = target_server.query(
                    f"SELECT {columns.format(bits)} FROM `{schema}_all`.folded WHERE id BETWEEN %s AND %s",
                    (bits, bits + (1 << 44) - 1),
                )
                assert ours == theirs, f"{instance} {name}"
                folded += ours[0][0]
        assert target_server.query(f"SELECT COUNT(*) FROM `{schema}_all`.folded") == [(folded,)]


def _bits(instance: int, name: TableName) -> int:
    """What the mapping sets in front of an id: 4 bits of the instance, 7 of the schema, 8 of the table."""
    numbers = (int(part.rsplit("_", 1)[1]) for part in (name.schema, name.table))
    schema, table = numbers
    return (instance << 59) | (schema << 52) | (table << 44)
