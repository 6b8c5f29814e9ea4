"""Statements that leave the collation of a character set to the server."""

from __future__ import annotations

import pytest

from unshard.ddl.context import Context
from unshard.ddl.cursor import tokens_of
from unshard.ddl.names import names_charset_alone

ALONE = (
    "CREATE TABLE t (v VARCHAR(20) UNIQUE) DEFAULT CHARSET=utf8mb4",
    "CREATE TABLE t (v VARCHAR(20) COLLATE utf8mb4_bin) CHARACTER SET = 'UTF8MB4' ENGINE=InnoDB",
    "CREATE TABLE t (u INT, v ENUM('a', 'b') CHAR SET utf8mb4 NOT NULL, w CHAR(9) CHARSET utf8mb4 COLLATE utf8mb4_bin)",
    "ALTER TABLE t ADD v VARCHAR(20) CHARACTER SET utf8mb4, ADD w VARCHAR(9) COLLATE utf8mb4_bin",
    "ALTER TABLE t ADD (v VARCHAR(20) CHARACTER SET utf8mb4, w VARCHAR(9) COLLATE utf8mb4_bin)",
    "ALTER TABLE t CONVERT TO CHARACTER SET utf8mb4",
    "CREATE DATABASE s CHARACTER SET utf8mb4",
    "ALTER TABLE t ADD v VARCHAR(9) CHARACTER SET utf8mb4, COLLATE utf8mb4_bin",
    "ALTER TABLE t CONVERT TO CHARACTER SET utf8mb4, COLLATE utf8mb4_bin",
    "ALTER TABLE t ENGINE=InnoDB, DEFAULT CHARSET utf8mb4, ADD v VARCHAR(9) COLLATE utf8mb4_bin",
)
NOT_ALONE = (
    "CREATE TABLE t (v VARCHAR(20) CHARACTER SET latin1) DEFAULT CHARSET=utf8mb3",
    "CREATE TABLE t (v VARCHAR(20) CHARSET utf8mb4 NOT NULL DEFAULT 'a' COLLATE utf8mb4_bin)",
    "CREATE TABLE t (v VARCHAR(20) CHARSET utf8mb4 BINARY) COLLATE=utf8mb4_bin ENGINE=InnoDB DEFAULT CHARSET=utf8mb4",
    "CREATE TABLE t (v VARCHAR(20), w CHAR(9) AS (CAST(v AS CHAR(9) CHARACTER SET utf8mb4)) COMMENT 'CHARSET utf8mb4')",
    "ALTER TABLE t CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
    "ALTER TABLE t ALTER v SET DEFAULT 'utf8mb4'",
    "CREATE TABLE t (v VARCHAR(9)) CHARSET utf8mb4, COLLATE utf8mb4_bin, ENGINE=InnoDB",
    "ALTER TABLE t DEFAULT CHARSET utf8mb4, ADD v INT, COLLATE utf8mb4_bin",
)


@pytest.mark.parametrize("sql", [*ALONE, *NOT_ALONE])
def test_a_character_set_without_a_collation(sql: str) -> None:
    assert names_charset_alone(tokens_of(sql, Context("s")), "utf8mb4") == (sql in ALONE)


def test_utf8_is_utf8mb3() -> None:
    assert names_charset_alone(tokens_of("ALTER TABLE t CHARSET utf8", Context("s")), "utf8mb3")
