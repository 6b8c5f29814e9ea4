"""A unique key that only some of the shards have when they are copied, and rows that only fit without it."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.shard_runs import ROW, Shards
from support.task_runs import TaskRun
from unshard.errors import LoadError
from unshard.testing.mariadb_server import MariadbServer

pytestmark = [pytest.mark.server, pytest.mark.spark]


def test_the_load_tells_which_shards_have_the_key_and_goes_on_without_it(
    source_server: MariadbServer, target_server: MariadbServer, spark: SparkSession, schema: str, tmp_path: Path
) -> None:
    shards = Shards(schema, {"s1": source_server}, target_server, tmp_path, row=f"{ROW}, UNIQUE KEY u (v)")
    shards.update("s1", 1, 0, "v = 'other'")
    changes = ("DROP KEY u", "ADD COLUMN c INT")  # each with a row of the same value behind it
    with shards.copied_late("s1", 1, *changes) as let:
        run = TaskRun(shards.files(), spark).start()
        let(run)
        error = run.error()
    assert isinstance(error, LoadError)
    assert error.code == "LOAD-022"
    assert (error.values["key"], error.values["have"], error.values["lack"]) == (
        "u",
        f"{schema}_s.t_0",
        f"{schema}_s.t_1",
    )
    target_server.run(f"ALTER TABLE {shards.merged} DROP KEY u")
    with TaskRun(shards.files(), spark) as run:
        run.catch_up()
        for change in changes:
            shards.alter("s1", 0, change)
        shards.settle(run)
    assert "UNIQUE" not in str(target_server.query(f"SHOW CREATE TABLE {shards.merged}"))
