"""Each example copies what is there, as it stands: only addresses, and the names of its schemas, are the test's."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.task_runs import TaskFiles, TaskRun
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.throwaway_server import ThrowawayServer

EXAMPLES = Path(__file__).parents[2] / "examples"
pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.docs]


@pytest.mark.parametrize("name", ["minimal", "merge", "everything"])
def test_an_example_copies_its_tables(
    name: str,
    source_server: MariadbServer,
    second_source: MariadbServer,
    target_server: ThrowawayServer,
    schema: str,
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    sources = {"shop-01": source_server} | ({} if name == "minimal" else {"shop-02": second_source})
    files = TaskFiles(tmp_path, "shop", sources, target_server, ())
    for number, server in enumerate(sources.values(), 1):
        own = f"{schema}_{number}"
        server.run(f"CREATE DATABASE {own}", f"CREATE TABLE {own}.order_1 (id BIGINT PRIMARY KEY, v INT)")
        server.run(f"INSERT INTO {own}.order_1 VALUES (1, {number}), (2, {number})")
        text = (EXAMPLES / f"source-{number}.yaml").read_text()
        text = text.replace(f"port: {3305 + number}", f"port: {server.port}").replace("replicator", "root")
        (tmp_path / f"shop-0{number}.yaml").write_text(text)
    text = (EXAMPLES / f"{name}.yaml").read_text().replace("meta-schema: dm_meta", "")
    for before, after in (
        ("port: 4000", f"port: {target_server.port}"),
        ("task-mode: all", f"task-mode: full\nmeta-schema: meta_{schema}"),
        ('"shop_', f'"{schema}_'),
        ('"shop"', f'"{schema}"'),
        ("target-schema: shop", f"target-schema: {schema}"),
    ):
        text = text.replace(before, after)
    files.task_path.write_text(text)
    with TaskRun(files, spark) as run:
        run.reach("finished")
    table = f"{schema}_1.order_1" if name == "minimal" else f"{schema}.orders"
    copied = target_server.query(f"SELECT COUNT(*), COUNT(DISTINCT id), COUNT(DISTINCT v) FROM {table}")
    assert copied == [(2 * len(sources), 2 * len(sources), len(sources))]
