"""MySQL and a newer MariaDB that log a part of each row: MINIMAL, NOBLOB, FULL_NODUP, and PARTIAL_JSON."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyspark.sql import SparkSession

from support.shape_set import ALL_SHAPES, ShapeSet
from support.task_runs import TaskFiles, TaskRun, at_work, commit_more, newest
from unshard.errors import UnshardError
from unshard.model.table import TableName
from unshard.testing.compare import assert_equal
from unshard.testing.mysql_server import MysqlServer, OtherMariadbServer
from unshard.testing.throwaway_server import ThrowawayServer

pytestmark = [pytest.mark.server, pytest.mark.spark]
TRANSACTIONS = 400


@pytest.fixture(scope="module")
def frugal_mysql() -> Iterator[MysqlServer]:
    """A source of this file's own: its row image is changed."""
    with MysqlServer({"binlog_row_value_options": "PARTIAL_JSON"}) as server:
        yield server


@pytest.fixture(scope="module")
def frugal_mariadb() -> Iterator[OtherMariadbServer]:
    with OtherMariadbServer() as server:
        yield server


@pytest.mark.parametrize(
    ("source", "target", "image"),
    [
        ("frugal_mysql", "mysql_target", "MINIMAL"),
        ("frugal_mysql", "mysql_target", "NOBLOB"),
        ("frugal_mariadb", "target_server", "FULL_NODUP"),
    ],
)
def test_every_shape_arrives_from_partial_images(
    source: str,
    target: str,
    image: str,
    spark: SparkSession,
    schema: str,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    server: ThrowawayServer = request.getfixturevalue(source)
    downstream: ThrowawayServer = request.getfixturevalue(target)
    server.run(f"SET GLOBAL binlog_row_image = {image}")
    chosen = {name: shape for name, shape in ALL_SHAPES.items() if name != "types"}
    shapes = ShapeSet.create(server, schema, rows=200, seed=len(image), shapes=chosen)
    files = TaskFiles(tmp_path, schema, {"s1": server}, downstream, shapes.schemas).write()
    with TaskRun(files, spark) as run:
        with at_work(*shapes.works):
            run.reach("sync")
            commit_more(*shapes.works, transactions=TRANSACTIONS)
        run.catch_up()
        shapes.assert_equal(downstream)
        (reading,) = run.crew.readings()
    assert reading.sync is not None
    assert reading.sync.rows > 100
    assert reading.sync.missing == 0


def change_documents(server: MysqlServer, name: TableName, random: Random) -> None:
    """Changes in place and others, on nested paths and arrays, of one document, two, and of NULL."""
    table = name.quoted
    texts = ("'short'", "7", "NULL", "1.5", "JSON_OBJECT('q', JSON_ARRAY(1, 'é'))", "CAST('[true, null]' AS JSON)")
    for _ in range(150):
        where = f"WHERE id % 7 = {random.randrange(7)}"
        value = random.choice(texts)
        server.run(
            random.choice(
                [
                    f"UPDATE {table} SET j = JSON_SET(j, '$.a[1].b', {value}) {where}",
                    f"UPDATE {table} SET j = JSON_REPLACE(j, '$.long', {value}), k = JSON_SET(k, '$[2]', 9) {where}",
                    f"UPDATE {table} SET j = JSON_REMOVE(j, '$.a[0]'), v = v + 1 {where}",
                    f"UPDATE {table} SET j = JSON_SET(j, '$.\"new key {random.randrange(9)}\"', {value}) {where}",
                    f"UPDATE {table} SET k = JSON_REMOVE(k, '$[1]'), j = '{{\"a\": [1, {{}}, 3]}}' {where}",
                    f"UPDATE {table} SET k = NULL {where}",
                    f'UPDATE {table} SET k = \'[1, 2, {{"x": "{"y" * 200}"}}]\' {where}',
                    f"UPDATE {table} SET v = v + 1 {where}",
                ]
            )
        )


def documents(server: MysqlServer, schema: str) -> TableName:
    name = TableName(schema, "documents")
    document = '{"a": [1, {"b": "x"}, 3], "long": "' + "z" * 300 + '", "n": -0.25}'
    server.run(
        f"CREATE DATABASE {schema}",
        f"CREATE TABLE {name.quoted} (id INT PRIMARY KEY, j JSON, v INT, k JSON)",
        f"INSERT INTO {name.quoted} VALUES "
        + ", ".join(f"({n}, {'NULL' if n % 5 == 0 else repr(document)}, {n}, '[1, 2, 3]')" for n in range(1, 30)),
    )
    return name


def test_partial_updates_of_json(
    spark: SparkSession,
    frugal_mysql: MysqlServer,
    mysql_target: MysqlServer,
    schema: str,
    tmp_path: Path,
) -> None:
    frugal_mysql.run("SET GLOBAL binlog_row_image = FULL")
    name = documents(frugal_mysql, schema)
    keys = {"json-values": "convert"}  # MySQL's 1.5 is a DECIMAL
    files = TaskFiles(tmp_path, schema, {"s1": frugal_mysql}, mysql_target, (schema,), keys).write()
    with TaskRun(files, spark) as run:
        run.reach("sync")
        change_documents(frugal_mysql, name, Random(1))
        run.catch_up()
        assert_equal([(frugal_mysql, name)], (mysql_target, name))
        (reading,) = run.crew.readings()
    assert reading.sync is not None
    assert reading.sync.missing == 0


def test_a_change_without_its_document_stops(
    spark: SparkSession, frugal_mysql: MysqlServer, mysql_target: MysqlServer, schema: str, tmp_path: Path
) -> None:
    frugal_mysql.run("SET GLOBAL binlog_row_image = MINIMAL")
    name = documents(frugal_mysql, schema)
    files = TaskFiles(tmp_path, schema, {"s1": frugal_mysql}, mysql_target, (schema,)).write()
    run = TaskRun(files, spark).start()
    run.reach("sync")
    run.catch_up()
    frugal_mysql.run(f"UPDATE {name.quoted} SET j = JSON_SET(j, '$.a[0]', 'y') WHERE id = 3")
    error: Any = run.error()
    assert isinstance(error, UnshardError)
    assert (error.code, error.where.table) == ("BINLOG-038", str(name))
    assert str(error.where.position).startswith(newest(frugal_mysql).file)
