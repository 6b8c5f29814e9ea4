"""Rows that are tied by unique keys, and tables that are tied by foreign keys, through a whole task."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from pyspark.sql import SparkSession

from support.task_runs import TaskFiles, TaskRun
from unshard.errors import UnshardError
from unshard.model.table import TableName
from unshard.testing.compare import assert_equal
from unshard.testing.mariadb_server import MariadbServer

TWICE = (
    "(id INT PRIMARY KEY, n INT UNIQUE, code VARCHAR(9) COLLATE utf8mb4_general_ci, v INT, UNIQUE KEY (code(3)))"
    " DEFAULT CHARSET utf8mb4"
)


def test_values_that_move_between_rows(
    spark: SparkSession, source_server: MariadbServer, target_server: MariadbServer, schema: str, tmp_path: Path
) -> None:
    name = TableName(schema, "t")
    rows = ",".join(f"({n},{n},'{n:03}',0)" for n in range(1, 41))
    source_server.run(f"CREATE DATABASE {schema}", f"CREATE TABLE {name} {TWICE}", f"INSERT INTO {name} VALUES {rows}")
    files = TaskFiles(tmp_path, schema, {"s1": source_server}, target_server, (schema,)).write()
    with TaskRun(files, spark) as run:
        run.reach("sync")
        source_server.run(
            "BEGIN",
            f"UPDATE {name} SET n = -1 WHERE id = 1",
            f"UPDATE {name} SET n = 1 WHERE id = 2",
            f"UPDATE {name} SET n = 2 WHERE id = 1",
            f"UPDATE {name} SET code = NULL WHERE id IN (3, 4)",
            f"UPDATE {name} SET code = '004x' WHERE id = 3",
            f"UPDATE {name} SET id = 100, code = '003' WHERE id = 4",
            *(f"UPDATE {name} SET v = {n}, n = {n + 1000} WHERE id = {n}" for n in range(5, 20)),
            f"UPDATE {name} SET v = v + 1 WHERE id > 3",
            *(
                statement
                for n in range(200, 230)
                for statement in (
                    f"DELETE FROM {name} WHERE n = 20",
                    f"INSERT INTO {name} VALUES ({n}, 20, 'é{n % 7}', 0)",
                )
            ),
            f"INSERT INTO {name} VALUES (300, NULL, NULL, 1), (301, NULL, NULL, 2)",
            f"DELETE FROM {name} WHERE id BETWEEN 30 AND 35",
            f"INSERT INTO {name} VALUES (30, 31, 'Ab', 0), (31, 30, 'abc', 0)",
            "COMMIT",
        )
        run.catch_up()
        assert run.sync.missing == 0
    assert_equal([(source_server, name)], (target_server, name))


def test_one_value_in_two_sources_overwrites_nothing(
    spark: SparkSession,
    source_server: MariadbServer,
    second_source: MariadbServer,
    target_server: MariadbServer,
    schema: str,
    tmp_path: Path,
) -> None:
    name = TableName(schema, "t")
    for server, first in ((source_server, 1), (second_source, 50)):
        server.run(f"CREATE DATABASE {schema}", f"CREATE TABLE {name} {TWICE}")
        server.run(f"INSERT INTO {name} VALUES ({first}, {first}, {first}, 0), ({first + 1}, {first + 1}, NULL, 0)")
    sources = {"s1": source_server, "s2": second_source}
    files = TaskFiles(tmp_path, schema, sources, target_server, (schema,)).write()
    run = TaskRun(files, spark).start()
    run.reach("sync")
    second_source.run(f"UPDATE {name} SET n = 1 WHERE id = 50")
    error = run.error()
    assert isinstance(error, UnshardError)
    assert error.code == "SYNC-003"
    assert target_server.query(f"SELECT n FROM {name} ORDER BY id") == [(1,), (2,), (50,), (51,)]


def test_parents_and_children_keep_their_order_where_foreign_keys_are_checked(
    spark: SparkSession, source_server: MariadbServer, target_server: MariadbServer, schema: str, tmp_path: Path
) -> None:
    parent, child, leaf, tree = (TableName(schema, name) for name in ("parent", "child", "leaf", "tree"))
    source_server.run(
        f"CREATE DATABASE {schema}",
        f"CREATE TABLE {parent} (id INT PRIMARY KEY, v INT)",
        f"CREATE TABLE {child} (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES {parent} (id) ON DELETE CASCADE)",
        f"CREATE TABLE {leaf} (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES {child} (id))",
        f"CREATE TABLE {tree} (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES {tree} (id))",
    )
    files = TaskFiles(tmp_path, schema, {"s1": source_server}, target_server, (schema,))
    server = {"host": "127.0.0.1", "user": "root", "port": target_server.port}
    checking = {"target-database": {**server, "session": {"foreign_key_checks": 1}}}
    with TaskRun(replace(files, keys=checking).write(), spark) as run:
        run.reach("sync")
        source_server.run(
            "BEGIN",
            *(
                statement
                for n in range(1, 40)
                for statement in (
                    f"INSERT INTO {parent} VALUES ({n}, 0)",
                    f"INSERT INTO {child} VALUES ({n}, {n}), ({n + 100}, {n})",
                    f"INSERT INTO {leaf} VALUES ({n}, {n + 100})",
                    f"DELETE FROM {leaf} WHERE id = {n - 3}",
                    f"UPDATE {child} SET p = {max(n - 1, 1)} WHERE id = {n}",
                    f"DELETE FROM {parent} WHERE id = {n - 5}",  # its children go by the cascade, unlogged
                )
            ),
            f"INSERT INTO {tree} VALUES (1, NULL), (2, 1), (3, 2), (4, 3)",
            *(f"DELETE FROM {tree} WHERE id = {n}" for n in (4, 3, 2)),
            "COMMIT",
        )
        run.catch_up()
    for name in (parent, child, leaf, tree):
        assert_equal([(source_server, name)], (target_server, name))
