"""Sharding DDL in forms that only MySQL has, and folders of tests/scenarios/shard_ddl between MySQL servers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.operated_tasks import ctl, stopped_run
from support.scenario_folders import Scenario
from support.shard_runs import Shards
from support.task_runs import TaskFiles, TaskRun
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.mysql_server import MysqlServer

pytestmark = [pytest.mark.server, pytest.mark.spark]
FOLDERS = Path(__file__).parents[1] / "scenarios" / "shard_ddl"

FORMS = (
    "ADD COLUMN c INT NOT NULL DEFAULT 4, ADD COLUMN i INT NULL INVISIBLE, ALGORITHM=INSTANT",
    "ADD COLUMN e INT NOT NULL DEFAULT (c * 2), ADD INDEX by_c (c), ALGORITHM=COPY, LOCK=SHARED",
    "RENAME INDEX by_c TO by_count, ADD COLUMN g INT AS (c + 1) VIRTUAL, ADD CHECK (c < 1000)",
    "ALTER INDEX by_count INVISIBLE, ALTER COLUMN c SET DEFAULT 5, ADD UNIQUE INDEX both_of (id, (c + 0))",
    "ALTER COLUMN i SET VISIBLE, RENAME COLUMN e TO f, DROP INDEX by_count",
    "MODIFY c BIGINT NOT NULL DEFAULT 6 FIRST, DROP INDEX both_of, DROP COLUMN g, ALGORITHM=COPY, LOCK=SHARED",
)


def write(shards: Shards, table: int, number: int) -> None:
    shards.insert("s1", table, number)
    shards.update("s1", table, 0, f"v = 'change {number}'")


def lives_through(shards: Shards, spark: SparkSession, changes: Sequence[str], files: TaskFiles) -> None:
    """One shard has all of it before the other begins, in another run."""
    with TaskRun(files, spark) as run:
        run.reach("sync")
        run.catch_up()
        for number, change in enumerate(changes, 1):
            shards.alter("s1", 0, change)
            write(shards, 0, number)
        run.catch_up()
    with TaskRun(files, spark) as run:
        for number, change in enumerate(changes, 1):
            write(shards, 1, number)
            shards.alter("s1", 1, change)
        shards.settle(run)


@pytest.mark.parametrize("metadata", ["MINIMAL", "FULL"])
def test_forms_of_its_own(
    metadata: str,
    spark: SparkSession,
    mysql_source: MysqlServer,
    mysql_target: MysqlServer,
    schema: str,
    tmp_path: Path,
) -> None:
    """By GTID, with names of columns in the log and without."""
    mysql_source.run(f"SET GLOBAL binlog_row_metadata = {metadata}")
    try:
        shards = Shards(schema, {"s1": mysql_source}, mysql_target, tmp_path)
        files = replace(shards.files(), source={"enable-gtid": True}).write()
        lives_through(shards, spark, FORMS, files)
    finally:
        mysql_source.run("SET GLOBAL binlog_row_metadata = MINIMAL")


def test_primary_keys_that_the_server_makes(
    spark: SparkSession, mysql_source: MysqlServer, mysql_target: MysqlServer, schema: str, tmp_path: Path
) -> None:
    """Invisible, and counted from 1 in every shard: `partition id` tells them apart."""
    row = "id BIGINT NOT NULL, v VARCHAR(20) NOT NULL"
    mapping = {
        "schema-pattern": f"{schema}_s",
        "table-pattern": "t_*",
        "expression": "partition id",
        "source-column": "my_row_id",
        "target-column": "my_row_id",
        "arguments": ["1", "", "t", "_"],
    }
    mysql_source.run("SET GLOBAL sql_generate_invisible_primary_key = ON")
    try:
        shards = Shards(
            schema,
            {"s1": mysql_source},
            mysql_target,
            tmp_path,
            row=row,
            keys={"column-mappings": {"ids": mapping}},
            instance={"route-rules": ["fold"], "column-mapping-rules": ["ids"]},
        )
        changes = ("ADD COLUMN c INT NOT NULL DEFAULT 4", "ADD COLUMN d INT AFTER id, RENAME COLUMN c TO e")
        lives_through(shards, spark, changes, shards.files())
        ((keys,),) = mysql_target.query(f"SELECT COUNT(DISTINCT my_row_id) FROM {shards.merged}")
        assert keys == len(shards.expected())
    finally:
        mysql_source.run("SET GLOBAL sql_generate_invisible_primary_key = OFF")


def test_statements_that_make_and_drop_several_shards(
    spark: SparkSession, mysql_source: MysqlServer, mysql_target: MysqlServer, schema: str, tmp_path: Path
) -> None:
    """CREATE TABLE ... SELECT is one transaction of MySQL, and so is a DROP TABLE of several."""
    shards = Shards(schema, {"s1": mysql_source}, mysql_target, tmp_path, tables=4)
    with TaskRun(shards.files(), spark) as run:
        run.reach("sync")
        run.catch_up()
        shards.alter("s1", 0, "ADD COLUMN c INT")
        shards.insert("s1", 0, 1, c="1")
        make = (
            "CREATE TABLE {} (id BIGINT NOT NULL PRIMARY KEY, v VARCHAR(20) NOT NULL) SELECT id + 5000 AS id, v FROM {}"
        )
        shards.run("s1", make.format(shards.at(7), shards.at(1)))
        gone = [row for table in (2, 3) for row in mysql_source.query(f"SELECT id, v, NULL FROM {shards.at(table)}")]
        shards.run("s1", f"DROP TABLE {shards.at(2)}, {shards.at(3)}")
        for table in (1, 7):
            shards.alter("s1", table, "ADD COLUMN c INT")
            shards.insert("s1", table, 2, c="2")
        shards.wait_in_step(run)
        assert shards.merged_rows() == sorted([*gone, *shards.expected()])


def test_checks_that_bear_the_names_of_their_shards(
    spark: SparkSession, mysql_source: MysqlServer, mysql_target: MysqlServer, schema: str, tmp_path: Path
) -> None:
    """On the target they bear its table's name: those of the copy and of later statements, and a new shard's too."""
    row = "id BIGINT NOT NULL PRIMARY KEY, v VARCHAR(20) NOT NULL, CHECK (id >= 0)"
    shards = Shards(schema, {"s1": mysql_source}, mysql_target, tmp_path, row=row)
    with TaskRun(shards.files(), spark) as run:
        run.reach("sync")
        run.catch_up()
        for table in (0, 1):
            shards.alter("s1", table, "ADD COLUMN c INT NOT NULL DEFAULT 4, ADD CHECK (c < 1000)")
        shards.settle(run)
        assert checks(shards) == ["t_chk_1", "t_chk_2"]
        shards.alter("s1", 0, "DROP CHECK t_0_chk_2, ALTER CHECK `t_0_chk_1` NOT ENFORCED")
        shards.run("s1", f"CREATE TABLE {shards.at(7)} LIKE {shards.at(1)}")
        for table in (1, 7):
            shards.alter("s1", table, f"drop check T_{table}_chk_2, alter check t_{table}_chk_1 not enforced")
            shards.insert("s1", table, 1, c="2000")
        shards.settle(run)
        assert checks(shards) == ["t_chk_1"]


def test_a_check_with_another_number_in_one_shard_and_the_name_of_the_other_on_the_target(
    spark: SparkSession, mysql_source: MysqlServer, mysql_target: MysqlServer, schema: str, tmp_path: Path
) -> None:
    """The target's table was made by hand, of what one of the shards shows; a human brings the number in line."""
    row = "id BIGINT NOT NULL PRIMARY KEY, v VARCHAR(20) NOT NULL, CONSTRAINT {} CHECK (id >= 0)"
    shards = Shards(schema, {"s1": mysql_source}, mysql_target, tmp_path, row=row.format("t_0_chk_1"), tables=1)
    mysql_source.run(f"CREATE TABLE {shards.at(1)} ({row.format('t_1_chk_2')})")
    mysql_target.run(f"CREATE DATABASE {schema}_all", f"CREATE TABLE {shards.merged} ({row.format('t_0_chk_1')})")
    files = shards.files()
    with TaskRun(files, spark) as run:
        run.catch_up()
    shards.alter("s1", 0, "DROP CONSTRAINT t_0_chk_1")
    shards.alter("s1", 1, "DROP CONSTRAINT t_1_chk_2")
    assert "SHARD-001" in str(stopped_run(files, spark))
    same = f"ALTER TABLE {shards.at(1)} DROP CONSTRAINT t_1_chk_1"
    ctl("binlog", "replace", str(files.task_path), "-s", "s1", same)
    with TaskRun(files, spark) as run:
        shards.settle(run)
    assert checks(shards) == []


