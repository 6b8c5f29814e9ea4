"""A task whose source gives columns other types: TiDB's old rows get the values that the source's conversion made."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.operated_tasks import ctl, go_on, operators_of, stopped_run
from support.shard_runs import Shards
from support.source_servers import new_source
from support.task_runs import TaskFiles, TaskRun
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.tidb_server import TidbServer

pytestmark = [pytest.mark.server, pytest.mark.spark]

LATIN1 = "CHARACTER SET latin1"
CONVERTED = [
    (f"TEXT {LATIN1}", "BLOB", ["'a'", "'é'", "NULL"]),
    ("BLOB", f"VARCHAR(100) {LATIN1}", ["x'C3A9E9'", "x'61E962'", "''"]),
    ("TIME", "DATETIME", ["'10:11:12'", "'-1:00:00'"]),
    ("TIME", "DATE", ["NULL", "'10:11:12'"]),
    ("FLOAT", "VARCHAR(40)", ["3.14159274", "1e15", "-0.1"]),
    ("DOUBLE", "TEXT", ["1e15", "0.1", "1.5e300"]),
    ("INT(6) ZEROFILL", "VARCHAR(20)", ["7", "1234567"]),
    ("YEAR", "CHAR(4)", ["2024", "0"]),
    ("VARCHAR(40)", "UUID", ["'123E4567-E89B-12D3-A456-426655440000'", "'123e4567e89b12d3a456426655440001'"]),
    ("UUID", "BINARY(16)", ["NULL", "'123e4567-e89b-12d3-a456-426655440000'"]),
    ("INET6", "BINARY(16)", ["NULL", "'::ffff:1.2.3.4'"]),
]
"""A type, another one, and values of the first; the row with the first value is changed after the statement."""


@dataclass(slots=True)
class Converting:
    """A task over tables of one column `v`, which is copied to TiDB before their types are changed."""

    files: TaskFiles
    source: MariadbServer
    spark: SparkSession

    def table(self, name: str, kind: str, values: list[str], key: str = "PRIMARY KEY") -> None:
        listed = ", ".join(f"({number}, {value})" for number, value in enumerate(values))
        self.source.run(
            f"CREATE TABLE {self.files.name}.{name} (id INT {key}, v {kind})",
            f"INSERT INTO {self.files.name}.{name} VALUES {listed}",
        )

    def modify(self, name: str, kind: str) -> None:
        self.source.run("SET sql_mode = ''", f"ALTER TABLE {self.files.name}.{name} MODIFY v {kind}")

    def assert_equal(self, name: str) -> None:
        sql = f"SELECT id, v FROM {self.files.name}.{name} ORDER BY id"
        assert self.files.target.query(sql) == self.source.query(sql), name

    def go_on(self) -> None:
        go_on(self.files, self.spark)


@pytest.fixture
def converting(
    spark: SparkSession, source_server: MariadbServer, tidb: TidbServer, schema: str, tmp_path: Path
) -> Converting:
    source_server.run(f"CREATE DATABASE {schema} CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci")
    return Converting(TaskFiles(tmp_path, schema, {"s1": source_server}, tidb, (schema,)).write(), source_server, spark)


def test_old_rows_have_the_values_of_the_source(converting: Converting) -> None:
    for number, (kind, _, values) in enumerate(CONVERTED):
        converting.table(f"t_{number}", kind, values)
    converting.go_on()
    for number, (_, kind, _) in enumerate(CONVERTED):
        converting.modify(f"t_{number}", kind)
        converting.source.run(f"UPDATE {converting.files.name}.t_{number} SET id = 100 WHERE id = 0")
    converting.go_on()
    for number in range(len(CONVERTED)):
        converting.assert_equal(f"t_{number}")


def test_values_that_can_not_be_brought_stop_the_task(converting: Converting) -> None:
    """A table without a key: a human gives the statement and the values. Without rows nothing stops."""
    converting.table("clocks", "TIME", ["'10:11:12'"], key="")
    converting.table("empty", "TIME", ["'10:11:12'"], key="")
    name, target = f"{converting.files.name}.clocks", converting.files.target
    converting.source.run(f"DELETE FROM {converting.files.name}.empty")
    converting.go_on()
    converting.modify("empty", "DATETIME")
    converting.modify("clocks", "DATETIME")
    converting.source.run(f"INSERT INTO {name} VALUES (1, '2024-02-29 10:11:12')")
    error = stopped_run(converting.files, converting.spark)
    assert getattr(error, "code", "") == "DDL-034"
    assert "fills v of rows" in str(error)
    assert "no unique key" in str(error)
    assert [str(value) for (value,) in target.query(f"SELECT v FROM {name}")] == ["10:11:12"]
    ctl("binlog", "replace", str(converting.files.task_path), "-s", "s1", f"ALTER TABLE {name} MODIFY v DATETIME")
    converting.go_on()
    ((brought,),) = converting.source.query(f"SELECT v FROM {name} WHERE id = 0")
    target.run(f"UPDATE {name} SET v = '{brought}' WHERE id = 0")
    converting.assert_equal("clocks")
    assert operators_of(converting.files) == [("replace", "applied")]


@pytest.mark.parametrize("mode", ["pessimistic", "optimistic"])
def test_each_shard_keeps_the_values_of_its_own_statement(
    mode: str, spark: SparkSession, source_server: MariadbServer, tidb: TidbServer, schema: str, tmp_path: Path
) -> None:
    row = "id BIGINT NOT NULL PRIMARY KEY, v VARCHAR(20) NOT NULL, t TIME DEFAULT '10:11:12'"
    with new_source(2) as other:
        sources = {"s1": source_server, "s2": other}
        shards = Shards(schema, sources, tidb, tmp_path, tables=1, row=row, keys={"shard-mode": mode})
        with TaskRun(shards.files(), spark) as run:
            run.catch_up()
            for number, source in enumerate(sources):
                shards.insert(source, 0, 1)
                change = f"ALTER TABLE {shards.at(0)} MODIFY t DATETIME"
                sources[source].run(f"SET timestamp = {1_500_000_000 + 100_000 * number}", change)
                shards.insert(source, 0, 2)
            shards.settle(run)
