"""`unshard compare` of shards that are merged, while writers are live: no false alarm, and each real difference."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.comparisons import compared, kinds, only_table
from support.task_runs import TaskFiles, TaskRun, at_work, commit_more
from unshard.compare.result import RowClass
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.tidb_server import TidbServer
from unshard.testing.workload import Workload, WorkPlan

pytestmark = [pytest.mark.server, pytest.mark.spark]


@pytest.fixture
def works(source_server: MariadbServer, second_source: MariadbServer, schema: str) -> Iterator[tuple[Workload, ...]]:
    """Each source has two schemas of two tables, whose ids count from 1 everywhere."""
    plan = WorkPlan(schema, schemas=2, tables=2, table="orders", threads=1, large_rows=60, disjoint_ids=False)
    made = tuple(Workload(server, plan) for server in (source_server, second_source))
    for work in made:
        work.create()
        work.fill(1500)
    yield made
    for work in made:
        work.stop()


def files_of(works: tuple[Workload, ...], tidb: TidbServer, schema: str, folder: Path) -> TaskFiles:
    shards = {"schema-pattern": f"{schema}_*", "table-pattern": "orders_*"}
    keys = {
        "routes": {"orders": {**shards, "target-schema": f"{schema}_all", "target-table": "orders"}},
        "column-mappings": {
            f"ids-{number}": {
                **shards,
                "expression": "partition id",
                "source-column": "id",
                "target-column": "id",
                "arguments": [str(number), schema, "orders", "_"],
            }
            for number in (1, 2)
        },
    }
    sources = {f"s{number}": work.server for number, work in enumerate(works, 1)}
    own = {name: {"column-mapping-rules": [f"ids-{name[1:]}"]} for name in sources}
    schemas = (f"{schema}_1", f"{schema}_2")
    instance = {"route-rules": ["orders"]}
    return TaskFiles(folder, f"task_{schema}", sources, tidb, schemas, keys, instance, own).write()


def test_live_shards_are_equal_and_a_lost_row_is_told(
    works: tuple[Workload, ...], tidb: TidbServer, schema: str, tmp_path: Path, spark: SparkSession
) -> None:
    files = files_of(works, tidb, schema, tmp_path)
    merged = f"{schema}_all.orders"
    with TaskRun(files, spark) as run:
        run.catch_up()
        with at_work(*works):
            commit_more(*works, transactions=20)
            live = compared(files, spark, chunk_rows=900)
            table = only_table(live)
            assert (live.exit_code, table.classes) == (0, {}), table.to_dict()
            assert table.key == ("id",)
            assert len(table.sources) == 8
            assert table.chunks > 8
        ((kept, changed),) = tidb.query(f"SELECT MIN(id), MAX(id) FROM {merged}")
        run.catch_up()
        tidb.run(f"DELETE FROM {merged} WHERE id = {kept}", f"UPDATE {merged} SET k = k + 1 WHERE id = {changed}")
        with at_work(*works):
            found = compared(files, spark, patience_seconds=30.0)
    told = kinds(only_table(found))
    assert found.exit_code == 1
    # a writer may have changed one of the two rows again since
    assert told.items() <= {f"id={kept}": "missing", f"id={changed}": "changed"}.items()
    assert told


def test_two_shards_with_one_key(
    works: tuple[Workload, ...], tidb: TidbServer, schema: str, tmp_path: Path, spark: SparkSession
) -> None:
    """Without a column mapping the rows of one id overwrite each other."""
    (first, _) = works
    name = f"{schema}_all"
    shard = "(id BIGINT PRIMARY KEY, v VARCHAR(9))"
    first.server.run(
        f"CREATE DATABASE {name}_src", f"USE {name}_src", f"CREATE TABLE a {shard}", f"CREATE TABLE b {shard}"
    )
    keys = {
        "routes": {
            "both": {"schema-pattern": f"{name}_src", "table-pattern": "*", "target-schema": name, "target-table": "t"}
        }
    }
    files = TaskFiles(
        tmp_path, f"task_{name}", {"s1": first.server}, tidb, (f"{name}_src",), keys, {"route-rules": ["both"]}
    ).write()
    first.server.run(f"INSERT INTO {name}_src.a VALUES (1, 'a'), (2, 'a')", f"INSERT INTO {name}_src.b VALUES (3, 'b')")
    with TaskRun(files, spark) as run:
        run.catch_up()
        assert compared(files, spark).exit_code == 0
    first.server.run(f"INSERT INTO {name}_src.b VALUES (2, 'b')")
    found = only_table(compared(files, spark, patience_seconds=3.0))
    assert found.classes == {RowClass.IN_FLIGHT: 1}
    first.server.run(f"DELETE FROM {name}_src.b WHERE id = 2")