def checks(shards: Shards) -> list[str]:
    """The names of the CHECKs of the merged table."""
    found = "SELECT CONSTRAINT_NAME FROM information_schema.CHECK_CONSTRAINTS WHERE CONSTRAINT_SCHEMA = %s ORDER BY 1"
    return [name for (name,) in shards.target.query(found, (f"{shards.name}_all",))]


@pytest.mark.parametrize("folder", ["new_shards_before_and_after", "online_ddl_by_gh_ost"])
def test_a_folder_between_mysql_servers(
    folder: str,
    spark: SparkSession,
    mysql_source: MysqlServer,
    packing_mysql: MysqlServer,
    mysql_target: MysqlServer,
    schema: str,
    tmp_path: Path,
) -> None:
    sources = {"s1": mysql_source, "s2": packing_mysql}
    Scenario(FOLDERS / folder, schema, sources, mysql_target, tmp_path, spark).play()


def test_from_mariadb(
    spark: SparkSession, source_server: MariadbServer, mysql_target: MysqlServer, schema: str, tmp_path: Path
) -> None:
    Scenario(FOLDERS / "one_source_many_tables", schema, {"s1": source_server}, mysql_target, tmp_path, spark).play()


def test_to_mariadb(
    spark: SparkSession, mysql_source: MysqlServer, target_server: MariadbServer, schema: str, tmp_path: Path
) -> None:
    """What both understand; the clauses on how it is done are not MariaDB's own."""
    mysql_source.run(f"CREATE DATABASE {schema}_s COLLATE utf8mb4_general_ci")
    shards = Shards(schema, {"s1": mysql_source}, target_server, tmp_path)
    changes = (
        "ADD COLUMN c INT NOT NULL DEFAULT 4, ADD INDEX by_c (c), ALGORITHM=INPLACE, LOCK=NONE",
        "ADD COLUMN e INT NOT NULL DEFAULT (c * 2), RENAME INDEX by_c TO by_count, ADD CHECK (c < 1000)",
        "ADD COLUMN g INT AS (c + 1) VIRTUAL, RENAME COLUMN e TO f, ALTER COLUMN c SET DEFAULT 5",
    )
    lives_through(shards, spark, changes, shards.files())
