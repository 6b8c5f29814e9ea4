"""Rows of a table that an ALTER TABLE of a real source changes are the source's on a real TiDB, as later rows are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any

import pytest

from support.followed_on_tidb import OnTidb
from unshard.mysql.connection import rows
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.tidb_server import TidbServer

pytestmark = pytest.mark.server

IMPLICIT = "SET STATEMENT explicit_defaults_for_timestamp = 0 FOR "
UNICODE = "CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci"

CASES: dict[str, tuple[str, ...]] = {
    "timestamps without explicit defaults": (
        "CREATE TABLE t (id INT PRIMARY KEY, a INT)",
        f"{IMPLICIT} ALTER TABLE t ADD ts TIMESTAMP",
        f"{IMPLICIT} ALTER TABLE t ADD u TIMESTAMP, ADD v DATETIME",
    ),
    "years that are zero": (
        "CREATE TABLE t (id INT PRIMARY KEY, a YEAR DEFAULT 0, b YEAR DEFAULT '0', c YEAR DEFAULT '0000')",
        "ALTER TABLE t ADD d YEAR NOT NULL DEFAULT 0, ADD e YEAR NOT NULL DEFAULT '0000'",
        "ALTER TABLE t ADD f YEAR NOT NULL DEFAULT '0', ADD g YEAR NOT NULL, ADD h YEAR DEFAULT 7",
        "ALTER TABLE t ALTER f SET DEFAULT 0, ALTER d SET DEFAULT '00', ALTER e SET DEFAULT '70'",
    ),
    "conversions behind other changes": (
        "CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(10) DEFAULT 'x', b VARCHAR(5) DEFAULT 'y', c INT)"
        " DEFAULT CHARSET latin1",
        f"ALTER TABLE t MODIFY a VARCHAR(20) NOT NULL DEFAULT 'z' COMMENT 'c', CONVERT TO {UNICODE}",
        "ALTER TABLE t ADD x VARCHAR(10), DROP COLUMN b, CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci",
        f"ALTER TABLE t ADD y VARCHAR(10) NOT NULL DEFAULT 'ä', RENAME COLUMN a TO b, DEFAULT {UNICODE}",
        f"ALTER TABLE t RENAME COLUMN b TO a, ALTER COLUMN y SET DEFAULT 'ö', CONVERT TO {UNICODE}, ADD UNIQUE (a, id)",
    ),
    "columns that others are computed from": (
        "CREATE TABLE t (id INT PRIMARY KEY, a INT, g INT AS (a + 1) VIRTUAL)",
        "ALTER TABLE t ADD b INT NOT NULL DEFAULT 3, ADD n INT AS (b + a), ADD KEY kn (n)",
        "ALTER TABLE t DROP COLUMN a, DROP COLUMN g, DROP KEY kn, DROP COLUMN n",
        "ALTER TABLE t ADD c INT NOT NULL DEFAULT 4, ADD g INT AS (c + b)",
        "ALTER TABLE t DROP COLUMN g, DROP COLUMN c",
    ),
    "columns of keys": (
        "CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT NOT NULL DEFAULT 2, c INT NOT NULL DEFAULT 3, d INT, e INT,"
        " UNIQUE k (a, b), KEY m (d, e), KEY n (a, b, c))",
        "ALTER TABLE t DROP COLUMN a, DROP COLUMN b",
        "ALTER TABLE t RENAME COLUMN d TO dd, RENAME KEY m TO mm, DROP COLUMN e",
        "ALTER TABLE t ADD f INT, ADD g INT, ADD UNIQUE fg (f, g)",
        "ALTER TABLE t DROP COLUMN f, DROP COLUMN g, DROP KEY fg, ADD f INT",
    ),
    "what is absent or there already": (
        "CREATE TABLE p (id INT PRIMARY KEY)",
        "CREATE TABLE t (id INT PRIMARY KEY, a INT, KEY k (a), CONSTRAINT fk FOREIGN KEY (a) REFERENCES p (id),"
        " CONSTRAINT ck CHECK (a > 0))",
        "ALTER TABLE t RENAME COLUMN IF EXISTS x TO y",
        "ALTER TABLE t DROP FOREIGN KEY IF EXISTS x, ADD b INT",
        "ALTER TABLE t ALTER INDEX IF EXISTS x IGNORED, RENAME KEY IF EXISTS x TO y",
        "ALTER TABLE t ALTER COLUMN IF EXISTS x SET DEFAULT 3, ALTER COLUMN IF EXISTS x DROP DEFAULT, ADD c INT",
        "ALTER TABLE t ADD CONSTRAINT fk FOREIGN KEY IF NOT EXISTS (a) REFERENCES p (id)",
        "ALTER TABLE t ADD CONSTRAINT IF NOT EXISTS ck CHECK (a > 0), DROP CONSTRAINT IF EXISTS x",
    ),
}

LOOKS = """
SELECT COLUMN_NAME, IS_NULLABLE, CHARACTER_MAXIMUM_LENGTH, COLLATION_NAME, COLUMN_COMMENT
FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = %s AND TABLE_NAME = 't' ORDER BY ORDINAL_POSITION
"""


@pytest.fixture
def followed(source_server: MariadbServer, tidb: TidbServer, schema: str) -> Iterator[OnTidb]:
    with closing(OnTidb(source_server, tidb, schema, "CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci")) as found:
        for connection in (found.source, found.target):
            rows(connection, "SET time_zone = '+00:00', sql_mode = ''")
        yield found


def both(followed: OnTidb, sql: str, *values: Any) -> tuple[Sequence[Any], Sequence[Any]]:
    return rows(followed.source, sql, values), rows(followed.target, sql, values)


@pytest.mark.parametrize("name", CASES)
def test_rows_from_before_and_after_the_statement_are_the_sources(followed: OnTidb, name: str) -> None:
    for number, sql in enumerate(CASES[name]):
        followed.run(sql)
        if not any(table.table == "t" for table in followed.names()):
            continue
        both(followed, "SET timestamp = 1700000000")
        both(followed, f"INSERT INTO {followed.schema}.t (id) VALUES ({number * 2}), ({number * 2 + 1})")
        both(followed, "SET timestamp = DEFAULT")
        upstream, there = both(followed, f"SELECT * FROM {followed.schema}.t ORDER BY id")
        assert there == upstream, sql
        if "latin1" not in sql:  # its text becomes utf8mb4 there
            upstream, there = both(followed, LOOKS, followed.schema)
            assert there == upstream, sql
        followed.assert_equal()
