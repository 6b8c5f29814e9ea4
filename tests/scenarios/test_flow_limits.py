"""A whole task of two sources under a throttle, into a target that takes small transactions only."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.server_clock import assert_rate_was_held, clock
from support.task_runs import TaskFiles, TaskRun
from unshard.sync.planning import planner
from unshard.testing.mariadb_server import MariadbServer

pytestmark = [pytest.mark.server, pytest.mark.spark]
ROWS, ROWS_PER_SECOND, CONNECTIONS = 900, 1800, 3


@pytest.fixture
def any_batch_may_be_shuffled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planner, "SHUFFLE_SLOTS", 1)
    monkeypatch.setattr(planner, "SHUFFLE_BYTES", 1)


@pytest.fixture(scope="module")
def narrow_target() -> Iterator[MariadbServer]:
    """One that takes no transaction of more than 8 KiB in its binlog."""
    with MariadbServer({"max_binlog_cache_size": "8192", "gtid_domain_id": "9"}) as server:
        yield server


@pytest.mark.usefixtures("any_batch_may_be_shuffled")
def test_rate_and_size_are_kept_and_every_row_arrives(
    spark: SparkSession,
    source_server: MariadbServer,
    second_source: MariadbServer,
    narrow_target: MariadbServer,
    schema: str,
    tmp_path: Path,
) -> None:
    sources = {"one": source_server, "two": second_source}
    for name, server in sources.items():
        server.run(f"CREATE DATABASE {schema}_{name}", f"CREATE TABLE {schema}_{name}.t (id INT PRIMARY KEY, v TEXT)")
    target = {"host": "127.0.0.1", "user": "root", "port": narrow_target.port}
    limits = {"max-rows-per-second": ROWS_PER_SECOND, "max-connections": CONNECTIONS}
    files = TaskFiles(
        tmp_path,
        schema,
        sources,
        narrow_target,
        tuple(f"{schema}_{name}" for name in sources),
        keys={"target-database": {**target, **limits}},
        syncer={"worker-count": 4},
    ).write()
    with TaskRun(files, spark) as run:
        run.catch_up()
        begun = clock(narrow_target)
        for name, server in sources.items():
            server.run(
                f"INSERT INTO {schema}_{name}.t SELECT seq, REPEAT('x', 300) FROM {schema}_{name}.seq_1_to_{ROWS}"
            )
        run.catch_up()
    assert_rate_was_held(narrow_target, files.meta, begun, len(sources) * ROWS, ROWS_PER_SECOND)
    for name in sources:
        found = narrow_target.query(f"SELECT COUNT(*), MIN(id), MAX(id), SUM(LENGTH(v)) FROM {schema}_{name}.t")
        assert found == [(ROWS, 1, ROWS, 300 * ROWS)]
