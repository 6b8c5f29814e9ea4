"""What a human gives for a statement of a shard: it stands in its place, and waits as the statement would have."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.operated_tasks import ctl
from support.shard_runs import ROW, Shards
from support.task_runs import TaskRun, newest
from support.waiting import wait_until
from unshard.errors import UnshardError
from unshard.target.meta import MetaTables
from unshard.target.sharding import load_keepers
from unshard.testing.mariadb_server import MariadbServer

pytestmark = [pytest.mark.server, pytest.mark.spark]


@pytest.fixture
def shards(source_server: MariadbServer, target_server: MariadbServer, schema: str, tmp_path: Path) -> Shards:
    return Shards(schema, {"s1": source_server}, target_server, tmp_path)


def refused(shards: Shards, spark: SparkSession) -> str:
    """The code of the error that a run stops with."""
    found = TaskRun(shards.files(), spark).start().error()
    assert isinstance(found, UnshardError)
    return found.code


def test_another_text_is_brought_in_line(shards: Shards, spark: SparkSession) -> None:
    task = str(shards.files().task_path)
    with TaskRun(shards.files(), spark) as run:
        run.catch_up()
        shards.alter("s1", 0, "ADD COLUMN c INT")
        shards.insert("s1", 0, 1, c="1")
        run.catch_up()
    shards.alter("s1", 1, "ADD COLUMN c INT NULL DEFAULT NULL")
    shards.insert("s1", 1, 1, c="1")
    assert refused(shards, spark) == "SHARD-001"
    ctl("binlog", "replace", task, "-s", "s1", f"ALTER TABLE {shards.at(1)} ADD COLUMN d INT")
    assert refused(shards, spark) == "SHARD-001", "nothing of it was run"
    assert columns(shards) == ["id", "v"]
    ctl("binlog", "replace", task, "-s", "s1", f"ALTER TABLE {shards.at(1)} ADD COLUMN c INT")
    with TaskRun(shards.files(), spark) as run:
        shards.settle(run)
    assert columns(shards) == ["id", "v", "c"]


def test_numbers_are_filled_in_on_a_humans_word(shards: Shards, spark: SparkSession) -> None:
    """Each shard counts its own rows. IGNORE would take rows that double a key in the merged table alone."""
    task = str(shards.files().task_path)
    change = "ADD COLUMN n INT NOT NULL AUTO_INCREMENT, ADD KEY (n)"
    with TaskRun(shards.files(), spark) as run:
        run.catch_up()
    for table in (0, 1):
        shards.alter("s1", table, change)
        shards.insert("s1", table, 1, n="7")
        shards.run("s1", f"ALTER IGNORE TABLE {shards.at(table)} ADD UNIQUE KEY (v)")
    assert refused(shards, spark) == "SHARD-036"
    assert columns(shards) == ["id", "v"]
    ctl("binlog", "replace", task, "-s", "s1", f"ALTER TABLE {shards.at(0)} {change}")
    assert refused(shards, spark) == "DDL-008"
    assert [row[:2] for row in shards.merged_rows()] == [row[:2] for row in shards.expected()]
    assert [row for row in shards.merged_rows() if row[1] == "row 1"] == shards.expected()[1::2]


def test_a_single_shard_has_its_own_time(
    source_server: MariadbServer, target_server: MariadbServer, schema: str, tmp_path: Path, spark: SparkSession
) -> None:
    shards = Shards(schema, {"s1": source_server}, target_server, tmp_path, tables=1)
    with TaskRun(shards.files(), spark) as run:
        run.catch_up()
        shards.alter("s1", 0, "ADD COLUMN made DATETIME(6) NOT NULL DEFAULT NOW(6)")
        shards.alter("s1", 0, "ADD COLUMN u CHAR(36) NOT NULL DEFAULT UUID()")
        shards.insert("s1", 0, 1)
        shards.settle(run)


def test_a_statement_of_a_held_table_is_left_out(shards: Shards, spark: SparkSession) -> None:
    """Rows of before it are read again later with the structure that they were written to.

    So is one of another schema, which can't be read. What moves the files of a table there is passed by itself.
    """
    files = shards.files()
    with TaskRun(files, spark) as run:
        run.catch_up()
        shards.alter("s1", 0, "ADD COLUMN c INT")
        shards.insert("s1", 0, 1, c="10")
        shards.run("s1", f"CREATE DATABASE {shards.name}_out")
        shards.run("s1", f"CREATE TABLE {shards.name}_out.t (id INT PRIMARY KEY)")
        run.catch_up()
    shards.run("s1", f"ALTER TABLE {shards.name}_out.t DISCARD TABLESPACE")
    unread = "SET SESSION binlog_format = 'STATEMENT'", f"CREATE TABLE {shards.name}_out.u SELECT 1 AS id"
    for change in ((f"ALTER TABLE {shards.at(0)} MODIFY c INT FIRST",), unread):
        place = newest(shards.sources["s1"])
        shards.sources["s1"].run(*change)
        ctl("binlog", "skip", str(files.task_path), "-s", "s1", "--binlog-pos", f"{place.file}:{place.offset}")
    with TaskRun(files, spark) as run:
        shards.insert("s1", 0, 2, c="20")
        run.catch_up()
    with TaskRun(files, spark) as run:
        shards.insert("s1", 1, 1)
        shards.alter("s1", 1, "ADD COLUMN c INT")
        shards.insert("s1", 1, 2, c="30")
        shards.wait_in_step(run)
    rows = [row for table in (0, 1) for row in shards.sources["s1"].query(f"SELECT id, v, c FROM {shards.at(table)}")]
    assert shards.merged_rows() == sorted(rows)
    assert columns(shards) == ["id", "v", "c"]


def test_a_transaction_of_held_and_free_tables_is_left_out_whole(shards: Shards, spark: SparkSession) -> None:
    """Each process meets a part of it: the free table's rows first, those of the held one behind its second DDL."""
    files = shards.files()
    task, server = str(files.task_path), shards.sources["s1"]
    with TaskRun(files, spark) as run:
        run.catch_up()
        for column in "cd":
            shards.alter("s1", 0, f"ADD COLUMN {column} INT")
        run.catch_up()
    place = newest(server)
    rows = (f"INSERT INTO {shards.at(table)} (id, v) VALUES ({shards.id('s1', table, 7)}, 'never')" for table in (0, 1))
    server.run("BEGIN", *rows, "COMMIT")
    ctl("binlog", "skip", task, "-s", "s1", "--binlog-pos", f"{place.file}:{place.offset}")

    def is_run(column: str) -> bool:
        return column in columns(shards)

    for column in ("", "c", "d"):
        with TaskRun(files, spark) as run:
            run.catch_up()
            assert states(task) == ["pending"]
            if column:
                shards.alter("s1", 1, f"ADD COLUMN {column} INT")
                wait_until(partial(is_run, column), "the DDL is run")
                run.catch_up()
    with TaskRun(files, spark) as run:
        shards.wait_in_step(run)
    assert states(task) == ["applied"]
    assert shards.merged_rows() == [row for row in shards.expected() if row[1] != "never"]


