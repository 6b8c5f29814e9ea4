"""Incremental tasks whose target's tables read the rows of the log in another way than the source's do.

The binlog of these sources has no names, signs, character sets and members of columns (`binlog_row_metadata=NO_LOG`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.operated_tasks import ctl, stopped_run
from support.task_runs import TaskFiles, TaskRun
from unshard.errors import UnshardError
from unshard.testing.throwaway_server import ThrowawayServer

pytestmark = [pytest.mark.server, pytest.mark.spark]


@dataclass
class Pair:
    """A table at both ends, and a task that begins where the source has made it."""

    files: TaskFiles
    source: ThrowawayServer
    target: ThrowawayServer
    name: str

    def begin(self, here: str, there: str) -> None:
        for server, columns in ((self.source, here), (self.target, there)):
            server.run(
                f"CREATE DATABASE {self.files.name}", f"CREATE TABLE {self.name} (id INT PRIMARY KEY, {columns})"
            )
        ((file, offset, *_),) = self.source.query("SHOW MASTER STATUS")
        self.files = replace(self.files, instance={"meta": {"binlog-name": file, "binlog-pos": offset}}).write()

    def from_now(self) -> None:
        self.files = replace(self.files, instance={}).write()

    def change(self, *statements: str) -> None:
        self.source.run(f"USE {self.files.name}", *statements)

    def rows(self, server: ThrowawayServer, columns: str = "*") -> list[tuple[object, ...]]:
        return server.query(f"SELECT {columns} FROM {self.name} ORDER BY id")

    def follow(self, spark: SparkSession) -> None:
        with TaskRun(self.files, spark) as run:
            run.catch_up()


@pytest.fixture
def pair(source_server: ThrowawayServer, target_server: ThrowawayServer, schema: str, tmp_path: Path) -> Pair:
    keys = {"task-mode": "incremental"}
    files = TaskFiles(tmp_path, schema, {"s1": source_server}, target_server, (schema,), keys=keys)
    return Pair(files, source_server, target_server, f"{schema}.t")


UNLIKE = {
    "members": ("e ENUM('active', 'pending')", "e ENUM('active', 'deleted', 'pending')", "'pending'", "'active'"),
    "a set": ("e SET('a', 'b', 'c')", "e SET('b', 'a', 'c')", "'a,c'", "'b'"),
    "charset": (
        "e VARCHAR(20) CHARACTER SET latin1",
        "e VARCHAR(20) CHARACTER SET cp850",
        "_latin1 0x61E962",
        "'plain'",
    ),
    "bytes": ("e VARCHAR(20) CHARACTER SET latin1", "e VARCHAR(20) CHARACTER SET utf8mb4", "_latin1 0x61C462", "'x'"),
    "length": ("e VARCHAR(20)", "e VARCHAR(50)", "'x'", "'y'"),
}


@pytest.mark.parametrize("begins", ["by meta", pytest.param("now", marks=pytest.mark.scenarios)])
@pytest.mark.parametrize("case", UNLIKE)
def test_rows_are_read_by_the_sources_columns(case: str, begins: str, pair: Pair, spark: SparkSession) -> None:
    here, there, one, other = UNLIKE[case]
    pair.begin(here, there)
    first = f"INSERT INTO t VALUES (1, {one}), (2, {other})"
    if begins == "now":
        pair.from_now()
    else:
        pair.change(first)
    with TaskRun(pair.files, spark) as run:
        run.catch_up()
        if begins == "now":
            pair.change(first)
        run.catch_up()
    pair.change(f"UPDATE t SET e = {other} WHERE id = 1", f"INSERT INTO t VALUES (3, {one})")
    pair.follow(spark)
    text = "id, CONVERT(e USING utf8mb4)"
    assert pair.rows(pair.target, text) == pair.rows(pair.source, text)


@pytest.mark.scenarios
def test_columns_in_another_order_and_of_the_target_alone(pair: Pair, spark: SparkSession) -> None:
    pair.begin("a INT, b INT", "b INT, a INT, c INT DEFAULT 5")
    pair.change("INSERT INTO t VALUES (1, 10, 20)")
    pair.follow(spark)
    assert pair.rows(pair.target, "id, a, b, c") == [(1, 10, 20, 5)]


@pytest.mark.parametrize(("here", "there", "value"), [("INT", "INT UNSIGNED", -1), ("INT UNSIGNED", "INT", 2**32 - 1)])
def test_a_number_without_room_is_refused(here: str, there: str, value: int, pair: Pair, spark: SparkSession) -> None:
    pair.begin(f"n {here}", f"n {there}")
    pair.change(f"INSERT INTO t VALUES (1, {value})")
    error = stopped_run(pair.files, spark)
    assert isinstance(error, UnshardError)
    assert "ut of range" in str(error)
    assert pair.rows(pair.target) == []


OLD, NEW = "e ENUM('a', 'b')", "e ENUM('x', 'a', 'b')"


@pytest.mark.scenarios
@pytest.mark.parametrize("of_then", ["--from-target", "FILE"])
def test_a_table_that_has_been_altered_since(of_then: str, pair: Pair, spark: SparkSession) -> None:
    """The target may have the table as it was then, or have another one by intent: a human knows."""
    pair.begin(OLD, OLD if of_then == "--from-target" else "e ENUM('b', 'a', 'x')")
    pair.change("INSERT INTO t VALUES (1, 'b')", f"ALTER TABLE t MODIFY {NEW}", "INSERT INTO t VALUES (2, 'x')")
    error = stopped_run(pair.files, spark)
    assert isinstance(error, UnshardError)
    assert error.code == "SYNC-082"
    assert "e enum('x','a','b') or enum(" in str(error)
    file = pair.files.folder / "then.sql"
    file.write_text(f"CREATE TABLE t (id INT PRIMARY KEY, {OLD})")
    given = [str(file)] if of_then == "FILE" else [of_then]
    task, source = str(pair.files.task_path), str(pair.files.source_paths[0])
    ctl("binlog-schema", "update", task, pair.files.name, "t", *given, "-s", source)
    pair.follow(spark)
    assert pair.rows(pair.target) == [(1, "b"), (2, "x")]


@pytest.mark.scenarios
def test_a_table_that_is_followed_later(pair: Pair, spark: SparkSession) -> None:
    """An earlier list left it out: where it was empty then, its structure is all that is missing."""
    for server, columns in ((pair.source, OLD), (pair.target, NEW)):
        server.run(
            f"CREATE DATABASE {pair.files.name}_2",
            f"CREATE TABLE {pair.files.name}_2.t (id INT PRIMARY KEY, {columns})",
        )
    pair.begin("v INT", "v INT")
    pair.follow(spark)
    both = replace(pair.files, schemas=(pair.files.name, f"{pair.files.name}_2")).write()
    pair.source.run(f"INSERT INTO {pair.files.name}_2.t VALUES (1, 'b')")
    error = stopped_run(both, spark)
    assert isinstance(error, UnshardError)
    assert error.code == "SYNC-084"
    task, source = str(both.task_path), str(both.source_paths[0])
    ctl("binlog-schema", "update", task, f"{pair.files.name}_2", "t", "--from-source", "-s", source)
    with TaskRun(both, spark) as run:
        run.catch_up()
    assert pair.target.query(f"SELECT * FROM {pair.files.name}_2.t") == [(1, "b")]


@pytest.mark.scenarios
def test_a_table_that_has_been_made_anew_since(pair: Pair, spark: SparkSession) -> None:
    """Nothing is read of the one that is gone."""
    pair.begin(OLD, OLD)
    pair.change("DROP TABLE t", f"CREATE TABLE t (id INT PRIMARY KEY, {NEW})", "INSERT INTO t VALUES (2, 'x')")
    pair.follow(spark)
    assert pair.rows(pair.target) == [(2, "x")]


@pytest.mark.scenarios
def test_statements_since_the_start_that_add_and_drop_columns(pair: Pair, spark: SparkSession) -> None:
    """The target's table is as the source's was then."""
    pair.begin("a INT, b INT", "a INT, b INT")
    pair.change(
        "INSERT INTO t VALUES (1, 10, 20)",
        "ALTER TABLE t ADD COLUMN c VARCHAR(9) FIRST, DROP COLUMN a",
        "INSERT INTO t VALUES ('c', 2, 21)",
    )
    pair.follow(spark)
    assert pair.rows(pair.target) == pair.rows(pair.source)
