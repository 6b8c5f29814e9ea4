"""Statements of a source whose host has summer time: old rows of the target get the source's values."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from support.followed_ddl import Followed
from support.time_zones import load_zone, server_of, server_that_knows
from unshard.errors import DdlError
from unshard.mysql.connection import rows
from unshard.testing.mariadb_server import MariadbServer

pytestmark = pytest.mark.server
BERLIN = "Europe/Berlin"
FILL = "INSERT INTO {table} (id, at) VALUES (1, '2024-01-15 11:00:00'), (2, '2024-07-15 10:00:00')"


@pytest.fixture(scope="module")
def berlin() -> Iterator[MariadbServer]:
    with server_of(BERLIN) as server:
        yield server


@pytest.fixture(scope="module")
def knowing() -> Iterator[MariadbServer]:
    """A target that knows the names of time zones."""
    with server_that_knows(BERLIN) as server:
        yield server


def stocked(source: MariadbServer, target: MariadbServer, schema: str, columns: str = "at TIMESTAMP NULL") -> Followed:
    """Table t on both ends with a row of the winter and one of the summer; the session is in the zone of the host."""
    followed = Followed(source, target, schema, zone=BERLIN)
    rows(followed.source, "SET time_zone = 'SYSTEM'")
    followed.run(f"CREATE TABLE t (id INT PRIMARY KEY, {columns})")
    for connection in (source.connection(), target.connection()):
        with closing(connection):
            rows(connection, FILL.format(table=f"{schema}.t"))
    return followed


def assert_equal_rows(followed: Followed) -> None:
    sql = f"SELECT * FROM {followed.schema}.t ORDER BY id"
    rows(followed.source, "SET time_zone = '+00:00'")
    assert rows(followed.source, sql) == rows(followed.target, sql)


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE t MODIFY at DATETIME",
        "ALTER TABLE t MODIFY at VARCHAR(30)",
        "ALTER TABLE t ADD d TIMESTAMP NOT NULL DEFAULT '2024-01-01 00:00:00'",
        "ALTER TABLE t ADD d DATETIME(6) DEFAULT CURRENT_TIMESTAMP(6)",
    ],
)
def test_values_come_through_the_offset_of_their_own_time(
    statement: str, berlin: MariadbServer, knowing: MariadbServer, schema: str
) -> None:
    with closing(stocked(berlin, knowing, schema)) as followed:
        followed.run(statement)
        assert_equal_rows(followed)


@pytest.mark.parametrize("moment", ["2024-01-20 12:00:00", "2024-07-20 12:00:00"])
def test_the_offset_of_a_statement_is_that_of_its_time(
    moment: str, berlin: MariadbServer, target_server: MariadbServer, schema: str
) -> None:
    """A target that knows no names of zones needs none for it, nor for a statement that brings no moment to a text."""
    with closing(stocked(berlin, target_server, schema, "at TIMESTAMP NULL, v VARCHAR(9)")) as followed:
        rows(followed.source, f"SET timestamp = UNIX_TIMESTAMP('{moment}')")
        followed.run("ALTER TABLE t ADD d DATETIME DEFAULT CURRENT_TIMESTAMP")
        followed.run("ALTER TABLE t MODIFY v VARCHAR(10), ADD n DATETIME DEFAULT NOW()")
        assert_equal_rows(followed)


def test_a_target_without_the_name_of_the_zone(berlin: MariadbServer, schema: str) -> None:
    with MariadbServer() as target, closing(stocked(berlin, target, schema)) as followed:
        begin = followed._offset
        with pytest.raises(DdlError, match="DDL-043") as raised:
            followed.run("ALTER TABLE t MODIFY at DATETIME")
        assert raised.value.values["zone"] == BERLIN
        load_zone(target, BERLIN)
        followed._offset = begin
        followed.follow()
        assert_equal_rows(followed)


CONVERTING = "at TIMESTAMP NULL, v VARCHAR(9), day DATE AS (DATE(CONVERT_TZ(at, '+00:00', '+02:00'))) STORED"


def test_a_column_that_converts_from_utc_is_computed_in_utc(
    berlin: MariadbServer, knowing: MariadbServer, schema: str
) -> None:
    """The server computes it anew as it copies the table. The source has the column without the conversion."""
    with closing(stocked(berlin, knowing, schema, CONVERTING)) as followed:
        rows(followed.target, f"INSERT INTO {schema}.t (id, at) VALUES (3, '2024-07-15 22:30:00')")
        followed.run("ALTER TABLE t MODIFY v VARBINARY(20), ADD n INT NOT NULL DEFAULT 5")
        assert [str(day) for (day,) in rows(followed.target, f"SELECT day FROM {schema}.t WHERE id = 3")] == [
            "2024-07-16"
        ]
        for statement in ("ALTER TABLE t ADD d DATETIME DEFAULT NOW()", "ALTER TABLE t ADD e DATE AS (DATE(at))"):
            with pytest.raises(DdlError) as caught:
                followed.run(statement)
            assert caught.value.code == "DDL-056"


def test_past_a_statement_that_needs_the_zone(berlin: MariadbServer, knowing: MariadbServer, schema: str) -> None:
    """By the advice of DDL-056: the column is dropped on the target and added again after the statement."""
    with closing(stocked(berlin, knowing, schema, "at TIMESTAMP NULL, day DATE AS (DATE(at)) STORED")) as followed:
        column = "day DATE AS (DATE(CONVERT_TZ(at, '+00:00', '+02:00'))) STORED"
        rows(followed.target, f"ALTER TABLE {schema}.t DROP COLUMN day, ADD {column}")
        with pytest.raises(DdlError) as caught:
            followed.run("ALTER TABLE t ADD d DATETIME DEFAULT NOW()")
        assert caught.value.code == "DDL-056"
        for unlogged in ("SET sql_log_bin = 0", "ALTER TABLE t DROP d", "SET sql_log_bin = 1"):
            rows(followed.source, unlogged)
        rows(followed.target, f"ALTER TABLE {schema}.t DROP COLUMN day")
        followed.run("ALTER TABLE t ADD d DATETIME DEFAULT NOW()")
        rows(followed.target, f"ALTER TABLE {schema}.t ADD {column}")
        sql = f"SELECT id, at, d FROM {schema}.t"
        rows(followed.source, "SET time_zone = '+00:00'")
        assert rows(followed.source, sql) == rows(followed.target, sql)
