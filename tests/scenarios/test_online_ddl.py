"""Tables altered by gh-ost and pt-online-schema-change, as their statements stand in the log, with restarts between."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from support.exactly_once import assert_exactly_once
from support.operated_tasks import ctl
from support.task_runs import Command, TaskFiles, TaskRun
from unshard.errors import DdlError
from unshard.model.table import TableName
from unshard.testing.compare import assert_equal
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.throwaway_server import ThrowawayServer

pytestmark = [pytest.mark.server, pytest.mark.spark]

GH_OST_BEFORE = """
CREATE TABLE `{s}`.`_t_ghc` (id bigint auto_increment, hint varchar(64), value varchar(99), PRIMARY KEY (id))
INSERT INTO `{s}`.`_t_ghc` (id, hint, value) VALUES (2, 'state', 'GhostTableMigrated')
CREATE TABLE `{s}`.`_t_gho` LIKE `{s}`.`t`
ALTER TABLE `{s}`.`_t_gho` ADD COLUMN added VARCHAR(10) NOT NULL DEFAULT 'new', MODIFY v BIGINT
INSERT IGNORE INTO `{s}`.`_t_gho` (id, v) SELECT id, v FROM `{s}`.`t`
"""
GH_OST_BEHIND = """
REPLACE INTO `{s}`.`_t_gho` (id, v) SELECT id, v FROM `{s}`.`t`
CREATE TABLE `{s}`.`_t_del` (id int auto_increment primary key) comment='ghost-cut-over-sentry'
DROP TABLE `{s}`.`_t_del`
RENAME TABLE `{s}`.`t` TO `{s}`.`_t_del`, `{s}`.`_t_gho` TO `{s}`.`t`
DROP TABLE IF EXISTS `{s}`.`_t_ghc`
DROP TABLE IF EXISTS `{s}`.`_t_del`
"""
PT_BEFORE = """
CREATE TABLE `{s}`.`_t_new` (`id` int(11) NOT NULL, `v` int(11) DEFAULT NULL, PRIMARY KEY (`id`))
ALTER TABLE `{s}`.`_t_new` ADD COLUMN added VARCHAR(10) NOT NULL DEFAULT 'new', MODIFY v BIGINT
CREATE TRIGGER `pt_del` AFTER DELETE ON `{s}`.`t` FOR EACH ROW DELETE IGNORE FROM `{s}`.`_t_new` WHERE `id` <=> OLD.`id`
INSERT LOW_PRIORITY IGNORE INTO `{s}`.`_t_new` (id, v) SELECT id, v FROM `{s}`.`t`
DELETE FROM `{s}`.`t` WHERE id = 2
"""
PT_BEHIND = """
REPLACE INTO `{s}`.`_t_new` (id, v) SELECT id, v FROM `{s}`.`t`
ANALYZE TABLE `{s}`.`_t_new`
RENAME TABLE `{s}`.`t` TO `{s}`.`_t_old`, `{s}`.`_t_new` TO `{s}`.`t`
DROP TABLE IF EXISTS `_t_old`
DROP TRIGGER IF EXISTS `{s}`.`pt_del`
"""

Begin = Callable[..., TaskFiles]


@pytest.fixture
def begin(source_server: MariadbServer, target_server: MariadbServer, schema: str, tmp_path: Path) -> Begin:
    def make(**keys: Any) -> TaskFiles:
        source_server.run(
            f"CREATE DATABASE {schema}",
            f"CREATE TABLE {schema}.t (id INT NOT NULL PRIMARY KEY, v INT)",
            f"INSERT INTO {schema}.t VALUES (1, 10), (2, 20)",
        )
        return TaskFiles(tmp_path, schema, {"s1": source_server}, target_server, (schema,), keys=keys).write()

    return make


def told(script: str, schema: str) -> list[str]:
    return script.strip().format(s=schema).splitlines()


def tables_of(server: ThrowawayServer, schema: str) -> list[Any]:
    return server.query("SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s", (schema,))


@pytest.mark.parametrize(
    ("before", "behind"), [(GH_OST_BEFORE, GH_OST_BEHIND), (PT_BEFORE, PT_BEHIND)], ids=["gh-ost", "pt-osc"]
)
def test_the_table_is_altered_at_the_cut_over_after_a_restart(
    before: str, behind: str, begin: Begin, spark: SparkSession, source_server: MariadbServer, schema: str
) -> None:
    files, name = begin(), TableName(schema, "t")
    records = f"SELECT ghost_table, ddls FROM `{files.meta}`.`{files.name}_onlineddl`"
    with TaskRun(files, spark) as run:
        run.reach("sync")
        source_server.run(*told(before, schema), database=schema)
        source_server.run(f"UPDATE {name} SET v = 11 WHERE id = 1", f"INSERT INTO {name} VALUES (3, 30)")
        run.catch_up()
        assert tables_of(files.target, schema) == [("t",)]
        ((_, kept),) = files.target.query(records)
        assert [sql.split(" ADD ")[1][:12] for sql in json.loads(kept)["ddls"]] == ["COLUMN added"]
    with TaskRun(files, spark) as run:
        source_server.run(f"INSERT INTO {name} VALUES (4, 40)", *told(behind, schema), database=schema)
        source_server.run(
            f"INSERT INTO {name} VALUES (5, 5000000000, 'five')", f"UPDATE {name} SET added = 'x' WHERE id = 1"
        )
        run.catch_up()
    assert_equal([(source_server, name)], (files.target, name))
    assert "bigint" in str(files.target.query(f"SHOW CREATE TABLE {name}"))
    assert tables_of(files.target, schema) == [("t",)]
    assert files.target.query(records) == []
    rules = f"SELECT DISTINCT rule FROM `{files.meta}`.`{files.name}_apply_left_out`"
    assert files.target.query(rules) == [("online-ddl",)]


@pytest.mark.faults
def test_killed_around_every_durable_step_of_the_cut_over(
    begin: Begin, source_server: MariadbServer, schema: str
) -> None:
    files, name = begin(), TableName(schema, "t")
    with Command(files) as command:
        command.shows("sync")
        command.catch_up()
        command.interrupt()
        command.wait()
    source_server.run(*told(GH_OST_BEFORE, schema), database=schema)
    source_server.run(*told(GH_OST_BEHIND, schema), database=schema)
    source_server.run(f"INSERT INTO {name} VALUES (6, 60, 'six')")
    for place in ("sync-move-after", "ddl-execute-after", "sync-close-before"):
        with Command(files, crash_at=place) as command:
            command.dies(place)
    with Command(files) as command:
        command.catch_up()
        command.interrupt()
        assert command.wait() == 0
    assert_exactly_once(source_server, files.target, [name])
    assert files.target.query(f"SELECT * FROM `{files.meta}`.`{files.name}_onlineddl`") == []


def test_a_ghost_that_the_task_never_saw_begin_stops_it(
    begin: Begin, spark: SparkSession, source_server: MariadbServer, schema: str
) -> None:
    source = source_server
    files = begin()
    source.run(*told(GH_OST_BEFORE, schema), database=schema)
    run = TaskRun(files, spark).start()
    run.reach("sync")
    source.run(*told(GH_OST_BEHIND, schema), database=schema)
    error = run.error()
    assert isinstance(error, DdlError)
    assert error.code == "DDL-025"
    assert tables_of(files.target, schema) == [("t",)]


def test_a_table_that_is_dropped_before_its_copy_takes_its_name_stays_on_the_target(
    begin: Begin, spark: SparkSession, source_server: MariadbServer, schema: str
) -> None:
    """As pt-online-schema-change does it with `--alter-foreign-keys-method=drop_swap`."""
    source, files, name = source_server, begin(), TableName(schema, "t")
    run = TaskRun(files, spark).start()
    run.reach("sync")
    drop = ("SET SESSION foreign_key_checks = 0", "DROP TABLE IF EXISTS t", "RENAME TABLE _t_new TO t")
    source.run(*told(PT_BEFORE, schema), *drop, "INSERT INTO t VALUES (6, 60, 'six')", database=schema)
    error = run.error()
    assert isinstance(error, DdlError)
    assert error.code == "DDL-042"
    assert tables_of(files.target, schema) == [("t",)]
    ctl("binlog", "skip", str(files.task_path))
    with TaskRun(files, spark) as run:
        run.catch_up()
    assert_equal([(source, name)], (files.target, name))


def test_rules_of_ones_own_and_none_at_all(
    begin: Begin, spark: SparkSession, source_server: MariadbServer, schema: str
) -> None:
    rules = {"shadow-table-rules": ["(.+)__shadow"], "trash-table-rules": ["(.+)__gone"]}
    files, name = begin(**rules), TableName(schema, "t")
    with TaskRun(files, spark) as run:
        run.reach("sync")
        source_server.run(
            "CREATE TABLE t__shadow LIKE t",
            "ALTER TABLE t__shadow ADD a INT",
            "INSERT INTO t__shadow (id, v) SELECT id, v FROM t",
            "CREATE TABLE _u_new (id INT PRIMARY KEY)",
            "INSERT INTO _u_new VALUES (1)",
            "RENAME TABLE t TO t__gone, t__shadow TO t",
            "INSERT INTO t VALUES (7, 70, 700)",
            database=schema,
        )
        run.catch_up()
    assert_equal([(source_server, name)], (files.target, name))
    assert sorted(tables_of(files.target, schema)) == [("_u_new",), ("t",)]


def test_a_column_that_pt_drops_and_adds_keeps_its_values(
    begin: Begin, source_server: MariadbServer, target_server: MariadbServer, schema: str, spark: SparkSession
) -> None:
    """The tool copies each column that both tables have by its name."""
    change = "ADD COLUMN added VARCHAR(10) NOT NULL DEFAULT 'new', MODIFY v BIGINT"
    files = begin()
    with TaskRun(files, spark) as run:
        run.catch_up()
        before = PT_BEFORE.replace(change, "DROP COLUMN v, ADD COLUMN v BIGINT NOT NULL DEFAULT 7")
        source_server.run(f"USE {schema}", *told(before, schema), *told(PT_BEHIND, schema))
        run.catch_up()
    name = TableName(schema, "t")
    assert source_server.query(f"SELECT v FROM {name}") == [(10,)]
    assert_equal([(source_server, name)], (target_server, name))
