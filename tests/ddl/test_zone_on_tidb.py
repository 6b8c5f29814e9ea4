"""The time zone of a statement on TiDB: UTC, unless the values that it makes depend on another one. No server."""

from __future__ import annotations

from typing import Any

import pytest

from unshard.ddl.context import Context
from unshard.ddl.zones import session_zone

CHINA = Context(default_zone="+08:00")


class Tidb:
    """A connection that is asked for its greeting only."""

    def get_server_info(self) -> str:
        return "8.0.11-TiDB-v7.1.0"


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE t ADD INDEX k (ts)",
        "CREATE INDEX k ON t (ts)",
        "ALTER TABLE t ADD c VARCHAR(20) NOT NULL DEFAULT 'x', DROP COLUMN d, ADD UNIQUE (ts, c)",
        "ALTER TABLE t RENAME COLUMN a TO b",
        "DROP TABLE t",
    ],
)
def test_a_statement_that_depends_on_no_zone(statement: str) -> None:
    connection: Any = Tidb()
    assert session_zone(connection, CHINA, statement) == "+00:00"
    assert session_zone(connection, Context(time_zone="Asia/Shanghai"), statement) == "+00:00"


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE t ADD d TIMESTAMP NOT NULL DEFAULT '2024-01-01 00:00:00'",
        "ALTER TABLE t ADD d DATETIME DEFAULT CURRENT_TIMESTAMP",
        "ALTER TABLE t ADD d DATE DEFAULT 20240101",
        "ALTER TABLE t MODIFY ts DATETIME, ADD INDEX k (ts)",
        "ALTER TABLE t CHANGE ts at VARCHAR(30)",
        "ALTER TABLE t ADD d DATE AS (DATE(ts))",
    ],
)
def test_one_whose_values_do(statement: str) -> None:
    connection: Any = Tidb()
    assert session_zone(connection, CHINA, statement) == "+08:00"
