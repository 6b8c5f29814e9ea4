"""`expression-filter` of a task: rows left out by their values, on real servers, through a DDL."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from support.task_runs import TaskFiles, TaskRun
from unshard.error_catalogue import CATALOGUE
from unshard.errors import ConfigError, SyncError
from unshard.testing.mariadb_server import MariadbServer

pytestmark = [pytest.mark.server, pytest.mark.spark]


def files(
    folder: Path, schema: str, source: MariadbServer, target: MariadbServer, rules: dict[str, dict[str, Any]]
) -> TaskFiles:
    whole = {name: {"schema": schema, "table": "orders", **rule} for name, rule in rules.items()}
    keys = {"expression-filter": whole}
    instance = {"expression-filters": list(rules)}
    return TaskFiles(folder, schema, {"s1": source}, target, (schema,), keys=keys, instance=instance).write()


def test_rows_are_left_out_and_counted(
    spark: SparkSession, source_server: MariadbServer, target_server: MariadbServer, schema: str, tmp_path: Path
) -> None:
    table = f"{schema}.orders"
    source_server.run(f"CREATE DATABASE {schema}")
    source_server.run(f"CREATE TABLE {table} (id INT PRIMARY KEY, status VARCHAR(20), at TIMESTAMP NULL)")
    source_server.run(f"INSERT INTO {table} VALUES (1, 'draft', NULL), (2, 'paid', NULL)")
    rules = {
        "drafts": {"insert-value-expr": "status = 'draft'"},
        "kept": {"delete-value-expr": "status = 'paid' AND id % 2 = 0"},
        "still-drafts": {"update-old-value-expr": "status = 'draft'", "update-new-value-expr": "status = 'draft'"},
        "late": {"insert-value-expr": "at >= '2030-01-01 00:00:00'"},
    }
    with TaskRun(files(tmp_path, schema, source_server, target_server, rules), spark) as run:
        run.reach("sync")
        source_server.run(
            f"INSERT INTO {table} VALUES (3, 'Draft ', NULL), (4, 'new', NULL), (5, 'new', '2031-01-01')",
            f"UPDATE {table} SET status = 'DRAFT' WHERE id = 1",
            f"DELETE FROM {table} WHERE id = 2",
            f"ALTER TABLE {table} ADD COLUMN note VARCHAR(9) FIRST",
            f"INSERT INTO {table} VALUES ('x', 6, 'draft', NULL), ('y', 7, 'new', NULL)",
        )
        run.catch_up()
        reading = run.crew.readings()[0].sync
        assert reading is not None
        assert reading.tables[table].rules == {
            "expression-filter.drafts": 2,
            "expression-filter.kept": 1,
            "expression-filter.late": 1,
            "expression-filter.still-drafts": 1,
        }
    found = target_server.query(f"SELECT id, status FROM {table} ORDER BY id")
    assert found == [(1, "draft"), (2, "paid"), (4, "new"), (7, "new")]


def test_a_column_that_a_ddl_takes_away_pauses_the_task(
    spark: SparkSession, source_server: MariadbServer, target_server: MariadbServer, schema: str, tmp_path: Path
) -> None:
    table = f"{schema}.orders"
    source_server.run(f"CREATE DATABASE {schema}", f"CREATE TABLE {table} (id INT PRIMARY KEY, gone INT)")
    rules = {"r": {"insert-value-expr": "gone = 1"}}
    run = TaskRun(files(tmp_path, schema, source_server, target_server, rules), spark).start()
    run.reach("sync")
    source_server.run(f"ALTER TABLE {table} DROP COLUMN gone", f"INSERT INTO {table} VALUES (1)")
    error = run.error()
    assert isinstance(error, ConfigError)
    assert error.code == "CONFIG-021"
    assert error.where.table == table
    assert "remove or rewrite the rule" in CATALOGUE["CONFIG-021"].hint
    with TaskRun(files(tmp_path, schema, source_server, target_server, {}), spark) as run:
        run.catch_up()
    assert target_server.query(f"SELECT * FROM {table}") == [(1,)]


def test_an_image_that_lacks_the_column_stops_the_task_until_the_rule_is_taken_out(
    spark: SparkSession, source_server: MariadbServer, target_server: MariadbServer, schema: str, tmp_path: Path
) -> None:
    """The batch is open by then, but nothing of it is applied: other rules may take it up."""
    table = f"{schema}.orders"
    source_server.run(f"CREATE DATABASE {schema}", f"CREATE TABLE {table} (id INT PRIMARY KEY, v INT, w INT)")
    source_server.run(f"INSERT INTO {table} VALUES (1, 1, 1), (2, 2, 2)")
    rules = {"r": {"delete-value-expr": "v = 1"}}
    with TaskRun(files(tmp_path, schema, source_server, target_server, rules), spark) as run:
        run.reach("sync")
        run.catch_up()
    source_server.run(
        "SET @@session.binlog_row_image = 'MINIMAL'",
        f"INSERT INTO {table} VALUES (3, 3, 3)",
        f"DELETE FROM {table} WHERE id = 1",
    )
    for _ in range(2):
        with (
            pytest.raises(SyncError, match="SYNC-019"),
            TaskRun(files(tmp_path, schema, source_server, target_server, rules), spark) as run,
        ):
            raise run.error()
    with TaskRun(files(tmp_path, schema, source_server, target_server, {}), spark) as run:
        run.catch_up()
    assert target_server.query(f"SELECT * FROM {table} ORDER BY id") == [(2, 2, 2), (3, 3, 3)]


@pytest.mark.parametrize(
    ("rule", "code"),
    [
        ({"insert-value-expr": "nosuch = 1"}, "CONFIG-021"),
        ({"insert-value-expr": "id / 2 = 1"}, "CONFIG-020"),
        ({"insert-value-expr": "id = 1", "schema": "elsewhere"}, "CONFIG-022"),
    ],
)
def test_what_is_known_to_be_wrong_is_refused_at_the_start(
    spark: SparkSession,
    source_server: MariadbServer,
    target_server: MariadbServer,
    schema: str,
    tmp_path: Path,
    rule: dict[str, Any],
    code: str,
) -> None:
    source_server.run(f"CREATE DATABASE {schema}", f"CREATE TABLE {schema}.orders (id INT PRIMARY KEY)")
    written = files(tmp_path, schema, source_server, target_server, {"r": rule})
    with pytest.raises(ConfigError, match=code):
        TaskRun(written, spark)
