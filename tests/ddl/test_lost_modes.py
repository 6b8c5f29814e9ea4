"""Modes of a source's session that the target lacks."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.followed_ddl import Followed
from unshard.ddl.context import MODE_NAMES, ROUND, STRICT_MODES, TRUNCATE, Context
from unshard.ddl.lost_modes import kept_modes
from unshard.errors import DdlError
from unshard.model.table import TableName
from unshard.mysql.connection import rows
from unshard.mysql.structure import read_table
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.mysql_server import Mysql80Server

pytestmark = [pytest.mark.server, pytest.mark.mysql_80_program]


@pytest.fixture(scope="module")
def mysql_80() -> Iterator[Mysql80Server]:
    with Mysql80Server() as server:
        yield server


@pytest.fixture
def followed(source_server: MariadbServer, mysql_80: Mysql80Server, schema: str) -> Iterator[Followed]:
    found = Followed(source_server, mysql_80, schema, "CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci")
    yield found
    found.close()


@pytest.mark.parametrize("server", ["target_server", "mysql_80"])
def test_every_mode_that_is_kept_is_known(server: str, request: pytest.FixtureRequest) -> None:
    connection = request.getfixturevalue(server).connection()
    modes = sorted(MODE_NAMES - STRICT_MODES - {ROUND, TRUNCATE})
    kept = kept_modes(connection, Context(sql_mode=",".join(modes)), "CREATE TABLE t (a INT)")
    rows(connection, "SET sql_mode = %s", (",".join(kept),))
    connection.close()
    assert "PIPES_AS_CONCAT" in kept
    assert ("ORACLE" in kept) == (server == "target_server")


@pytest.mark.parametrize(
    ("mode", "statement"),
    [
        ("SIMULTANEOUS_ASSIGNMENT", "ALTER TABLE t ADD a DATE DEFAULT '2024-01-01'"),
        ("EMPTY_STRING_IS_NULL", "ALTER TABLE t ADD a VARCHAR(5) DEFAULT 'x' COMMENT ''"),
        ("ORACLE", "ALTER TABLE t ADD \"a\" VARCHAR(5) DEFAULT 'x'"),
        ("MAXDB", "ALTER TABLE t ADD a INT NOT NULL DEFAULT 5"),
    ],
)
def test_a_statement_that_means_the_same_is_run(mode: str, statement: str, followed: Followed) -> None:
    followed.run("CREATE TABLE t (id INT PRIMARY KEY)")
    rows(followed.source, f"SET sql_mode = '{mode}'")
    followed.run(statement)
    there = read_table(followed.target, TableName(followed.schema, "t"))
    assert there is not None
    assert [column.name for column in there.columns] == ["id", "a"]


@pytest.mark.parametrize(
    ("mode", "statement"),
    [
        ("EMPTY_STRING_IS_NULL", "ALTER TABLE t ADD a VARCHAR(5) DEFAULT ''"),
        ("ORACLE", "ALTER TABLE t ADD a DATE"),
        ("MAXDB", "ALTER TABLE t ADD a TIMESTAMP NULL"),
    ],
)
def test_one_that_means_another_thing_is_refused_by_name(mode: str, statement: str, followed: Followed) -> None:
    followed.run("CREATE TABLE t (id INT PRIMARY KEY)")
    rows(followed.source, f"SET sql_mode = '{mode}'")
    with pytest.raises(DdlError) as caught:
        followed.run(statement)
    assert caught.value.code == "DDL-057"
    assert f"sql_mode {mode} of its session" in str(caught.value)
