"""`unshard compare` of a source table that somebody has locked."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.comparisons import compared, not_followed
from support.task_runs import TaskFiles
from unshard.compare import lock_patience
from unshard.compare.executor import rows as reading
from unshard.testing.throwaway_server import ThrowawayServer

pytestmark = [pytest.mark.server, pytest.mark.spark]


@pytest.fixture
def files(
    source_server: ThrowawayServer, target_server: ThrowawayServer, schema: str, tmp_path: Path
) -> Iterator[TaskFiles]:
    """The target has no row, so that the source is asked how far the first range goes."""
    with not_followed(source_server, target_server, schema, tmp_path) as files:
        for server in (source_server, target_server):
            server.run(f"CREATE TABLE {schema}.t (id INT PRIMARY KEY)")
        source_server.run(f"INSERT INTO {schema}.t VALUES (1), (2), (3)")
        yield files


def test_it_is_told_and_not_waited_for_without_end(
    files: TaskFiles, spark: SparkSession, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "TABLE_LOCK_SECONDS", 1)
    monkeypatch.setattr(lock_patience, "LOCK_SECONDS", 1.0)
    with closing(files.sources["s1"].connection()) as connection, connection.cursor() as cursor:
        cursor.execute(f"LOCK TABLES {schema}.t WRITE")
        found = compared(files, spark, chunk_rows=1)
    (table,) = found.tables
    assert found.exit_code == 2
    assert ["1205" in error.cause for error in table.errors] == [True], table.to_dict()
