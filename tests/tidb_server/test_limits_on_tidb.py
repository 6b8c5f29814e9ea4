"""TiDB's limits of memory and size, and a cluster that is read-only for a while: what passes in smaller transactions
passes, what may pass later is waited for, the rest stops with its table and what to do. Nothing is lost or doubled."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.task_runs import TaskFiles, TaskRun
from support.waiting import wait_until
from unshard.errors import SyncError
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.tidb_server import TidbServer

pytestmark = [pytest.mark.server, pytest.mark.spark]
ENTRY_BYTES, QUOTA_BYTES = 200_000, 3_000_000
"""The second is less than the transactions of a batch take, and more than a question to the catalog."""


@pytest.fixture
def small() -> Iterator[TidbServer]:
    """A TiDB with small limits."""
    with TidbServer({"performance.txn-entry-size-limit": str(ENTRY_BYTES)}) as server:
        server.run(f"SET GLOBAL tidb_mem_quota_query = {QUOTA_BYTES}")
        yield server


def test_a_task_lives_with_the_limits_of_its_target(
    source_server: MariadbServer, small: TidbServer, spark: SparkSession, tmp_path: Path
) -> None:
    source = source_server
    text = "REPEAT(CHAR(97 + seq % 26), 10000)"
    source.run(
        "CREATE DATABASE limits",
        "CREATE TABLE limits.t (id INT PRIMARY KEY, v LONGTEXT NOT NULL)",
        f"INSERT INTO limits.t SELECT seq, {text} FROM limits.seq_1_to_600",
    )
    files = TaskFiles(tmp_path, "limits", {"s1": source}, small, ("limits",)).write()

    def equal() -> None:
        asked = "SELECT COUNT(*), SUM(id), SUM(CRC32(v)) FROM limits.t"
        assert small.query(asked) == source.query(asked)

    with TaskRun(files, spark) as run:
        run.catch_up()
        equal()
        source.run("USE limits", f"INSERT INTO t SELECT seq, {text} FROM seq_601_to_1200")
        run.catch_up()
        equal()
        source.run("USE limits", "UPDATE t SET v = REVERSE(CONCAT(v, id))")
        run.catch_up()
        equal()
        small.run("SET GLOBAL tidb_restricted_read_only = ON")
        source.run("INSERT INTO limits.t VALUES (5000, 'read-only')")
        store = run.sync_unit().store
        wait_until(lambda: "TARGET-006" in store.failed or "read" in store.failed, "it says what it waits for")
        small.run("SET GLOBAL tidb_restricted_read_only = OFF", "SET GLOBAL tidb_super_read_only = OFF")
        run.catch_up()
        equal()
    with TaskRun(files, spark).failing() as run:
        source.run(f"INSERT INTO limits.t VALUES (6000, REPEAT('x', {ENTRY_BYTES + 1000}))")
        with pytest.raises(SyncError) as refused:
            run.catch_up()
    assert refused.value.code == "SYNC-053"
    assert "limits.t" in str(refused.value)
    assert "txn-entry-size-limit" in str(refused.value)
