"""Rows of two shards with one key: moved in one go they arrive as they are, and none is lost where both stay."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.shard_runs import ROW, Shards
from support.task_runs import TaskRun
from unshard.errors import UnshardError
from unshard.testing.mariadb_server import MariadbServer

pytestmark = [pytest.mark.server, pytest.mark.spark]
FIRST, SECOND, THIRD = 0, 1, 2
TABLES = {"one key": ROW, "two keys": f"{ROW}, UNIQUE (v, id)"}
TEXT = "id VARCHAR(20) CHARACTER SET utf8mb4 COLLATE {} NOT NULL PRIMARY KEY, v VARCHAR(20) NOT NULL"


@pytest.fixture
def shards(request: pytest.FixtureRequest, source_server: MariadbServer, target_server: MariadbServer) -> Shards:
    schema, folder = request.getfixturevalue("schema"), request.getfixturevalue("tmp_path")
    assert isinstance(folder, Path)
    return Shards(schema, {"s1": source_server}, target_server, folder, 3, row=TABLES.get(request.param, request.param))


@pytest.mark.parametrize("shards", TABLES, indirect=True)
@pytest.mark.parametrize(
    "mode", ["exactly-once", pytest.param("at-least-once", marks=pytest.mark.scenarios), "safe-mode"]
)
def test_rows_that_move_in_one_transaction(mode: str, shards: Shards, spark: SparkSession) -> None:
    """INSERT or DELETE first, with an UPDATE between; there and back, or to a third shard. One mode is one by one."""
    shards.keys = {"delivery": mode} if mode != "safe-mode" else {}
    shards.syncer = {"safe-mode": mode == "safe-mode", "compact": mode != "at-least-once"}
    first, second, third = (shards.at(number) for number in (FIRST, SECOND, THIRD))
    with TaskRun(shards.files(), spark) as run:
        for number in (1, 2, 3, 4):
            shards.insert("s1", FIRST, number)
        run.reach("sync")
        run.catch_up()
        a, b, c, d = (shards.id("s1", FIRST, number) for number in (1, 2, 3, 4))
        shards.sources["s1"].run(
            "BEGIN",
            f"INSERT INTO {second} VALUES ({a}, 'moved')",
            f"UPDATE {first} SET v = 'goes' WHERE id = {a}",
            f"DELETE FROM {first} WHERE id = {a}",
            f"DELETE FROM {first} WHERE id = {b}",
            f"INSERT INTO {second} VALUES ({b}, 'moved too')",
            f"INSERT INTO {second} VALUES ({c}, 'is back soon')",
            f"DELETE FROM {first} WHERE id = {c}",
            f"INSERT INTO {first} VALUES ({c}, 'is back')",
            f"DELETE FROM {second} WHERE id = {c}",
            f"INSERT INTO {second} VALUES ({d}, 'goes on')",
            f"INSERT INTO {third} VALUES ({d}, 'is here')",
            f"DELETE FROM {first} WHERE id = {d}",
            f"DELETE FROM {second} WHERE id = {d}",
            "COMMIT",
        )
        run.catch_up()
        assert sorted(shards.target.query(f"SELECT * FROM {shards.merged}")) == sorted(shards.expected())


@pytest.mark.parametrize("shards", TABLES, indirect=True)
def test_two_rows_that_stay_stop_the_task(shards: Shards, spark: SparkSession) -> None:
    """Neither goes for the other: nothing of the batch is applied."""
    with TaskRun(shards.files(), spark) as run:
        run.reach("sync")
        run.catch_up()
        a = shards.id("s1", FIRST, 1)
        before = [f"INSERT INTO {shards.at(FIRST)} VALUES ({a}, 'first')"]
        shards.sources["s1"].run("BEGIN", *before, f"INSERT INTO {shards.at(SECOND)} VALUES ({a}, 'second')", "COMMIT")
        with pytest.raises(UnshardError) as caught:
            run.catch_up()
        assert caught.value.code == "SYNC-003"
        run.crew.errors.clear()
    assert not shards.target.query(f"SELECT * FROM {shards.merged} WHERE id = {a}")


@pytest.mark.parametrize("shards", [TEXT.format("utf8mb4_general_ci"), TEXT.format("utf8mb4_bin")], indirect=True)
@pytest.mark.parametrize("compact", [True, False])
def test_rows_that_move_to_a_key_of_another_text(compact: bool, shards: Shards, spark: SparkSession) -> None:
    """In safe mode, with the INSERT first: case, accents or trailing blanks differ; a binary collation has two rows."""
    shards.syncer = {"safe-mode": True, "compact": compact}
    first, second = shards.at(FIRST), shards.at(SECOND)
    with TaskRun(shards.files(), spark) as run:
        shards.sources["s1"].run(
            *(f"INSERT INTO {first} VALUES ('{id}', 'old')" for id in ("abc", "gives", "b", "\u00e4", "up", "stays"))
        )
        run.reach("sync")
        run.catch_up()
        shards.sources["s1"].run(
            "BEGIN",
            f"INSERT INTO {second} VALUES ('ABC', 'moved')",
            f"DELETE FROM {first} WHERE id = 'abc'",
            f"INSERT INTO {second} VALUES ('Gives', 'moved')",
            f"UPDATE {first} SET id = 'given' WHERE id = 'gives'",
            f"INSERT INTO {second} VALUES ('b ', 'moved')",
            f"DELETE FROM {first} WHERE id = 'b'",
            f"INSERT INTO {second} VALUES ('A', 'moved')",
            f"DELETE FROM {first} WHERE id = '\u00e4'",
            f"INSERT INTO {second} VALUES ('UP', 'moved')",
            f"UPDATE {first} SET v = 'goes' WHERE id = 'up'",
            f"DELETE FROM {first} WHERE id = 'up'",
            f"UPDATE {first} SET id = 'STAYS' WHERE id = 'stays'",
            "COMMIT",
        )
        run.catch_up()
        assert sorted(shards.target.query(f"SELECT * FROM {shards.merged}")) == sorted(shards.expected())
