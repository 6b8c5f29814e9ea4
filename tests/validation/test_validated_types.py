"""A value of each type that differs is found, with its column, and no row that is equal is told of."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.task_runs import TaskRun
from support.validated_tasks import HeldLooks, ValidationRecords, validated
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.throwaway_server import ThrowawayServer

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.scenarios]

_COLUMNS = {
    "i": ("BIGINT UNSIGNED", "18446744073709551615", "7"),
    "d": ("DECIMAL(20, 6)", "-12345678901234.5", "0"),
    "f": ("FLOAT", "0.1", "0.2"),
    "g": ("DOUBLE", "1e300", "1e299"),
    "c": ("CHAR(10)", "'ab  '", "'ac'"),
    "v": ("VARCHAR(40)", "'näme '", "'name '"),
    "t": ("TEXT", "'text\\\\'", "NULL"),
    "b": ("VARBINARY(20)", "x'00ff00'", "x'00ff'"),
    "x": ("BINARY(4)", "x'0100'", "x'0200'"),
    "l": ("BLOB", "x'fffe'", "''"),
    "e": ("ENUM('a', 'b', 'c')", "'b'", "'c'"),
    "s": ("SET('p', 'q', 'r')", "'p,r'", "'p'"),
    "j": ("JSON", """'{"b": [1, 2], "a": null}'""", """'{"b": [1, 2], "a": 0}'"""),
    "n": ("BIT(9)", "b'100000001'", "b'1'"),
    "y": ("YEAR", "2024", "2023"),
    "da": ("DATE", "'2024-02-29'", "'2024-02-28'"),
    "dt": ("DATETIME(3)", "'2024-02-29 12:34:56.789'", "'2024-02-29 12:34:56.788'"),
    "ts": ("TIMESTAMP(6) NULL", "'2024-02-29 12:34:56.789012'", "NULL"),
    "ti": ("TIME(2)", "'-12:34:56.78'", "'12:34:56.78'"),
}


def test_each_type(
    database: str, source_server: MariadbServer, target_server: ThrowawayServer, spark: SparkSession, tmp_path: Path
) -> None:
    columns = ", ".join(f"{name} {kind}" for name, (kind, _, _) in _COLUMNS.items())
    values = ", ".join(value for _, value, _ in _COLUMNS.values())
    count = len(_COLUMNS)
    source_server.run(
        f"CREATE TABLE {database}.t (id INT, k VARBINARY(8), u INT, {columns}, PRIMARY KEY (k, id))",
        *(f"INSERT INTO {database}.t VALUES ({row}, x'00{row:02x}', 0, {values})" for row in range(count + 2)),
    )
    files = validated(tmp_path, database, {"s1": source_server}, target_server)
    records = ValidationRecords(files)
    run = TaskRun(files, spark)
    held = HeldLooks(run)
    with run:
        run.reach("sync")
        run.catch_up()
        records.settled()
        with held:
            source_server.run(f"UPDATE {database}.t SET u = u + 1")
            run.catch_up()
            for row, (name, (_, _, other)) in enumerate(_COLUMNS.items()):
                target_server.run(f"UPDATE {database}.t SET {name} = {other} WHERE id = {row}")
        found = {one.key[1]: one.columns for one in records.new_errors(count)}
        assert found == {str(row): (name,) for row, name in enumerate(_COLUMNS)}
        for row, (name, (_, value, _)) in enumerate(_COLUMNS.items()):
            target_server.run(f"UPDATE {database}.t SET {name} = {value} WHERE id = {row}")
        records.new_errors(0)
        source_server.run(
            f"UPDATE {database}.t SET k = CONCAT(k, x'00') WHERE id < 5", f"DELETE FROM {database}.t WHERE id > 9"
        )
        run.catch_up()
        records.settled()
        assert len(records.errors()) == count


@pytest.mark.parametrize("kind", ["VARCHAR(20)", "ENUM('a', 'B', 'c')", "DATETIME(3)", "DECIMAL(9, 2)", "CHAR(9)"])
def test_keys_of_each_kind(
    kind: str,
    database: str,
    source_server: MariadbServer,
    target_server: ThrowawayServer,
    spark: SparkSession,
    tmp_path: Path,
) -> None:
    keys = {"DATETIME(3)": ("'2024-01-01'", "'2024-01-02 00:00:00.120'"), "DECIMAL(9, 2)": ("1", "-2.50")}
    first, second = keys.get(kind, ("'a'", "'B'"))
    source_server.run(
        f"CREATE TABLE {database}.t (k {kind} PRIMARY KEY, v INT)",
        f"INSERT INTO {database}.t VALUES ({first}, 1), ({second}, 2)",
    )
    files = validated(tmp_path, database, {"s1": source_server}, target_server)
    records = ValidationRecords(files)
    run = TaskRun(files, spark)
    held = HeldLooks(run)
    with run:
        run.reach("sync")
        run.catch_up()
        records.settled()
        with held:
            source_server.run(f"UPDATE {database}.t SET v = v + 1")
            run.catch_up()
            target_server.run(f"UPDATE {database}.t SET v = 0 WHERE k = {second}")
        (error,) = records.new_errors(1)
        assert error.columns == ("v",)
        target_server.run(f"UPDATE {database}.t SET v = 3 WHERE k = {second}")
        records.new_errors(0)
