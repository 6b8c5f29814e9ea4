"""A partition is taken from TiDB's table only where TiDB has put the same rows into it as the source."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from support.followed_on_tidb import OnTidb
from unshard.errors import DdlError
from unshard.mysql.connection import rows
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.tidb_server import TidbServer

pytestmark = pytest.mark.server

NUMBERS = ["-9223372036854775808", "-7", "-6", "-1", "0", "1", "2", "5", "6", "7", "9223372036854775807", "NULL"]
DAYS = [f"'{day}'" for day in ("1000-01-01", "1999-12-31", "2024-01-31", "2024-02-01", "2024-03-01", "9999-12-31")]
TEXTS = [f"'{text}'" for text in ("", "a", "A", "ä", "m", "M", "m ", "n", "ß", "z", "Z", "😀")]
BY_NAME = "(partition p0 values less than ('m'), partition p1 values less than (maxvalue))"


@pytest.fixture
def followed(source_server: MariadbServer, tidb: TidbServer, schema: str) -> Iterator[OnTidb]:
    found = OnTidb(source_server, tidb, schema, "CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci")
    yield found
    found.close()


def fill(followed: OnTidb, values: list[str]) -> None:
    for side in (followed.source, followed.target):
        rows(side, f"INSERT INTO {followed.schema}.t VALUES {', '.join(f'({value})' for value in values)}")


def contents(followed: OnTidb) -> list[Any]:
    found = []
    for side in (followed.source, followed.target):
        rows(side, "SET NAMES utf8mb4")
        found.append(sorted(map(repr, rows(side, f"SELECT * FROM {followed.schema}.t"))))
    assert found[0] == found[1]
    return found[1]


PLACED = {
    "range": (
        "a BIGINT",
        "RANGE (a) (partition p0 values less than (-6), partition p1 values less than (2 + 3),"
        " partition p2 values less than maxvalue)",
        NUMBERS,
    ),
    "days": (
        "d DATE",
        "RANGE (TO_DAYS(d)) (partition p0 values less than (TO_DAYS('2024-02-01')),"
        " partition p1 values less than (TO_DAYS('2024-03-01')), partition p2 values less than maxvalue)",
        [*DAYS, "NULL"],
    ),
    "seconds": (
        "d TIMESTAMP NULL",
        "RANGE (UNIX_TIMESTAMP(d)) (partition p0 values less than (UNIX_TIMESTAMP('2024-02-01 00:00:00')),"
        " partition p1 values less than (UNIX_TIMESTAMP('2024-03-01 00:00:00')),"
        " partition p2 values less than maxvalue)",
        [f"'2024-{at}'" for at in ("01-31 18:29:59", "01-31 18:30:00", "02-29 18:29:59", "02-29 18:30:00")],
    ),
    "columns": (
        "d DATE",
        "RANGE COLUMNS (d) (partition p0 values less than ('2024-02-01'), partition p1 values less than (maxvalue))",
        [*DAYS, "NULL"],
    ),
    "list": (
        "a BIGINT",
        "LIST (a) (partition p0 values in (-7, 1 + 1, NULL), partition p1 values in (1, 0))",
        ["-7", "0", "1", "2", "NULL"],
    ),
    "hash": ("a BIGINT NOT NULL", "HASH (a) PARTITIONS 3", NUMBERS[:-1]),
    "texts": ("v VARCHAR(9)", f"RANGE COLUMNS (v) {BY_NAME}", TEXTS),
    "texts by code points": ("v VARCHAR(9) COLLATE utf8mb4_bin", f"RANGE COLUMNS (v) {BY_NAME}", TEXTS),
}


@pytest.mark.parametrize("name", PLACED)
def test_the_partition_has_the_same_rows(followed: OnTidb, name: str) -> None:
    column, by, values = PLACED[name]
    rows(followed.source, "SET time_zone = '+05:30'")
    followed.run(f"CREATE TABLE t ({column}) PARTITION BY {by}")
    rows(followed.source, "SET time_zone = '+00:00'")
    rows(followed.target, "SET time_zone = '+00:00'")
    fill(followed, values)
    for partition in ("p1", "p0"):
        before = contents(followed)
        followed.run(f"ALTER TABLE t TRUNCATE PARTITION {partition}")
        assert len(contents(followed)) < len(before)


def test_months_that_come_and_go(followed: OnTidb) -> None:
    """The definitions are compared as values, whatever the statements of the log wrote."""
    first = "PARTITION p1 VALUES LESS THAN (TO_DAYS('2024-02-01'))"
    followed.run(f"CREATE TABLE t (d DATE) PARTITION BY RANGE (TO_DAYS(d)) ({first})")
    for month in range(2, 5):
        fill(followed, [f"'2024-{month - 1:02}-28'"])
        followed.run(
            f"ALTER TABLE t ADD PARTITION (PARTITION p{month} VALUES LESS THAN (TO_DAYS('2024-{month + 1:02}-01')))",
            f"ALTER TABLE t DROP PARTITION p{month - 1}",
        )
        assert contents(followed) == []


NOT_OF_NULL = "rows in which the expression of HASH is NULL are in another partition on TiDB"
KEPT = {
    "hash of NULL": ("a INT", "HASH (a) PARTITIONS 3", NOT_OF_NULL),
    "hash of an expression": ("a INT NOT NULL", "HASH (a DIV 2) PARTITIONS 3", NOT_OF_NULL),
    "key": ("a INT", "KEY (a) PARTITIONS 3", "puts rows into partitions by KEY in another way"),
    "linear key": ("a INT", "LINEAR KEY (a) PARTITIONS 3", "by LINEAR KEY (a), the target's by KEY (a)"),
    "key over the primary key": ("a INT PRIMARY KEY", "KEY () PARTITIONS 3", "the target's has no partitions"),
    "linear hash": ("a INT", "LINEAR HASH (a) PARTITIONS 3", "by LINEAR HASH (a), the target's by HASH (a)"),
    "subpartitions": (
        "a INT",
        "RANGE (a) SUBPARTITION BY HASH (a) SUBPARTITIONS 2"
        " (PARTITION p0 VALUES LESS THAN (5), PARTITION p1 VALUES LESS THAN MAXVALUE)",
        "subpartitions by HASH ( a ) 2, the target's by RANGE (a)",
    ),
    "texts": (
        "a VARCHAR(9) CHARACTER SET latin1 COLLATE latin1_german2_ci",
        "RANGE COLUMNS (a) (PARTITION p0 VALUES LESS THAN ('5'), PARTITION p1 VALUES LESS THAN (MAXVALUE))",
        "column a, on which the partition depends, has another collation",
    ),
}


@pytest.mark.parametrize("name", KEPT)
def test_rows_that_the_source_has_are_kept(followed: OnTidb, name: str) -> None:
    column, by, why = KEPT[name]
    followed.run(f"CREATE TABLE t ({column}) PARTITION BY {by}")
    fill(followed, ["1", "2", "3", "6", "7", "8"])
    before = contents(followed)
    with pytest.raises(DdlError) as caught:
        followed.run("ALTER TABLE t TRUNCATE PARTITION p1")
    assert caught.value.code == "DDL-047"
    assert why in caught.value.cause
    assert sorted(map(repr, rows(followed.target, f"SELECT * FROM {followed.schema}.t"))) == before


def test_partitions_that_somebody_made_on_tidb(followed: OnTidb) -> None:
    names = "(PARTITION p0 VALUES LESS THAN ({}), PARTITION p1 VALUES LESS THAN (MAXVALUE))"
    followed.run(f"CREATE TABLE t (a INT) PARTITION BY RANGE (a) {names.format(5)}")
    rows(followed.target, f"ALTER TABLE {followed.schema}.t PARTITION BY RANGE (a) {names.format(8)}")
    fill(followed, ["1", "6", "9"])
    for sql in ("ALTER TABLE t TRUNCATE PARTITION p0", "ALTER TABLE t DROP PARTITION p0"):
        with pytest.raises(DdlError) as caught:
            followed.run(sql)
        assert (caught.value.code, caught.value.cause) == (
            "DDL-047",
            "the partitions differ from one on: on the source p0 LESS 5, on the target p0 LESS 8",
        )
    assert len(rows(followed.target, f"SELECT * FROM {followed.schema}.t")) == 3
