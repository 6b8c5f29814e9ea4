"""Copies of servers whose SHOW CREATE names no default collation, into servers that have another default."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.task_runs import TaskFiles, TaskRun
from unshard.model.table import TableName
from unshard.testing.compare import assert_equal
from unshard.testing.throwaway_server import ThrowawayServer

pytestmark = [pytest.mark.server, pytest.mark.spark]

COLUMNS = "id INT PRIMARY KEY, v VARCHAR(9), w VARCHAR(9) CHARACTER SET utf8mb4, x VARCHAR(9) CHARACTER SET utf8"
COLLATIONS = """
SELECT TABLE_NAME, '', TABLE_COLLATION FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s
UNION ALL SELECT TABLE_NAME, COLUMN_NAME, COLLATION_NAME FROM information_schema.COLUMNS
WHERE TABLE_SCHEMA = %s AND COLLATION_NAME IS NOT NULL
UNION ALL SELECT '', '', DEFAULT_COLLATION_NAME FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = %s
ORDER BY 1, 2
"""


def collations(server: ThrowawayServer, schema: str) -> list[tuple[str, str, str]]:
    """By table and column, "" for the table's own and the schema's."""
    found = server.query(COLLATIONS, (schema,) * 3)
    return [(table, column, name.replace("utf8_", "utf8mb3_")) for table, column, name in found]


@pytest.mark.parametrize("target", ["mysql_target", "mysql_80", "other_mariadb"])
@pytest.mark.parametrize("source", ["mysql_56", "old_mariadb"])
def test_they_keep_the_collations_of_the_source(
    source: str, target: str, request: pytest.FixtureRequest, spark: SparkSession, schema: str, tmp_path: Path
) -> None:
    """Before and after a DDL: what the target makes by itself would tell other texts apart in a key."""
    there, here = request.getfixturevalue(source), request.getfixturevalue(target)
    there.run(
        f"CREATE DATABASE {schema} CHARACTER SET utf8mb4",
        f"CREATE TABLE {schema}.wide ({COLUMNS}, UNIQUE KEY (v))",
        f"CREATE TABLE {schema}.narrow ({COLUMNS}) CHARACTER SET latin1",
        f"INSERT INTO {schema}.wide VALUES (1, 'a', 'b', 'c'), (2, 'a\U0001f600', 'b', 'c')",
    )
    files = TaskFiles(tmp_path, schema, {"s1": there}, here, (schema,)).write()
    with TaskRun(files, spark) as run:
        run.catch_up()
        assert collations(here, schema) == collations(there, schema)
        there.run(
            f"ALTER TABLE {schema}.wide ADD y VARCHAR(9), ADD z VARCHAR(9) CHARACTER SET utf8mb4",
            f"ALTER TABLE {schema}.narrow ADD y VARCHAR(9), ADD z VARCHAR(9) CHARACTER SET utf8mb4",
            f"CREATE TABLE {schema}.later ({COLUMNS})",
            f"INSERT INTO {schema}.wide VALUES (3, 'b', 'b', 'c', 'd', 'e')",
        )
        run.catch_up()
    assert collations(here, schema) == collations(there, schema)
    assert_equal([(there, TableName(schema, "wide"))], (here, TableName(schema, "wide")))
