"""What depends on the time zone of sessions is told before a task starts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from support.checked_tasks import found
from support.task_runs import TaskFiles
from unshard.testing.mariadb_server import MariadbServer

pytestmark = pytest.mark.server
WHERE = "where clause checker"
TABLES = "table structure compatibility check"
DAY = "CREATE TABLE {}.k (id INT PRIMARY KEY, n INT, ts TIMESTAMP NULL, day DATE AS (DATE({})) STORED, UNIQUE (n, day))"


@pytest.fixture
def in_china(changed_source: MariadbServer) -> Iterator[MariadbServer]:
    changed_source.run("SET GLOBAL time_zone = '+08:00'")
    yield changed_source
    changed_source.run("SET GLOBAL time_zone = 'SYSTEM'")


def test_a_generated_column_that_depends_on_the_zone(
    files: TaskFiles, in_china: MariadbServer, target_server: MariadbServer, schema: str
) -> None:
    in_china.run(DAY.format(schema, "ts"))
    (lack,) = found(files, TABLES)
    assert lack.severity == "fail"
    assert "the generated column day" in lack.short_error
    assert "CONVERT_TZ(`ts`, '+00:00', '+08:00') in place of `ts`" in lack.short_error
    assert lack.instruction.startswith(f"make {schema}.k before the start")
    target_server.run(f"CREATE DATABASE IF NOT EXISTS {schema}", DAY.format(schema, "ts"))
    assert [one.severity for one in found(files, TABLES)] == ["fail"]
    target_server.run(f"DROP TABLE {schema}.k", DAY.format(schema, "CONVERT_TZ(ts, '+00:00', '+08:00')"))
    assert found(files, TABLES) == []


def test_a_source_in_utc(files: TaskFiles, changed_source: MariadbServer, schema: str) -> None:
    changed_source.run("SET GLOBAL time_zone = '+00:00'", DAY.format(schema, "ts"))
    try:
        assert found(files, TABLES) == []
    finally:
        changed_source.run("SET GLOBAL time_zone = 'SYSTEM'")


def with_where(files: TaskFiles, where: str) -> TaskFiles:
    return replace(files, instance={"mydumper": {"where": where}})


def test_a_where_with_local_times(files: TaskFiles, in_china: MariadbServer, schema: str) -> None:
    """Two moments on both sides of midnight in China: by what the advice says, the copy has the rows of the filter."""
    in_china.run(
        f"ALTER TABLE {schema}.t ADD ts TIMESTAMP NULL",
        f"INSERT INTO {schema}.t (id, ts) VALUES (1, '2024-04-30 15:59:59'), (2, '2024-04-30 16:00:00')",
    )
    (lack,) = found(with_where(files, "ts >= '2024-05-01'"), WHERE)
    assert lack.severity == "fail"
    assert "in the source's time zone, +08:00: ts >= '2024-05-01'" in lack.short_error
    moment = "CONVERT_TZ('2024-05-01 00:00:00', '+08:00', '+00:00')"
    assert moment.replace("2024-05-01 00:00:00", "YYYY-MM-DD HH:MM:SS") in lack.instruction
    assert found(with_where(files, f"ts >= {moment}"), WHERE) == []
    assert in_china.query(f"SELECT id FROM {schema}.t WHERE ts >= {moment}") == [(2,)]
    assert found(with_where(files, "v <> 'x'"), WHERE) == []


def test_a_where_in_utc(files: TaskFiles, changed_source: MariadbServer, schema: str) -> None:
    changed_source.run(f"ALTER TABLE {schema}.t ADD ts TIMESTAMP NULL", "SET GLOBAL time_zone = '+00:00'")
    try:
        assert found(with_where(files, "ts >= '2024-05-01'"), WHERE) == []
    finally:
        changed_source.run("SET GLOBAL time_zone = 'SYSTEM'")
