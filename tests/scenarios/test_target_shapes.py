"""Targets that are not built as their sources are: more columns, other keys, order and types, generated columns."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.task_runs import TaskFiles, TaskRun
from unshard.errors import UnshardError
from unshard.testing.mariadb_server import MariadbServer

pytestmark = [pytest.mark.server, pytest.mark.spark]

SOURCE = "(id INT PRIMARY KEY, n INT NOT NULL UNIQUE, v VARCHAR(20) CHARACTER SET utf8mb3, t TIMESTAMP NULL)"
TARGETS = {
    "extra": "(id INT PRIMARY KEY, n INT NOT NULL, v VARCHAR(20), t TIMESTAMP NULL, x INT, y INT NOT NULL DEFAULT 7,"
    " z DATETIME DEFAULT CURRENT_TIMESTAMP)",
    "other_key": "(id INT, n INT NOT NULL PRIMARY KEY, v VARCHAR(20), t TIMESTAMP NULL)",
    "unique_key": "(id INT NOT NULL, n INT NOT NULL, v VARCHAR(20), t TIMESTAMP NULL, UNIQUE (id))",
    "no_key": "(id INT, n INT, v VARCHAR(20), t TIMESTAMP NULL)",
    "both": "(id INT, n INT, v VARCHAR(20), t TIMESTAMP NULL, PRIMARY KEY (n, id))",
    "made": "(id INT PRIMARY KEY, n INT NOT NULL, v VARCHAR(20), t TIMESTAMP NULL, g INT AS (n * 2) STORED,"
    " h VARCHAR(30) AS (CONCAT(v, '!')) VIRTUAL)",
    "turned": "(t TIMESTAMP NULL, v VARCHAR(20), n INT NOT NULL, id INT PRIMARY KEY)",
    "wider": "(id BIGINT PRIMARY KEY, n BIGINT NOT NULL, v VARCHAR(50) CHARACTER SET utf8mb4, t TIMESTAMP(3) NULL)",
    "cased": "(ID INT PRIMARY KEY, N INT NOT NULL, V VARCHAR(20), T TIMESTAMP NULL)",
}
LATER = (
    "INSERT INTO {} VALUES (4, 40, 'd''\\\\', NULL), (5, 50, NULL, '2024-01-01 00:00:00')",
    "UPDATE {} SET v = 'changed' WHERE id = 1",
    "UPDATE {} SET id = 22 WHERE id = 2",
    "UPDATE {} SET n = 33 WHERE id = 3",
    "UPDATE {} SET id = 44, n = 44, v = NULL WHERE id = 4",
    "DELETE FROM {} WHERE id = 5",
    "INSERT INTO {} VALUES (6, 60, 'f', NULL) ON DUPLICATE KEY UPDATE v = 'g'",
    "INSERT INTO {} VALUES (6, 61, 'f', NULL) ON DUPLICATE KEY UPDATE v = 'g'",
    "REPLACE INTO {} VALUES (6, 33, 'both', NULL)",
)


@pytest.mark.parametrize("switches", [True, False], ids=["merged", "one_by_one"])
def test_rows_fit_into_other_tables(
    switches: bool,
    spark: SparkSession,
    source_server: MariadbServer,
    target_server: MariadbServer,
    schema: str,
    tmp_path: Path,
) -> None:
    for server in (source_server, target_server):
        server.run(f"CREATE DATABASE {schema}")
    for name, definition in TARGETS.items():
        source_server.run(f"CREATE TABLE {schema}.{name} {SOURCE}")
        target_server.run(f"CREATE TABLE {schema}.{name} {definition}")
        source_server.run(f"INSERT INTO {schema}.{name} VALUES (1, 10, 'é', '2024-05-05 05:05:05'), (2, 20, '', NULL)")
        source_server.run(f"INSERT INTO {schema}.{name} VALUES (3, 30, NULL, NULL)")
    syncer = {"compact": switches, "multiple-rows": switches, "on-missing-row": "stop"}
    files = TaskFiles(tmp_path, schema, {"s1": source_server}, target_server, (schema,), syncer=syncer).write()
    with TaskRun(files, spark) as run:
        run.catch_up()
        for name in TARGETS:
            source_server.run(*(text.format(f"{schema}.{name}") for text in LATER))
        run.catch_up()
    for name in TARGETS:
        query = f"SELECT id, n, v, t FROM {schema}.{name} ORDER BY id"
        assert target_server.query(query) == source_server.query(query), name
        assert len(target_server.query(query)) == 4, name
    assert set(target_server.query(f"SELECT x, y, z IS NULL FROM {schema}.extra")) == {(None, 7, 0)}
    assert target_server.query(f"SELECT 1 FROM {schema}.made WHERE g <> n * 2 OR h <> CONCAT(v, '!')") == []


MISFITS = {
    "needs a value": ("(id INT PRIMARY KEY, v INT)", "(id INT PRIMARY KEY, v INT, x INT NOT NULL)", "has no default"),
    "lacks a column": ("(id INT PRIMARY KEY, v INT)", "(id INT PRIMARY KEY)", "column v int(11) is missing"),
    "made in the source": (
        "(id INT PRIMARY KEY, v INT, g INT AS (v + 1) STORED)",
        "(id INT PRIMARY KEY, v INT, g INT)",
        "column g is generated in the source and a plain one",
    ),
    "made in the target": ("(id INT PRIMARY KEY, v INT)", "(id INT PRIMARY KEY, v INT AS (id) STORED)", "column v"),
    "key of its own": ("(id INT PRIMARY KEY)", "(id INT, k INT NOT NULL DEFAULT 1 PRIMARY KEY)", "key column k"),
}


@pytest.mark.parametrize("case", MISFITS)
def test_what_does_not_fit_is_told_before_a_row_is_written(
    case: str,
    spark: SparkSession,
    source_server: MariadbServer,
    target_server: MariadbServer,
    schema: str,
    tmp_path: Path,
) -> None:
    here, there, why = MISFITS[case]
    source_server.run(f"CREATE DATABASE {schema}", f"CREATE TABLE {schema}.t {here}")
    target_server.run(f"CREATE DATABASE {schema}", f"CREATE TABLE {schema}.t {here}")
    files = TaskFiles(tmp_path, schema, {"s1": source_server}, target_server, (schema,)).write()
    with TaskRun(files, spark) as run:
        run.catch_up()
    target_server.run(f"DROP TABLE {schema}.t", f"CREATE TABLE {schema}.t {there}")
    source_server.run(f"INSERT INTO {schema}.t (id) VALUES (1)")
    again = TaskRun(files, spark).start()
    error = again.error()
    assert isinstance(error, UnshardError), error
    assert error.code == "SYNC-007", error
    assert why in str(error)
    assert f"{schema}.t" in str(error)
    assert target_server.query(f"SELECT * FROM {schema}.t") == []
