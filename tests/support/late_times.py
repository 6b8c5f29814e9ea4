"""TIME values of MariaDB that its targets have not: the task stops, and clamps them where its file says so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from support.checked_tasks import found, statement
from support.comparisons import compared
from support.shard_runs import ends_at
from support.task_runs import TaskFiles, TaskRun
from support.validated_tasks import ValidatedShop
from unshard.cli.status import show_status
from unshard.compare.result import CompareVerdict
from unshard.config.files import load_files
from unshard.errors import UnshardError
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.throwaway_server import ThrowawayServer

VALUES = "value size checker"
CLAMP = {"time-values": "clamp"}
LATE, EARLY = "838:59:59.000001", "-838:59:59.999999"


def stopped(files: TaskFiles, spark: SparkSession) -> UnshardError:
    """What a run of the task stops with."""
    with TaskRun(files, spark).failing() as run:
        error = run.error()
    assert isinstance(error, UnshardError), error
    return error


class LateTimes:
    """A source with such values: in `t` (a key), `bare` (none), and `keyed` may get some in a unique key."""

    def __init__(
        self, source: MariadbServer, target: ThrowawayServer, schema: str, folder: Path, spark: SparkSession
    ) -> None:
        self.source, self.target, self.schema, self.spark = source, target, schema, spark
        columns = "a TIME(6), b TIME(3), c TIME"
        source.run(
            f"CREATE DATABASE {schema} CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci",
            f"CREATE TABLE {schema}.t (id INT, part VARCHAR(9), {columns}, PRIMARY KEY (id, part))",
            f"CREATE TABLE {schema}.bare ({columns})",
            f"CREATE TABLE {schema}.keyed (id INT PRIMARY KEY, a TIME(6) UNIQUE)",
            f"INSERT INTO {schema}.t VALUES (1, 'x', '{LATE}', '1:00:00.5', '838:59:59'),"
            f" (2, '', '{EARLY}', NULL, NULL), (3, 'y', '838:59:59', '838:59:58.999', NULL)",
            f"INSERT INTO {schema}.bare VALUES ('1:00:00', '838:59:59.1', NULL)",
        )
        self.files = TaskFiles(folder, f"task_{schema}", {"s1": source}, target, (schema,)).write()

    def change(self, keys: Mapping[str, Any]) -> None:
        """Put these keys into the task's file."""
        self.files = replace(self.files, keys={**self.files.keys, **keys}).write()

    def rows(self, server: ThrowawayServer, table: str) -> list[tuple[Any, ...]]:
        """The rows of a table, its times as text."""
        keys = "id, part, " if table == "t" else ""
        columns = ", ".join(f"CAST({name} AS CHAR)" for name in "abc")
        return sorted(server.query(f"SELECT {keys}{columns} FROM {self.schema}.{table}"), key=str)

    def clamped(self) -> list[tuple[Any, ...]]:
        """The records of the task: table, key, column and value."""
        name = f"`{self.files.meta}`.`{self.files.name}_clamped_value`"
        return self.target.query(
            f"SELECT source_table, row_key, name, value FROM {name} WHERE source = 's1' AND target = source_table"
            " ORDER BY source_table, row_key, name"
        )

    def assert_clamped(self) -> None:
        """The target has the values of the source, clamped; a comparison takes both ends as equal."""
        for table in ("t", "bare"):
            wanted = [
                tuple(_clamped(value) if isinstance(value, str) else value for value in row)
                for row in self.rows(self.source, table)
            ]
            assert self.rows(self.target, table) == wanted
        assert compared(self.files, self.spark).verdict is CompareVerdict.EQUAL


def _clamped(value: str) -> str:
    """The value as the target has it, in the column's own digits."""
    whole, point, digits = value.partition(".")
    return f"{whole}.{'0' * len(digits)}" if point and whole.lstrip("-") == "838:59:59" else value


