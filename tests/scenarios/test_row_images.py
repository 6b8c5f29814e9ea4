"""Sources that log a part of each row: `binlog_row_image` MINIMAL and NOBLOB."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from support.shape_set import ShapeSet
from support.task_runs import TaskFiles, TaskRun, at_work, commit_more, newest
from unshard.errors import UnshardError
from unshard.model.table import TableName
from unshard.testing.compare import assert_equal
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.shapes import SHAPES
from unshard.testing.workload import Workload, WorkPlan

pytestmark = [pytest.mark.server, pytest.mark.spark]
TRANSACTIONS = 800


@pytest.fixture(scope="module")
def frugal() -> Iterator[MariadbServer]:
    """A source of this file's own: its row image is changed."""
    with MariadbServer({"gtid_domain_id": "3"}) as server:
        yield server


@pytest.mark.parametrize("image", ["MINIMAL", pytest.param("NOBLOB", marks=pytest.mark.scenarios)])
def test_every_shape_arrives_from_partial_images(
    image: str,
    spark: SparkSession,
    frugal: MariadbServer,
    target_server: MariadbServer,
    schema: str,
    tmp_path: Path,
) -> None:
    frugal.run(f"SET GLOBAL binlog_row_image = {image}")
    shapes = ShapeSet.create(frugal, schema, rows=200, seed=len(image))
    files = TaskFiles(tmp_path, schema, {"s1": frugal}, target_server, shapes.schemas).write()
    with TaskRun(files, spark) as run:
        with at_work(*shapes.works):
            run.reach("sync")
            commit_more(*shapes.works, transactions=TRANSACTIONS)
        run.catch_up()
        shapes.assert_equal(target_server)
        (reading,) = run.crew.readings()
    assert reading.sync is not None
    assert reading.sync.rows > 100
    assert reading.sync.missing == 0


@pytest.mark.scenarios
def test_merged_shards_with_column_mapping(
    spark: SparkSession, frugal: MariadbServer, target_server: MariadbServer, schema: str, tmp_path: Path
) -> None:
    frugal.run("SET GLOBAL binlog_row_image = MINIMAL")
    work = Workload(frugal, WorkPlan(schema, SHAPES["sysbench"], schemas=2, threads=1, disjoint_ids=False))
    work.create()
    work.fill(100)
    place = {"schema-pattern": f"{schema}_*", "table-pattern": "table_*"}
    mapping = {**place, "expression": "partition id", "source-column": "id", "target-column": "id"}
    files = TaskFiles(
        tmp_path,
        schema,
        {"s1": frugal},
        target_server,
        (f"{schema}_*",),
        keys={
            "routes": {"fold": {**place, "target-schema": f"{schema}_all", "target-table": "folded"}},
            "column-mappings": {"m": {**mapping, "arguments": ["1", f"{schema}_", "table_"]}},
        },
        instance={"route-rules": ["fold"], "column-mapping-rules": ["m"]},
    ).write()
    with TaskRun(files, spark) as run:
        with at_work(work):
            run.reach("sync")
            commit_more(work, transactions=TRANSACTIONS)
        run.catch_up()
        (reading,) = run.crew.readings()
    assert reading.sync is not None
    assert reading.sync.missing == 0
    checksum = "SELECT COUNT(*), COALESCE(SUM(CRC32(CONCAT_WS('#', id - {}, k, c, pad))), 0) FROM {}"
    found = 0
    for name in work.plan.names:
        schema_number, table_number = (int(part.rsplit("_", 1)[1]) for part in (name.schema, name.table))
        bits = 1 << 59 | schema_number << 52 | table_number << 44
        ours = frugal.query(checksum.format(0, name.quoted))
        theirs = target_server.query(
            checksum.format(bits, f"`{schema}_all`.folded") + f" WHERE id BETWEEN {bits} AND {bits + (1 << 44) - 1}"
        )
        assert ours == theirs, name
        found += ours[0][0]
    assert target_server.query(f"SELECT COUNT(*) FROM `{schema}_all`.folded") == [(found,)]


DEFAULTED = """(id INT AUTO_INCREMENT PRIMARY KEY, a INT NOT NULL DEFAULT 5, b VARCHAR(20) DEFAULT 'o''b,x', c TEXT,
 made TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP, changed DATETIME(3) DEFAULT NULL ON UPDATE CURRENT_TIMESTAMP(3),
 fixed TIMESTAMP NOT NULL DEFAULT '2001-02-03 04:05:06', bits BIT(4) DEFAULT b'101', u VARCHAR(40) DEFAULT (UUID()),
 twice INT AS (a * 2) STORED, d DECIMAL(9,2) DEFAULT -1.50)"""


def change_defaulted(server: MariadbServer, name: TableName, random: Random) -> None:
    statements = [
        f"INSERT INTO {name.quoted} () VALUES ()",
        f"INSERT INTO {name.quoted} (a, c) VALUES ({random.randint(1, 9)}, 'q')",
        f"INSERT INTO {name.quoted} (b, changed) VALUES (NULL, '2020-01-01 00:00:00.5')",
        f"UPDATE {name.quoted} SET a = a + 1 ORDER BY id LIMIT 2",
        f"UPDATE {name.quoted} SET b = NULL, changed = changed ORDER BY id DESC LIMIT 2",
        f"UPDATE {name.quoted} SET id = id + 1000 ORDER BY id DESC LIMIT 1",
        f"DELETE FROM {name.quoted} ORDER BY id DESC LIMIT 1",
    ]
    for _ in range(40):
        server.run(random.choice(statements))


