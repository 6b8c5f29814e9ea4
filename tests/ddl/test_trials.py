"""Trials on empty copies that are not run a second time, beside a server that runs every one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from unshard.ddl.context import Context
from unshard.ddl.parse import classify_ddl
from unshard.ddl.sandbox import ScratchPlace, open_scratch
from unshard.model.table import Table, TableName
from unshard.mysql.connection import rows
from unshard.testing.mariadb_server import MariadbServer

pytestmark = pytest.mark.server

STATEMENTS = {
    "plain": ("id INT PRIMARY KEY, v VARCHAR(9)", "ALTER TABLE s.{t} ADD w INT NOT NULL DEFAULT 3", True),
    "a key": ("id INT PRIMARY KEY, v VARCHAR(9)", "CREATE INDEX v ON s.{t} (v(3))", True),
    "a constraint that is named after the table": (
        "id INT PRIMARY KEY, p INT, KEY (p)",
        "ALTER TABLE s.{t} ADD FOREIGN KEY (p) REFERENCES s.{t} (id)",
        False,
    ),
    "a column with the table's name": ("id INT PRIMARY KEY, {t} INT", "ALTER TABLE s.{t} DROP COLUMN {t}", False),
    "a comment with the table's name": ("id INT PRIMARY KEY", "ALTER TABLE s.{t} COMMENT 'of {t}'", False),
}

VERSIONED = "WITH SYSTEM VERSIONING"


@pytest.fixture
def connection(target_server: MariadbServer) -> Iterator[Any]:
    found = target_server.connection()
    yield found
    found.close()


def tried(
    connection: Any,
    place: ScratchPlace,
    table: str,
    columns: str,
    statement: str,
    when: float = 0,
    options: str = "",
) -> Any:
    """Return how the table looks after the statement, by a trial that is run or known."""
    name = TableName("s", table)
    with open_scratch(connection, place) as scratch:
        scratch.make_schema("s", None, classify_ddl("DROP TABLE t", Context("s")))
        create = f"CREATE TABLE `{table}` ({columns.format(t=table)}) {options}"
        scratch.load(Table(name, (), create_sql=create))
        scratch.run(classify_ddl(statement.format(t=table), Context("s", timestamp=when)))
        return scratch.read(name)


def made(connection: Any) -> int:
    ((_, count),) = rows(connection, "SHOW SESSION STATUS LIKE 'Com_create_db'")
    return int(count)


@pytest.mark.parametrize("case", STATEMENTS)
def test_a_known_trial_gives_what_a_server_gives(connection: Any, case: str) -> None:
    columns, statement, shared = STATEMENTS[case]
    place = ScratchPlace("dm_meta", "trials", "s1")
    tried(connection, place, "orders", columns, statement)
    before = made(connection)
    again = tried(connection, place, "orders", columns, statement)
    assert made(connection) == before
    other = tried(connection, place, "customers", columns, statement)
    assert (made(connection) == before) is shared
    fresh = ScratchPlace("dm_meta", "trials", "s1")
    assert again == tried(connection, fresh, "orders", columns, statement)
    assert other == tried(connection, fresh, "customers", columns, statement)
    assert other.name == TableName("s", "customers")


def test_another_session_or_structure_is_another_trial(connection: Any) -> None:
    place = ScratchPlace("dm_meta", "trials", "s1")
    columns, statement, _ = STATEMENTS["plain"]
    plain = tried(connection, place, "t_1", columns, statement)
    assert plain != tried(connection, place, "t_1", "id BIGINT PRIMARY KEY", statement)
    before = made(connection)
    tried(connection, place, "t_1", columns, statement, when=5e8)
    assert made(connection) == before, "the time decides nothing here"
    history = "ALTER TABLE s.{t} PARTITION BY SYSTEM_TIME INTERVAL 1 DAY PARTITIONS 3"
    first = tried(connection, place, "t_1", columns, history, when=1e9, options=VERSIONED)
    second = tried(connection, place, "t_1", columns, history, when=1.1e9, options=VERSIONED)
    assert first != second, "the text of the partitions has the time"


def test_a_trial_of_another_connection_is_not_taken(connection: Any, target_server: MariadbServer) -> None:
    place = ScratchPlace("dm_meta", "trials", "s1")
    columns, statement, _ = STATEMENTS["plain"]
    tried(connection, place, "t_1", columns, statement)
    other = target_server.connection()
    try:
        before = made(other)
        tried(other, place, "t_1", columns, statement)
        assert made(other) == before + 1
    finally:
        other.close()