def carry_late_times(
    source: MariadbServer, target: ThrowawayServer, schema: str, folder: Path, spark: SparkSession
) -> None:
    """The check tells them, the copy stops; with the key in its file the task goes on, copies and follows."""
    case = LateTimes(source, target, schema, folder, spark)
    findings = found(case.files, VALUES)
    assert [(one.severity, one.self) for one in findings] == [("fail", f"{schema}.bare"), ("fail", f"{schema}.t")]
    assert all("put `time-values: clamp` into the task's file" in one.instruction for one in findings)
    case.change({"ignore-checking-items": ["value_limits"]})
    error = stopped(case.files, spark)
    assert error.code == "LOAD-006"
    assert "put `time-values: clamp` into the task's file and start again" in error.hint
    case.change(CLAMP)
    case.change({"ignore-checking-items": []})
    findings = found(case.files, VALUES)
    assert [one.severity for one in findings] == ["warn", "warn"]
    assert [row[0] for row in source.query(statement(findings[1]))] == [1, 2]
    with TaskRun(case.files, spark) as run:
        run.catch_up()
        copied = [
            (f"{schema}.bare", "", "b", "838:59:59.100"),
            (f"{schema}.t", "`id`=1 AND `part`='x'", "a", LATE),
            (f"{schema}.t", "`id`=2 AND `part`=''", "a", EARLY),
        ]
        assert case.clamped() == copied
        case.assert_clamped()
        source.run(
            f"INSERT INTO {schema}.t VALUES (4, 'z', '{EARLY}', '838:59:59.25', NULL), (5, 'z', NULL, NULL, NULL)",
            f"UPDATE {schema}.t SET a = '1:00:00' WHERE id = 1",
            f"UPDATE {schema}.t SET part = 'moved' WHERE id = 2",
            f"UPDATE {schema}.t SET b = '-838:59:59.5' WHERE id = 5",
            f"INSERT INTO {schema}.bare VALUES ('{LATE}', NULL, NULL), (NULL, '838:59:59.2', NULL)",
            f"DELETE FROM {schema}.bare WHERE b = '838:59:59.1'",
        )
        run.catch_up()
        assert run.sync.missing == 0
    case.assert_clamped()
    assert case.clamped() == [
        (f"{schema}.bare", "", "a", LATE),
        (f"{schema}.bare", "", "b", "838:59:59.200"),
        *copied[1:],
        (f"{schema}.t", "`id`=2 AND `part`='moved'", "a", EARLY),
        (f"{schema}.t", "`id`=4 AND `part`='z'", "a", EARLY),
        (f"{schema}.t", "`id`=4 AND `part`='z'", "b", "838:59:59.250"),
        (f"{schema}.t", "`id`=5 AND `part`='z'", "b", "-838:59:59.500"),
    ]
    lines: list[str] = []
    subtasks = load_files(case.files.task_path, case.files.source_paths).subtasks
    show_status(subtasks, lines.append, tables=False, as_json=False)
    assert f"6 values of {schema}.t beyond 838:59:59" in "\n".join(lines)


def stop_at_late_keys(
    source: MariadbServer, target: ThrowawayServer, schema: str, folder: Path, spark: SparkSession
) -> None:
    """Two values of a key would become one row: they stop the task whatever its file says. So do files of SQL."""
    case = LateTimes(source, target, schema, folder, spark)
    sql = {"mydumpers": {"own": {"extra-args": "", "format": "sql"}}}
    case.change({**CLAMP, **sql, "ignore-checking-items": ["value_limits"]})
    case.files = replace(case.files, instance={"mydumper-config-name": "own"}).write()
    assert stopped(case.files, spark).code == "LOAD-006"
    case.change({"ignore-checking-items": []})
    assert [one.severity for one in found(case.files, VALUES)] == ["fail", "fail"]
    source.run(f"UPDATE {schema}.t SET a = NULL", f"UPDATE {schema}.bare SET b = NULL")
    target.run(f"DROP DATABASE `{case.files.meta}`", f"DROP DATABASE {schema}")
    case.files = replace(case.files, folder=folder / "anew", keys=CLAMP, instance={}).write()
    with TaskRun(case.files, spark).failing() as run:
        run.catch_up()
        source.run(f"INSERT INTO {schema}.keyed VALUES (1, '{LATE}')")
        error = run.error()
    assert isinstance(error, UnshardError)
    assert error.code in ("SYNC-004", "SYNC-073")
    assert target.query(f"SELECT COUNT(*) FROM {schema}.keyed") == [(0,)]
    source.run(f"DELETE FROM {schema}.keyed")


def follow_after_deaths(
    source: MariadbServer,
    target: ThrowawayServer,
    schema: str,
    folder: Path,
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A value stops a batch of which a part is applied: with the key in the file that batch is finished, once."""
    case = LateTimes(source, target, schema, folder, spark)
    source.run(f"DELETE FROM {schema}.t", f"DELETE FROM {schema}.bare")
    with TaskRun(case.files, spark).failing() as run:
        run.catch_up()
        rows = ", ".join(f"({number}, 'a', '{LATE if number == 900 else '1:00:00'}')" for number in range(1, 1000))
        source.run(f"INSERT INTO {schema}.t (id, part, a) VALUES {rows}")
        error = run.error()
    assert isinstance(error, UnshardError)
    assert "put `time-values: clamp` into the task's file and start again" in error.hint
    case.change(CLAMP)
    for place in ("sync-chunk-commit", "sync-chunk-after", "sync-close-before"):
        assert ends_at(place, case.files, spark, monkeypatch)
        assert case.clamped() == []
    assert ends_at("sync-close-after", case.files, spark, monkeypatch)
    with TaskRun(case.files, spark) as run:
        run.catch_up()
    case.assert_clamped()
    assert case.clamped() == [(f"{schema}.t", "`id`=900 AND `part`='a'", "a", LATE)]


def validate_late_times(
    source: MariadbServer, target: ThrowawayServer, schema: str, folder: Path, spark: SparkSession
) -> None:
    """A clamped value is no difference; another value of the target is one."""
    LateTimes(source, target, schema, folder, spark)
    shop = ValidatedShop(schema, source, target, folder)
    with shop.validating(spark, shop.files(CLAMP)) as validating:
        source.run(f"UPDATE {schema}.t SET b = '{LATE}' WHERE id = 3")
        validating.settle()
        assert validating.records.errors() == []
        with validating.held:
            source.run(f"UPDATE {schema}.t SET c = '2:00:00'")
            validating.run.catch_up()
            target.run(f"UPDATE {schema}.t SET a = '838:59:58' WHERE id = 1")
        (error,) = validating.records.new_errors(1)
        assert "838:59:58" in str(error)
