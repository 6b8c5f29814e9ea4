"""What depends on the time zone of sessions is told before a task starts."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.checked_tasks import found
from support.task_runs import TaskFiles
from unshard.testing.mariadb_server import MariadbServer

pytestmark = pytest.mark.server
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
