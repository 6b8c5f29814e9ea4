"""gh-ost and pt-online-schema-change at work before and while the source is copied, with a snapshot and without."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from support.operated_tasks import ctl, go_on, stopped_run
from support.shard_runs import Shards
from support.task_runs import TaskFiles, TaskRun
from support.waiting import wait_until
from unshard.errors import DdlError, ShardError, SyncError
from unshard.model.table import TableName
from unshard.testing.compare import assert_equal
from unshard.testing.mariadb_server import MariadbServer

pytestmark = [pytest.mark.server, pytest.mark.spark]

GH_OST = """
CREATE TABLE `{s}`.`_{t}_ghc` (id bigint auto_increment, hint varchar(64), value varchar(99), PRIMARY KEY (id))
CREATE TABLE `{s}`.`_{t}_gho` LIKE `{s}`.`{t}`
ALTER TABLE `{s}`.`_{t}_gho` ADD COLUMN added VARCHAR(10)
INSERT IGNORE INTO `{s}`.`_{t}_gho` (id, v) SELECT id, v FROM `{s}`.`{t}`
--
REPLACE INTO `{s}`.`_{t}_gho` (id, v) SELECT id, v FROM `{s}`.`{t}`
RENAME TABLE `{s}`.`{t}` TO `{s}`.`_{t}_del`, `{s}`.`_{t}_gho` TO `{s}`.`{t}`
DROP TABLE IF EXISTS `{s}`.`_{t}_ghc`
DROP TABLE IF EXISTS `{s}`.`_{t}_del`
"""
PT_OSC = """
CREATE TABLE `{s}`.`_{t}_new` LIKE `{s}`.`{t}`
ALTER TABLE `{s}`.`_{t}_new` ADD COLUMN added VARCHAR(10)
INSERT LOW_PRIORITY IGNORE INTO `{s}`.`_{t}_new` (id, v) SELECT id, v FROM `{s}`.`{t}`
--
REPLACE INTO `{s}`.`_{t}_new` (id, v) SELECT id, v FROM `{s}`.`{t}`
RENAME TABLE `{s}`.`{t}` TO `{s}`.`_{t}_old`, `{s}`.`_{t}_new` TO `{s}`.`{t}`
DROP TABLE IF EXISTS `{s}`.`_{t}_old`
"""


def told(script: str, schema: str, table: str = "t") -> tuple[list[str], list[str]]:
    """What the tool runs before its cut-over, and the cut-over with what is behind it."""
    before, behind = script.strip().format(s=schema, t=table).split("\n--\n")
    return before.splitlines(), behind.splitlines()


Begin = Callable[..., TaskFiles]


@pytest.fixture
def begin(source_server: MariadbServer, target_server: MariadbServer, schema: str, tmp_path: Path) -> Begin:
    def make(consistency: str = "auto") -> TaskFiles:
        source_server.run(f"CREATE DATABASE {schema}")
        for table in ("a", "t"):
            source_server.run(
                f"CREATE TABLE {schema}.{table} (id INT PRIMARY KEY, v INT)",
                f"INSERT INTO {schema}.{table} VALUES (1, 10), (2, 20)",
            )
        mydumpers = {"own": {"extra-args": f"--consistency {consistency}"}}
        args = (tmp_path, schema, {"s1": source_server}, target_server, (schema,), {"mydumpers": mydumpers})
        return TaskFiles(*args, instance={"mydumper-config-name": "own"}).write()

    return make


@contextmanager
def held_at(
    table: str, files: TaskFiles, spark: SparkSession, *, snapshot: bool = True, fails: bool = False
) -> Iterator[tuple[TaskRun, Any]]:
    """A run whose dump waits for that table, with snapshots the other one is copied; the connection that holds it.

    `fails`: the run fails within the context, and the end of the context does not raise that again.
    """
    waiting = (
        "SELECT 1 FROM information_schema.PROCESSLIST WHERE STATE LIKE 'Waiting%metadata%' AND INFO LIKE 'SELECT%'"
    )
    locked = files.sources["s1"].connection()
    locked.query(f"LOCK TABLES {table} WRITE")
    try:
        made = TaskRun(files, spark)
        with made.failing() if fails else made as run:
            (subtask,) = run.crew.subtasks

            def there() -> bool:
                if run.crew.errors:
                    raise run.crew.errors[0]
                progress = subtask.status().progress
                if subtask.unit != "dump" or progress is None:
                    return False
                return progress.tables_done == 1 if snapshot else bool(files.sources["s1"].query(waiting))

            wait_until(there, "the others are copied")
            yield run, locked
    finally:
        locked.close()


def cuts_over(server: MariadbServer, behind: list[str], locked: Any) -> None:
    """As gh-ost does it: the RENAME waits for the lock, before all who want to read."""
    thread = threading.Thread(target=server.run, args=behind)
    thread.start()
    sql = "SELECT 1 FROM information_schema.PROCESSLIST WHERE INFO LIKE 'RENAME%' AND STATE LIKE 'Waiting%metadata%'"
    wait_until(lambda: bool(server.query(sql)), "the RENAME waits")
    locked.query("UNLOCK TABLES")
    thread.join()


@pytest.mark.parametrize("consistency", ["auto", "none"])
@pytest.mark.parametrize("script", [GH_OST, PT_OSC], ids=["gh-ost", "pt-osc"])
def test_it_begins_while_other_tables_are_copied(
    script: str, consistency: str, begin: Begin, spark: SparkSession, source_server: MariadbServer, schema: str
) -> None:
    files, name = begin(consistency), TableName(schema, "a")
    before, behind = told(script, schema, "a")
    with held_at(f"{schema}.t", files, spark, snapshot=consistency == "auto") as (run, locked):
        source_server.run(*before, f"INSERT INTO {name} VALUES (3, 30)")
        locked.query("UNLOCK TABLES")
        run.catch_up()
        source_server.run(f"INSERT INTO {name} VALUES (4, 40)", *behind, f"INSERT INTO {name} VALUES (5, 50, 'new')")
        run.catch_up()
    assert_equal([(source_server, name)], (files.target, name))


def test_it_ends_while_other_tables_are_copied(
    begin: Begin, spark: SparkSession, source_server: MariadbServer, schema: str
) -> None:
    files, name = begin(), TableName(schema, "a")
    before, behind = told(GH_OST, schema, "a")
    with held_at(f"{schema}.t", files, spark) as (run, locked):
        source_server.run(*before, *behind, f"INSERT INTO {name} VALUES (5, 50, 'new')")
        locked.query("UNLOCK TABLES")
        run.catch_up()
    assert_equal([(source_server, name)], (files.target, name))


@pytest.mark.scenarios
def test_without_a_snapshot_it_must_not_end_while_it_is_copied(
    begin: Begin, spark: SparkSession, source_server: MariadbServer, schema: str
) -> None:
    files = begin("none")
    before, behind = told(GH_OST, schema, "a")
    with held_at(f"{schema}.t", files, spark, snapshot=False, fails=True) as (run, locked):
        source_server.run(*before, *behind)
        locked.query("UNLOCK TABLES")
        with pytest.raises(SyncError, match="SYNC-047"):
            run.catch_up()


@pytest.mark.parametrize("begun", ["before the log", "behind its begin"])
@pytest.mark.scenarios
def test_it_ends_before_its_table_is_copied(
    begun: str, begin: Begin, spark: SparkSession, source_server: MariadbServer, schema: str
) -> None:
    """The copy has the new structure, and what the log tells of the tool is done with."""
    files, name = begin(), TableName(schema, "t")
    before, behind = told(GH_OST.replace("LIKE `{s}`.`{t}`", "(id INT PRIMARY KEY, v INT)"), schema)
    if begun == "before the log":
        source_server.run(*before)
    with held_at(f"{schema}.t", files, spark) as (run, locked):
        if begun != "before the log":
            source_server.run(*before[:-1])
        cuts_over(source_server, behind[1:], locked)
        source_server.run(f"INSERT INTO {name} VALUES (5, 50, 'new')")
        run.catch_up()
    assert_equal([(source_server, name)], (files.target, name))
    assert files.target.query(f"SELECT * FROM `{files.meta}`.`{files.name}_onlineddl`") == []


@pytest.mark.scenarios
def test_one_that_began_before_the_task_is_told_by_replace(
    begin: Begin, spark: SparkSession, source_server: MariadbServer, schema: str
) -> None:
    files, name = begin(), TableName(schema, "t")
    before, behind = told(GH_OST, schema)
    source_server.run(*before)
    go_on(files, spark)
    source_server.run(*behind, f"INSERT INTO {name} VALUES (5, 50, 'new')")
    error = stopped_run(files, spark)
    assert isinstance(error, DdlError)
    assert error.code == "DDL-025"
    assert "binlog replace" in str(error)
    ctl("binlog", "replace", str(files.task_path), "-s", "s1", f"ALTER TABLE {name} ADD COLUMN added VARCHAR(10)")
    go_on(files, spark)
    assert_equal([(source_server, name)], (files.target, name))


@pytest.fixture
def shards(source_server: MariadbServer, target_server: MariadbServer, schema: str, tmp_path: Path) -> Shards:
    return Shards(schema, {"s1": source_server}, target_server, tmp_path)


def of_shard(shards: Shards, table: int) -> tuple[list[str], list[str]]:
    return told(GH_OST.replace("LIKE `{s}`.`{t}`", f"({shards.row})"), f"{shards.name}_s", f"t_{table}")


@pytest.mark.scenarios
def test_a_shard_that_is_copied_behind_its_cut_over(
    shards: Shards, source_server: MariadbServer, spark: SparkSession
) -> None:
    (before, behind), first = of_shard(shards, 1), of_shard(shards, 0)
    with held_at(shards.at(1), shards.files(), spark) as (run, locked):
        source_server.run(*before[:-1])
        cuts_over(source_server, behind[1:], locked)
        shards.insert("s1", 1, 5, added="'new'")
        run.catch_up()
        source_server.run(*first[0], *first[1])
        shards.insert("s1", 0, 6, added="'new'")
        shards.settle(run)


@pytest.mark.scenarios
def test_a_shard_whose_ghost_is_older_than_the_log(
    shards: Shards, source_server: MariadbServer, spark: SparkSession
) -> None:
    """Nobody can tell what was run on it: it stops before anything is loaded."""
    before, behind = of_shard(shards, 1)
    source_server.run(*before)
    with held_at(shards.at(1), shards.files(), spark, fails=True) as (run, locked):
        cuts_over(source_server, behind[1:], locked)
        with pytest.raises(ShardError, match=r"SHARD-029[\s\S]*gh-ost"):
            run.catch_up()
    assert shards.target.query(f"SHOW DATABASES LIKE '{shards.name}_all'") == []
