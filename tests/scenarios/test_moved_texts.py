"""Rows that move, while a sharding DDL waits, to a key whose text differs and that the target takes for the same."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.operated_tasks import ctl, stopped_run
from support.shard_runs import Shards
from support.task_runs import TaskRun
from unshard.errors import UnshardError
from unshard.sync.sharding import moved_rows
from unshard.testing.mariadb_server import MariadbServer

pytestmark = [pytest.mark.server, pytest.mark.spark]
HELD, FREE = 0, 1
TEXT = "id VARCHAR(20) CHARACTER SET utf8mb4 COLLATE {} NOT NULL PRIMARY KEY, v VARCHAR(20) NOT NULL"


@pytest.fixture
def shards_of(
    source_server: MariadbServer, target_server: MariadbServer, schema: str, tmp_path: Path
) -> Callable[[str], Shards]:
    """Make the shards, of tables of those columns; each change is written at least once."""
    keys = {"delivery": "at-least-once"}
    return lambda row: Shards(schema, {"s1": source_server}, target_server, tmp_path, row=row, keys=keys)


@pytest.mark.parametrize(("old", "most"), [("abc", 1), ("\u00e4bc ", moved_rows.MOST_UNSURE)])
@pytest.mark.scenarios
def test_a_row_that_moves_to_a_key_of_another_text(
    old: str, most: int, shards_of: Callable[[str], Shards], spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The target may take both texts for one key, so the task stops. Without the DELETE that it names, all is well.

    It stops as well if there are more such changes than are compared.
    """
    monkeypatch.setattr(moved_rows, "MOST_UNSURE", most)
    shards = shards_of(TEXT.format("utf8mb4_general_ci"))
    held, free = shards.at(HELD), shards.at(FREE)
    shards.run("s1", f"INSERT INTO {held} VALUES ('{old}', 'old'), ('gone', 'old'), ('\u00f6', 'old')")
    files = shards.files()
    with TaskRun(files, spark) as run:
        run.catch_up()
        shards.alter("s1", HELD, "ADD COLUMN c INT")
        shards.run("s1", f"INSERT INTO {free} VALUES ('other', 'new'), ('\u00fc', 'new')")
        shards.run("s1", f"DELETE FROM {held} WHERE id IN ('gone', '\u00f6')")
        shards.alter("s1", FREE, "ADD COLUMN c INT")
        shards.settle(run)  # no row of those has moved
        shards.alter("s1", HELD, "ADD COLUMN d INT")
        shards.sources["s1"].run(
            "BEGIN",
            f"INSERT INTO {free} VALUES ('ABC', 'moved', 1)",
            f"UPDATE {held} SET v = 'stays' WHERE id = '0'",
            f"DELETE FROM {held} WHERE id = '{old}'",
            "COMMIT",
        )
        run.catch_up()
    shards.alter("s1", FREE, "ADD COLUMN d INT")
    error = stopped_run(files, spark)
    assert isinstance(error, UnshardError)
    assert error.code == "SHARD-032", error
    place = str(error.where.position)
    ctl("binlog", "skip", str(files.task_path), "-s", "s1", "--binlog-pos", place)
    with TaskRun(files, spark) as run:
        shards.settle(run)


@pytest.mark.scenarios
def test_rows_of_a_key_with_a_binary_collation_have_not_moved(
    shards_of: Callable[[str], Shards], spark: SparkSession
) -> None:
    """There `abc` and `ABC` are two keys."""
    shards = shards_of(TEXT.format("utf8mb4_bin"))
    shards.run("s1", f"INSERT INTO {shards.at(HELD)} VALUES ('abc', 'old')")
    with TaskRun(shards.files(), spark) as run:
        run.catch_up()
        shards.alter("s1", HELD, "ADD COLUMN c INT")
        shards.run("s1", f"INSERT INTO {shards.at(FREE)} VALUES ('ABC', 'new')")
        shards.run("s1", f"DELETE FROM {shards.at(HELD)} WHERE id = 'abc'")
        run.catch_up()
        shards.alter("s1", FREE, "ADD COLUMN c INT")
        shards.settle(run)
