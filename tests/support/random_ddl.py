"""Random DDL for one schema of a real server, by seed. The server refuses many of the statements: that is its say."""

from __future__ import annotations

import random
from collections.abc import Sequence

from unshard.model.table import Table

SHARED = {
    "type": (
        "INT",
        "BIGINT UNSIGNED NOT NULL DEFAULT 3",
        "VARCHAR(20)",
        "CHAR(7) CHARACTER SET ucs2",
        "DECIMAL(12,4)",
        "DATETIME(2) DEFAULT NOW(2) ON UPDATE NOW(2)",
        "TIMESTAMP(3) NULL",
        "TIMESTAMP",
        "ENUM('a','b''\\\\')",
        "SET('x','y') NOT NULL",
        "VARBINARY(16)",
        "DOUBLE",
        "BIT(3) DEFAULT b'101'",
        "YEAR",
        "TEXT",
        "BLOB NOT NULL",
        "JSON",
        "POINT",
        "TINYINT(1) COMMENT 'it''s'",
        "VARCHAR(9) DEFAULT (CONCAT('a', 'b'))",
        "TIME(6)",
        "DATE",
        "MEDIUMTEXT CHARACTER SET latin1 COLLATE latin1_german1_ci",
        "FLOAT ZEROFILL",
        "INT GENERATED ALWAYS AS (1 + 1) STORED",
        "INT AS (LENGTH('é')) VIRTUAL",
        "SERIAL",
        "NATIONAL VARCHAR(5)",
    ),
    "table": (
        "CREATE TABLE {new} (id INT PRIMARY KEY, {a} {type}, {b} {type}) {option}",
        "CREATE TABLE {new} ({a} {type}, {b} {type}, KEY ({a}), UNIQUE KEY ({b}), CHECK ({a} <> 1))",
        "CREATE TABLE {new} ({a} INT, {b} {type}, KEY ({a}), FOREIGN KEY ({a}) REFERENCES {other} ({column}))",
        "CREATE TABLE {new} ({a} INT) PARTITION BY RANGE ({a}) (PARTITION p0 VALUES LESS THAN (5),"
        " PARTITION p1 VALUES LESS THAN MAXVALUE)",
        "CREATE TABLE {new} LIKE {table}",
        "CREATE TABLE {new} SELECT * FROM {table}",
        "CREATE TABLE IF NOT EXISTS {table} (a INT)",
        "CREATE OR REPLACE TABLE {table} ({a} {type})",
        "RENAME TABLE {table} TO {new}",
        "DROP TABLE {table}",
        "DROP TABLE IF EXISTS {table}, nothing, {other}",
        "TRUNCATE TABLE {table}",
        "CREATE UNIQUE INDEX {key} ON {table} ({column}, {second})",
        "CREATE INDEX {key} ON {table} ({column}(3) DESC)",
        "DROP INDEX {index} ON {table}",
        "ALTER DATABASE CHARACTER SET {charset}",
    ),
    "part": (
        "ADD COLUMN {a} {type}",
        "ADD {a} INT INVISIBLE DEFAULT 5",
        "ADD {a} {type} FIRST",
        "ADD {a} {type} AFTER {column}",
        "ADD ({a} {type}, {b} {type})",
        "DROP COLUMN {column}",
        "MODIFY {column} {type}",
        "CHANGE {column} {a} {type} AFTER {second}",
        "RENAME COLUMN {column} TO {a}",
        "ALTER {column} SET DEFAULT 1",
        "ALTER COLUMN {column} DROP DEFAULT",
        "ADD INDEX {key} ({column})",
        "ADD UNIQUE ({column}, {second})",
        "ADD PRIMARY KEY ({column})",
        "DROP PRIMARY KEY",
        "DROP INDEX {index}",
        "RENAME INDEX {index} TO {key}",
        "ADD CONSTRAINT {key} CHECK ({column} IS NOT NULL)",
        "DROP CONSTRAINT {index}",
        "ADD FOREIGN KEY ({column}) REFERENCES {other} ({second})",
        "COMMENT 'c{a}'",
        "{option}",
        "CONVERT TO CHARACTER SET {charset}",
        "ORDER BY {column}",
        "FORCE",
        "RENAME TO {new}",
        "ADD FULLTEXT {key} ({column})",
        "PARTITION BY HASH ({column}) PARTITIONS 3",
        "REMOVE PARTITIONING",
        "DROP PARTITION p0",
        "COALESCE PARTITION 1",
        "REORGANIZE PARTITION p1 INTO (PARTITION p1 VALUES LESS THAN (9), PARTITION p2 VALUES LESS THAN MAXVALUE)",
    ),
    "option": (
        "ROW_FORMAT = DYNAMIC",
        "DEFAULT CHARSET {charset}",
        "COLLATE utf8mb4_unicode_ci",
        "AUTO_INCREMENT = 9",
        "",
    ),
    "charset": ("latin1", "utf8mb4", "gbk", "utf8mb3 COLLATE utf8mb3_bin", "utf8mb4 COLLATE utf8mb4_bin", "binary"),
}

