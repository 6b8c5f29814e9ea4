"""Rows of MySQL's log whose JSON holds values that JSON text has no words for: the task stops, and goes on as told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from support.advice_walks import Walk
from support.checked_tasks import found, with_keys
from support.json_values import CONVERT, go_on_with_conversion, go_on_with_text
from support.task_runs import TaskFiles, TaskRun, newest
from unshard.errors import UnshardError
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.mysql_server import Mysql80Server, MysqlServer

pytestmark = [pytest.mark.server, pytest.mark.spark]


@pytest.mark.parametrize("source", ["mysql_80", "mysql_source"])
def test_conversion_goes_on(
    source: str,
    mysql_target: MysqlServer,
    schema: str,
    spark: SparkSession,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    go_on_with_conversion(request.getfixturevalue(source), mysql_target, schema, spark, tmp_path)


def test_a_column_of_text_keeps_the_text(
    mysql_80: Mysql80Server, mysql_target: MysqlServer, schema: str, spark: SparkSession, tmp_path: Path
) -> None:
    go_on_with_text(mysql_80, mysql_target, schema, spark, tmp_path)


def test_only_what_is_written_stops(
    mysql_80: Mysql80Server, mysql_target: MysqlServer, schema: str, spark: SparkSession, tmp_path: Path
) -> None:
    """The copy has stored such documents: the rows can go, and get others. What a document keeps is written again."""
    walk = Walk.begin(mysql_80, mysql_target, schema, spark, tmp_path)
    table = walk.also("docs", "(id INT PRIMARY KEY, doc JSON, v INT)")
    keyless = walk.also("keyless", "(doc JSON, v INT)")
    price = "JSON_ARRAY(1.5)"
    walk.write([f"INSERT INTO {table} VALUES (1, {price}, 1), (2, {price}, 1), (3, {price}, 1)"])
    walk.write([f"INSERT INTO {keyless} VALUES ({price}, 1), ({price}, 2)"])
    walk.followed()
    walk.write([f"DELETE FROM {table} WHERE id = 1", f"UPDATE {table} SET doc = '[2.5]' WHERE id = 2"])
    walk.write([f"DELETE FROM {keyless} WHERE v = 1", f"UPDATE {keyless} SET doc = '[2.5]'"])
    walk.ends_equal()
    walk.write([f"UPDATE {table} SET v = 7 WHERE id = 3"])
    assert walk.fails() == "SYNC-078"


def test_a_change_in_place_stops(
    mysql_80: Mysql80Server, mysql_target: MysqlServer, schema: str, spark: SparkSession, tmp_path: Path
) -> None:
    """PARTIAL_JSON logs no document, but what changes in it."""
    walk = Walk.begin(mysql_80, mysql_target, schema, spark, tmp_path)
    table = walk.also("docs", "(id INT PRIMARY KEY, doc JSON)")
    long = "x" * 200, "y" * 200
    mysql_80.run(f"""INSERT INTO {table} VALUES (1, '["{long[0]}", "{long[1]}"]')""")
    walk.followed()
    partial = "SET SESSION binlog_row_value_options = PARTIAL_JSON"
    walk.write([partial, f"UPDATE {table} SET doc = JSON_SET(doc, '$[0]', 'text')"])
    walk.ends_equal()
    walk.write([partial, f"UPDATE {table} SET doc = JSON_SET(doc, '$[0]', 1.5)"])
    error = walk.failed()
    assert (error.code, error.where.table) == ("SYNC-078", str(table))
    key, value = CONVERT.split(": ")
    walk.change(keys={key: value})
    walk.ends_equal(late=1001)


@pytest.mark.parametrize("delivery", ["exactly-once", "at-least-once"])
def test_nothing_of_a_transaction_in_slices_is_applied(
    delivery: str,
    mysql_80: Mysql80Server,
    mysql_target: MysqlServer,
    schema: str,
    spark: SparkSession,
    tmp_path: Path,
) -> None:
    walk = Walk.begin(mysql_80, mysql_target, schema, spark, tmp_path)
    table = walk.also("docs", "(id INT PRIMARY KEY, doc JSON)")
    walk.change(keys={"delivery": delivery})
    walk.followed()
    long = "x" * 200
    many = ", ".join(f"""({number}, '["{long}"]')""" for number in range(1, 400))
    last = f"INSERT INTO {table} VALUES (999, JSON_ARRAY(1.5))"
    mysql_80.run("BEGIN", f"INSERT INTO {table} VALUES {many}", last, "COMMIT")
    run = TaskRun(walk.files, spark)
    run.sync_unit(slice_bytes=8 << 10)
    with run.failing():
        error: Any = run.error()
    assert isinstance(error, UnshardError)
    assert (error.code, error.where.table) == ("SYNC-078", str(table))
    assert str(error.where.position).startswith(newest(mysql_80).file)
    assert mysql_target.query(f"SELECT COUNT(*) FROM {table}") == [(0,)]


def test_text_that_the_target_has_as_json(
    source_server: MariadbServer, mysql_target: MysqlServer, schema: str, spark: SparkSession, tmp_path: Path
) -> None:
    """MariaDB's JSON is text: a number with many digits stops the task, and arrives rounded where that is allowed."""
    table, lost = f"{schema}.docs", '{"a": 0.1234567890123456789, "id": 18446744073709551616123}'
    source_server.run(f"CREATE DATABASE {schema}", f"CREATE TABLE {table} (id INT PRIMARY KEY, doc JSON, note TEXT)")
    mysql_target.run(f"CREATE DATABASE {schema}", f"CREATE TABLE {table} (id INT PRIMARY KEY, doc JSON, note TEXT)")
    source_server.run(f"INSERT INTO {table} VALUES (1, '[0.1, 12345678901234567890]', '0.1234567890123456789')")
    files = TaskFiles(tmp_path, schema, {"s1": source_server}, mysql_target, (schema,))
    (lack,) = found(files, "json value checker")
    assert "(doc)" in lack.short_error
    assert source_server.query(lack.instruction.partition(";")[0]) == [(1,)]
    with TaskRun(files.write(), spark) as run:
        run.reach("sync")
        source_server.run(f"INSERT INTO {table} VALUES (2, '[0.1]', NULL)")
        run.catch_up()
    source_server.run(f"INSERT INTO {table} VALUES (3, '{lost}', NULL)")
    with TaskRun(files, spark).failing() as run:
        error = run.error()
    assert isinstance(error, UnshardError)
    assert error.code == "SYNC-078"
    assert mysql_target.query(f"SELECT COUNT(*) FROM {table}") == [(2,)]
    with TaskRun(with_keys(files, json_values="convert").write(), spark) as run:
        run.reach("sync")
        run.catch_up()
    assert mysql_target.query(f"SELECT COUNT(*) FROM {table}") == [(3,)]