def test_absent_columns_take_the_sources_defaults(
    spark: SparkSession, frugal: MariadbServer, target_server: MariadbServer, schema: str, tmp_path: Path
) -> None:
    """The target has other defaults, and renews a time by itself that the source does not."""
    frugal.run("SET GLOBAL binlog_row_image = MINIMAL")
    name = TableName(schema, "defaulted")
    frugal.run(f"CREATE DATABASE {schema}", f"CREATE TABLE {name.quoted} {DEFAULTED}")
    files = TaskFiles(tmp_path, schema, {"s1": frugal}, target_server, (schema,)).write()
    with TaskRun(files, spark) as run:
        run.reach("sync")
        run.catch_up()
        target_server.run(
            f"ALTER TABLE {name.quoted} ALTER a SET DEFAULT 77, ALTER b SET DEFAULT 'other',"
            " MODIFY fixed TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP"
        )
        change_defaulted(frugal, name, Random(1))
        run.catch_up()
        assert_equal([(frugal, name)], (target_server, name))
        (reading,) = run.crew.readings()
    assert reading.sync is not None
    assert reading.sync.missing == 0


def test_a_target_key_that_is_not_logged_stops(
    spark: SparkSession, frugal: MariadbServer, target_server: MariadbServer, schema: str, tmp_path: Path
) -> None:
    frugal.run("SET GLOBAL binlog_row_image = MINIMAL")
    name = TableName(schema, "t")
    for server, key in ((frugal, "id"), (target_server, "k, id")):
        server.run(
            f"CREATE DATABASE {schema}",
            f"CREATE TABLE {name.quoted} (k INT NOT NULL, id INT NOT NULL, v INT, PRIMARY KEY ({key}))",
        )
    start = newest(frugal)
    meta = {"meta": {"binlog-name": start.file, "binlog-pos": start.offset}}
    files = TaskFiles(
        tmp_path, schema, {"s1": frugal}, target_server, (schema,), keys={"task-mode": "incremental"}, instance=meta
    ).write()
    run = TaskRun(files, spark).start()
    frugal.run(f"INSERT INTO {name.quoted} VALUES (1, 1, 1)")
    run.catch_up()
    frugal.run(f"UPDATE {name.quoted} SET v = 2")
    error = run.error()
    assert isinstance(error, UnshardError)
    assert error.code == "SYNC-030"
    assert "lacks key column k" in error.message
    assert error.where.table == str(name)
    assert str(error.where.position).startswith(start.file)
    assert target_server.query(f"SELECT * FROM {name.quoted}") == [(1, 1, 1)]


def test_in_safe_mode_only_images_of_migrated_tables_have_to_be_complete(
    spark: SparkSession, frugal: MariadbServer, target_server: MariadbServer, schema: str, tmp_path: Path
) -> None:
    frugal.run("SET GLOBAL binlog_row_image = FULL")
    taken, filtered, other = TableName(schema, "t"), TableName(schema, "f"), TableName(f"{schema}_other", "t")
    for name in (taken, filtered, other):
        frugal.run(
            f"CREATE DATABASE IF NOT EXISTS {name.schema}",
            f"CREATE TABLE {name.quoted} (id INT PRIMARY KEY, v INT, w INT)",
            f"INSERT INTO {name.quoted} VALUES (1, 1, 1), (2, 2, 2)",
        )
    rule = {"schema-pattern": schema, "table-pattern": "f", "events": ["update"], "action": "Ignore"}
    files = TaskFiles(
        tmp_path,
        schema,
        {"s1": frugal},
        target_server,
        (schema,),
        keys={"filters": {"no-updates": rule}},
        instance={"filter-rules": ["no-updates"]},
        syncer={"safe-mode": True},
    ).write()
    minimal = "SET SESSION binlog_row_image = MINIMAL"
    run = TaskRun(files, spark)
    with run.failing():
        run.catch_up()
        frugal.run(
            f"INSERT INTO {taken.quoted} VALUES (3, 3, 3), (4, 4, 4)",
            f"UPDATE {taken.quoted} SET v = 9 WHERE id < 3",
            minimal,
            f"UPDATE {other.quoted} SET v = 9",
            f"UPDATE {filtered.quoted} SET v = 9",
            "SET SESSION binlog_row_image = FULL",
            f"UPDATE {taken.quoted} SET id = 5 WHERE id = 1",
            f"DELETE FROM {taken.quoted} WHERE id = 3",
        )
        run.catch_up()
        assert_equal([(frugal, taken)], (target_server, taken))
        assert target_server.query(f"SELECT v FROM {filtered.quoted} ORDER BY id") == [(1,), (2,)]
        frugal.run(minimal, f"UPDATE {taken.quoted} SET v = 7 WHERE id = 2")
        error = run.error()
    assert isinstance(error, UnshardError)
    assert error.code == "SYNC-044"
    assert error.where.table == str(taken)
    assert target_server.query(f"SELECT v FROM {taken.quoted} WHERE id = 2") == [(9,)]
    assert "take that out" in error.hint
    with TaskRun(replace(files, syncer={}).write(), spark) as again:
        again.catch_up()
        assert_equal([(frugal, taken)], (target_server, taken))