MARIADB = {
    "type": ("INET6", "UUID NOT NULL DEFAULT UUID()", "VARCHAR(30) COMPRESSED", "INT WITHOUT SYSTEM VERSIONING"),
    "table": (
        "ALTER TABLE IF EXISTS {table} WAIT 2 ADD COLUMN IF NOT EXISTS {column} INT, DROP INDEX IF EXISTS nothing",
        "CREATE OR REPLACE INDEX {key} ON {table} ({column})",
    ),
    "part": (
        "ALTER INDEX {index} IGNORED",
        "ADD SYSTEM VERSIONING",
        "DROP SYSTEM VERSIONING",
        "DROP IF EXISTS {column}",
        "ENGINE = Aria",
        "ADD COLUMN ({a} DATE NOT NULL, {b} DATE NOT NULL), ADD PERIOD FOR {key} ({a}, {b})",
        "PAGE_CHECKSUM = 1",
        "CONVERT PARTITION p0 TO TABLE {new}",
    ),
    "option": ("ENGINE = Aria", "WITH SYSTEM VERSIONING", "PAGE_COMPRESSED = 1"),
}

MYSQL = {
    "type": (
        "VECTOR(3)",
        "POINT SRID 4326",
        "VARCHAR(9) COLLATE utf8mb4_0900_as_cs",
        "BINARY(16) DEFAULT (UUID_TO_BIN('x'))",
        "DATE DEFAULT (CURRENT_DATE + INTERVAL 1 DAY)",
        "DOUBLE AS (ROUND(1.5)) STORED",
    ),
    "table": (
        "CREATE INDEX {key} ON {table} ((LOWER({column})))",
        "CREATE TABLE {new} TABLE {table}",
        "CREATE TABLE {new} ({a} INT, {b} {type}, KEY (({a} + 1)), KEY ({a}) INVISIBLE)",
    ),
    "part": (
        "ALTER INDEX {index} INVISIBLE",
        "ALTER INDEX {index} VISIBLE",
        "ALTER COLUMN {column} SET INVISIBLE",
        "ALTER COLUMN {column} SET DEFAULT (UUID())",
        "ADD CONSTRAINT {key} CHECK ({column} > 0) NOT ENFORCED",
        "ALTER CHECK {index} ENFORCED",
        "ADD INDEX {key} ((UPPER({column})))",
        "ALGORITHM = INSTANT",
        "LOCK = NONE",
        "SECONDARY_ENGINE = rapid",
        "ADD {a} INT, ALGORITHM = COPY",
    ),
    "option": ("STATS_PERSISTENT = 0", "KEY_BLOCK_SIZE = 8", "SECONDARY_ENGINE = rapid"),
}


class RandomDdl:
    """A stream of statements; `own` are the words of one server beside those that all have."""

    def __init__(self, seed: int, own: dict[str, tuple[str, ...]]) -> None:
        self._chance = random.Random(seed)
        self._words = {name: (*words, *own.get(name, ())) for name, words in SHARED.items()}
        self._number = 0

    def statement(self, tables: Sequence[Table]) -> str:
        """One on these tables as they are now."""
        if not tables or self._chance.random() < 0.35:
            frame = self._chance.choice(self._words["table"][: None if tables else 2])
            return self._filled(frame, self._names(tables))
        names = self._names(tables)
        parts = [self._chance.choice(self._words["part"]) for _ in range(self._chance.choice((1, 1, 1, 2, 3)))]
        filled = [self._filled(part, {**self._names(tables), "table": names["table"]}) for part in parts]
        return f"ALTER TABLE {names['table']} {', '.join(filled)}"

    def _names(self, tables: Sequence[Table]) -> dict[str, str]:
        """A choice of names that are there, and new ones."""
        self._number += 1
        new = {word: f"{word[0]}{self._number}" for word in ("a", "b", "new", "key")}
        if not tables:
            return new
        table, other = self._chance.choice(tables), self._chance.choice(tables)
        column, second = (f"`{self._chance.choice(table.columns).name}`" for _ in range(2))
        index = self._chance.choice([*(index.name for index in table.indexes), "nothing"])
        there = {"table": table.name.table, "other": other.name.table}
        return {**new, **there, "column": column, "second": second, "index": f"`{index}`"}

    def _filled(self, frame: str, names: dict[str, str]) -> str:
        while "{" in frame:
            at = frame.index("{")
            word = frame[at + 1 : frame.index("}", at)]
            value = names[word] if word in names else self._chance.choice(self._words[word])
            frame = frame[:at] + value + frame[at + len(word) + 2 :]
        return frame
