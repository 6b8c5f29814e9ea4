"""A statement that changes a table upstream alone, in front of a batch that another process brings to its end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from support.shard_runs import Shards, ends_at
from support.task_runs import TaskRun
from unshard import crash_point
from unshard.errors import EngineError
from unshard.testing.mariadb_server import MariadbServer

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.recovery]


def rules(schema: str) -> dict[str, Any]:
    """Nothing but a batch or a sharding DDL moves the checkpoint; the order of columns stays upstream."""
    events = {"schema-pattern": f"{schema}_s", "table-pattern": "*", "events": ["modify columns order"]}
    return {
        "keys": {"filters": {"kept": {**events, "action": "Ignore"}}},
        "instance": {"route-rules": ["fold"], "filter-rules": ["kept"]},
        "syncer": {"checkpoint-flush-interval": 600},
    }


def test_rows_of_its_table(
    spark: SparkSession,
    source: MariadbServer,
    target: MariadbServer,
    schema: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    row = "id BIGINT NOT NULL PRIMARY KEY, v VARCHAR(20) NOT NULL, a INT, b INT"
    shards = Shards(schema, {"s1": source}, target, tmp_path, tables=1, row=row, **rules(schema))
    with TaskRun(shards.files(), spark) as run:
        run.catch_up()
    shards.alter("s1", 0, "MODIFY b INT AFTER v")
    shards.insert("s1", 0, 1, a="1", b="2")
    assert ends_at("sync-close-before", shards.files(), spark, monkeypatch)
    with TaskRun(shards.files(), spark) as run:
        run.catch_up()
    assert target.query(f"SELECT a, b FROM {shards.merged} WHERE a") == [(1, 2)]


def test_a_sharding_ddl(
    spark: SparkSession,
    source: MariadbServer,
    second_source: MariadbServer,
    target: MariadbServer,
    schema: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The statement is on another table: the next change of that one has the columns in their new order."""
    other = f"{schema}_s.z"
    shards = Shards(schema, {"s1": source, "s2": second_source}, target, tmp_path, tables=1, **rules(schema))
    source.run(f"CREATE TABLE {other} (id INT PRIMARY KEY, a INT, b INT)")
    with TaskRun(shards.files(), spark) as run:
        run.catch_up()
    with monkeypatch.context() as patch:
        patch.setattr(crash_point, "_die", lambda: (_ for _ in ()).throw(EngineError("ENGINE-010", cause="died")))
        patch.setenv(crash_point.AT, "sync-open-after")
        patch.delenv(crash_point.MARKER, raising=False)
        crash_point._reached.clear()
        run = TaskRun(shards.files(), spark).start()
        shards.alter("s1", 0, "ADD COLUMN c INT")
        source.run(f"ALTER TABLE {other} MODIFY b INT FIRST")
        run.catch_up()
        shards.alter("s2", 0, "ADD COLUMN c INT")
        assert "died" in str(run.error())
    with TaskRun(shards.files(), spark) as run:
        source.run(f"INSERT INTO {other} (id, a, b) VALUES (3, 1, 2)")
        shards.wait_in_step(run)
        assert target.query(f"SELECT id, a, b FROM {other}") == [(3, 1, 2)]
