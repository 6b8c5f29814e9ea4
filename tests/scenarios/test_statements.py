"""DDL in the middle of the log, each followed by rows that only fit behind it; writers go on beside it."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import MySQLdb
import pytest
from pyspark.sql import SparkSession

from support.task_runs import TaskFiles, TaskRun, at_work
from unshard.model.table import TableName
from unshard.testing.compare import assert_equal
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.workload import Workload, WorkPlan

pytestmark = [pytest.mark.server, pytest.mark.spark]

SCRIPT = """
CREATE TABLE made (id INT PRIMARY KEY, a VARCHAR(10))
INSERT INTO made VALUES (1, 'one'), (2, 'two')
ALTER TABLE made ADD COLUMN b INT NOT NULL DEFAULT 7 AFTER id
INSERT INTO made VALUES (3, 33, 'three')
UPDATE made SET a = 'drei', b = 8 WHERE id = 3
ALTER TABLE made CHANGE a c VARCHAR(30) CHARACTER SET latin1, ADD UNIQUE KEY c_1 (c)
INSERT INTO made VALUES (4, 44, 'vierzehn und größer')
ALTER TABLE made MODIFY b BIGINT UNSIGNED NOT NULL, ADD d ENUM('x','y')
INSERT INTO made VALUES (5, 18446744073709551615, 'five', 'y')
ALTER TABLE made DROP COLUMN b
UPDATE made SET d = 'x'
DELETE FROM made WHERE id = 2
CREATE TABLE doomed LIKE made
INSERT INTO doomed SELECT * FROM made
TRUNCATE TABLE doomed
INSERT INTO doomed (id, c) VALUES (9, 'nine')
RENAME TABLE doomed TO saved
INSERT INTO saved (id, c) VALUES (10, 'ten')
CREATE TABLE gone (id INT PRIMARY KEY)
INSERT INTO gone VALUES (1)
DROP TABLE gone
CREATE TABLE gone (name VARCHAR(5), n INT)
INSERT INTO gone VALUES ('a', 1), ('a', 1), (NULL, 2)
DELETE FROM gone WHERE name = 'a'
ALTER TABLE gone ADD id INT AUTO_INCREMENT PRIMARY KEY FIRST
INSERT INTO gone (name) VALUES ('b')
CREATE INDEX n_1 ON gone (n)
DROP INDEX n_1 ON gone
ALTER TABLE gone RENAME TO `kept-for ever`
UPDATE `kept-for ever` SET name = 'z' WHERE n = 2
CREATE TABLE old_one (id INT PRIMARY KEY, t TIMESTAMP NULL)
INSERT INTO old_one VALUES (1, '2001-02-03 04:05:06')
ALTER TABLE old_one ADD x INT GENERATED ALWAYS AS (id * 2) STORED
INSERT INTO old_one (id) VALUES (2)
CREATE TABLE swap_a (id INT PRIMARY KEY)
CREATE TABLE swap_b (id INT PRIMARY KEY, v INT)
RENAME TABLE swap_a TO swap_t, swap_b TO swap_a, swap_t TO swap_b
INSERT INTO swap_a VALUES (1, 2)
INSERT INTO swap_b VALUES (5)
"""
LEFT = ("made", "saved", "kept-for ever", "old_one", "swap_a", "swap_b")


@pytest.mark.parametrize(
    "routed", [pytest.param(False, marks=pytest.mark.scenarios), True], ids=["same names", "routed"]
)
def test_statements_are_carried_with_the_rows_around_them(
    routed: bool,
    spark: SparkSession,
    source_server: MariadbServer,
    target_server: MariadbServer,
    schema: str,
    tmp_path: Path,
) -> None:
    work = Workload(source_server, WorkPlan(schema, threads=1))
    work.create()
    work.fill(100)
    own, extra = f"{schema}_1", f"{schema}_new"
    keys: dict[str, Any] = {}
    there = {own: own, extra: extra}
    if routed:
        there = {own: f"there_{own}", extra: f"there_{extra}"}
        keys = {
            f"r{number}": {"schema-pattern": schema, "target-schema": target}
            for number, (schema, target) in enumerate(there.items())
        }
    files = TaskFiles(
        tmp_path,
        schema,
        {"s1": source_server},
        target_server,
        (own, extra),
        keys={"routes": keys},
        instance={"route-rules": list(keys)},
    ).write()
    with TaskRun(files, spark) as run:
        run.reach("sync")
        with at_work(work):
            source_server.run(*SCRIPT.strip().splitlines(), database=own)
            source_server.run(
                f"CREATE DATABASE {extra} CHARACTER SET latin1",
                f"CREATE TABLE {extra}.t (id INT PRIMARY KEY, v VARCHAR(20))",
                f"INSERT INTO {extra}.t VALUES (1, 'é'), (2, '')",
                f"CREATE DATABASE {schema}_foreign",
                f"CREATE TABLE {schema}_foreign.t (id INT PRIMARY KEY)",
                f"INSERT INTO {schema}_foreign.t VALUES (1)",
            )
        run.catch_up()
        names = [*work.plan.names, *(TableName(own, table) for table in LEFT), TableName(extra, "t")]
        for name in names:
            assert_equal([(source_server, name)], (target_server, TableName(there[name.schema], name.table)))
        for ours, theirs in there.items():
            listed = "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s ORDER BY 1"
            assert target_server.query(listed, (theirs,)) == source_server.query(listed, (ours,))
        assert target_server.query("SHOW DATABASES LIKE %s", (f"{schema}_foreign",)) == []
        source_server.run(f"DROP TABLE {extra}.t", f"DROP DATABASE {extra}")
        run.catch_up()
        assert target_server.query("SHOW DATABASES LIKE %s", (there[extra],)) == []


def test_structures_outlive_a_restart(
    spark: SparkSession, source_server: MariadbServer, target_server: MariadbServer, schema: str, tmp_path: Path
) -> None:
    name = TableName(schema, "t")
    source_server.run(f"CREATE DATABASE {schema}", f"CREATE TABLE {name} (id INT PRIMARY KEY)")
    files = TaskFiles(tmp_path, schema, {"s1": source_server}, target_server, (schema,)).write()
    with TaskRun(files, spark) as run:
        source_server.run(f"ALTER TABLE {name} ADD a INT", f"INSERT INTO {name} VALUES (1, 1)")
        run.catch_up()
    source_server.run(
        f"INSERT INTO {name} VALUES (2, 2)",
        f"ALTER TABLE {name} DROP a, ADD b TEXT",
        f"INSERT INTO {name} VALUES (3, 'c')",
        f"CREATE TABLE {schema}.u (id INT PRIMARY KEY)",
        f"INSERT INTO {schema}.u VALUES (1)",
    )
    with TaskRun(files, spark) as run:
        run.catch_up()
    for table in ("t", "u"):
        assert_equal([(source_server, TableName(schema, table))], (target_server, TableName(schema, table)))


FOUND_NOTHING = (
    "ALTER TABLE IF EXISTS nothing ADD a INT",
    "DROP TABLE IF EXISTS nothing",
    "DROP TABLE doomed, nothing",
    "RENAME TABLE IF EXISTS nothing TO other",
    "RENAME TABLE IF EXISTS nothing TO other, kept TO still",
    "DROP INDEX IF EXISTS nothing ON still",
)


def test_statements_that_found_no_table_have_no_effect(
    spark: SparkSession, source_server: MariadbServer, target_server: MariadbServer, schema: str, tmp_path: Path
) -> None:
    """The source logs them all the same, also a DROP that has failed for one of its tables."""
    create = "CREATE TABLE {} (id INT PRIMARY KEY)"
    source_server.run(f"CREATE DATABASE {schema}", f"USE {schema}", create.format("doomed"), create.format("kept"))
    files = TaskFiles(tmp_path, schema, {"s1": source_server}, target_server, (schema,)).write()
    with TaskRun(files, spark) as run:
        run.reach("sync")
        for statement in FOUND_NOTHING:
            with suppress(MySQLdb.Error):  # MySQL has no IF EXISTS for most of them
                source_server.run(f"USE {schema}", statement)
        for name in ("kept", "still", "doomed"):
            with suppress(MySQLdb.Error):
                source_server.run(f"INSERT INTO {schema}.{name} VALUES (1)")
        run.catch_up()
    left = list(source_server.query(f"SHOW TABLES FROM {schema}"))
    assert left == list(target_server.query(f"SHOW TABLES FROM {schema}"))
    for (name,) in left:
        table = TableName(schema, str(name))
        assert_equal([(source_server, table)], (target_server, table))


def test_what_the_target_lacks_is_not_dropped(
    spark: SparkSession, source_server: MariadbServer, target_server: MariadbServer, schema: str, tmp_path: Path
) -> None:
    schemas = (schema, f"{schema}_2")
    for one in schemas:
        source_server.run(f"CREATE DATABASE {one}", f"CREATE TABLE {one}.t (id INT PRIMARY KEY)")
    files = TaskFiles(tmp_path, schema, {"s1": source_server}, target_server, schemas).write()
    with TaskRun(files, spark) as run:
        run.reach("sync")
        target_server.run(f"DROP TABLE {schema}.t", f"DROP DATABASE {schema}_2")
        source_server.run(f"DROP TABLE {schema}.t", f"DROP DATABASE {schema}_2", f"CREATE TABLE {schema}.u (id INT)")
        run.catch_up()
    assert target_server.query(f"SHOW TABLES FROM {schema}") == [("u",)]