def states(task: str) -> list[str]:
    (source,) = ctl("binlog", "list", task, "-s", "s1", "--all")["sources"]
    return [one["state"] for one in json.loads(source["msg"])]


def test_a_create_that_is_left_out_makes_nobody_wait(
    shards: Shards, second_source: MariadbServer, spark: SparkSession
) -> None:
    """The first table of s2 is refused behind its declaration: left out, it is given back, in later processes too."""
    second_source.run(f"CREATE DATABASE {shards.name}_s", f"CREATE TABLE {shards.name}_s.other (id INT PRIMARY KEY)")
    shards.sources = {**shards.sources, "s2": second_source}
    files = shards.files()
    with TaskRun(files, spark) as run:
        run.catch_up()
    place = newest(second_source)
    shards.run("s2", f"CREATE TABLE {shards.at(5)} ({ROW}, more INT)")
    assert refused(shards, spark) == "SHARD-030"
    assert owners(shards) == {"s1", "s2"}
    ctl("binlog", "skip", str(files.task_path), "-s", "s2", "--binlog-pos", f"{place.file}:{place.offset}")
    for change in ("ADD COLUMN c INT", "ADD COLUMN d INT"):
        with TaskRun(files, spark) as run:
            run.catch_up()
            for table in (0, 1):
                shards.alter("s1", table, change)
            shards.wait_in_step(run)
        assert owners(shards) == {"s1"}
    assert columns(shards) == ["id", "v", "c", "d"]
    shards.run("s2", f"DROP TABLE {shards.at(5)}")
    shards.run("s2", f"CREATE TABLE {shards.at(5)} ({ROW}, c INT, d INT)")
    with TaskRun(files, spark) as run:
        shards.insert("s2", 5, 1, c="1", d="2")
        shards.wait_in_step(run)
    assert shards.merged_rows() == shards.expected()
    assert owners(shards) == {"s1", "s2"}


def owners(shards: Shards) -> set[str]:
    """The sources that a DDL waits for."""
    files = shards.files()
    connection = shards.target.connection()
    (keeper,) = (one for one in load_keepers(connection, MetaTables(files.meta, files.name)) if one.target.table == "t")
    connection.close()
    return set(keeper.members)


def columns(shards: Shards) -> list[str]:
    return [
        name
        for (name,) in shards.target.query(
            "SELECT COLUMN_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = %s ORDER BY ORDINAL_POSITION",
            (f"{shards.name}_all",),
        )
    ]


@pytest.mark.scenarios
def test_a_statement_that_a_filter_leaves_out_on_one_shard(shards: Shards, spark: SparkSession) -> None:
    """The status tells that the shard never meets it, and what gives it to the shard all the same."""
    keep = {"schema-pattern": f"{shards.name}_s", "table-pattern": "t_1", "events": ["drop column"], "action": "Ignore"}
    shards.keys = {**shards.keys, "filters": {"keep": keep}}
    shards.instance = {**shards.instance, "filter-rules": ["keep"]}
    for table in (0, 1):
        shards.alter("s1", table, "ADD COLUMN n INT NOT NULL DEFAULT 3")
    task = str(shards.files().task_path)
    with TaskRun(shards.files(), spark) as run:
        run.catch_up()
        for table in (0, 1):
            shards.alter("s1", table, "DROP COLUMN n")
            shards.insert("s1", table, 1)
        run.catch_up()

        def shown() -> str:
            groups = [one for reading in run.crew.readings() if reading.sync for one in reading.sync.groups]
            return " ".join(f"{one.waits_for} {one.help}" for one in groups)

        told = f"a statement was left out of {shards.name}_s.t_1 ("
        wait_until(lambda: told in shown() and "ENGINE=InnoDB" in shown(), told, told=shown)
    shards.run("s1", f"ALTER TABLE {shards.at(1)} ENGINE=InnoDB")
    shards.insert("s1", 1, 2)
    assert refused(shards, spark) == "SHARD-001"
    ctl("binlog", "replace", task, "-s", "s1", f"ALTER TABLE {shards.at(1)} DROP COLUMN n")
    with TaskRun(shards.files(), spark) as run:
        shards.settle(run)
    assert columns(shards) == ["id", "v"]
