"""The target's table takes the rows of copies that differ, on a real server."""

from __future__ import annotations

import pytest

from unshard.errors import ShardError, Where
from unshard.load.creation import AsWritten
from unshard.load.widen import widen
from unshard.model.table import Table, TableName
from unshard.mysql.structure import read_table
from unshard.testing.mariadb_server import MariadbServer

pytestmark = pytest.mark.server
_ID = "id BIGINT PRIMARY KEY"


def made(server: MariadbServer, name: TableName, columns: str) -> Table:
    server.run(f"CREATE OR REPLACE TABLE {name.quoted} ({_ID}, {columns})")
    with server.connection() as connection:
        found = read_table(connection, name)
    assert found is not None
    return found


def widened(server: MariadbServer, schema: str, there: str, copy: str, *dropped: str) -> str:
    """The columns of the target's table behind it, as SHOW CREATE has them; `b` was added to the copy, `c` was not."""
    server.run(f"CREATE DATABASE IF NOT EXISTS `{schema}`")
    target = made(server, TableName(schema, "target"), there)
    source = made(server, TableName(schema, "source"), copy)
    with server.connection() as connection:
        mine, its = AsWritten("", "s1").sides(source, target)
        changed = widen(connection, its, mine, {"b"}, dropped, Where("s1"))
        found = read_table(connection, target.name)
    assert found is not None
    assert changed is (found != target)
    return ", ".join(line.strip(" ,") for line in found.create_sql.splitlines()[2:-2])


@pytest.mark.parametrize(
    ("there", "copy", "dropped", "columns"),
    [
        ("a INT", "a INT, b INT NOT NULL DEFAULT 7", (), "`a` int(11) DEFAULT NULL, `b` int(11) NOT NULL DEFAULT 7"),
        ("a INT, b INT", "a INT", (), "`a` int(11) DEFAULT NULL, `b` int(11) DEFAULT NULL"),
        ("a INT, b INT NOT NULL", "a INT", ("b",), "`a` int(11) DEFAULT NULL, `b` int(11) DEFAULT NULL"),
        ("a VARCHAR(9) NOT NULL", "a VARCHAR(12)", (), "`a` varchar(12) DEFAULT NULL"),
        ("a VARCHAR(12)", "a VARCHAR(9)", (), "`a` varchar(12) DEFAULT NULL"),
        ("a VARCHAR(9)", "a TEXT", (), "`a` text DEFAULT NULL"),
        ("a INT NOT NULL", "a INT", (), "`a` int(11) DEFAULT NULL"),
        ("a INT", "a BIGINT NOT NULL", (), "`a` bigint(20) DEFAULT NULL"),
        ("a DECIMAL(5,2)", "a DECIMAL(8,3)", (), "`a` decimal(8,3) DEFAULT NULL"),
        ("a ENUM('x','y')", "a ENUM('x','y','z')", (), "`a` enum('x','y','z') DEFAULT NULL"),
        ("a DATETIME", "a DATETIME(3)", (), "`a` datetime(3) DEFAULT NULL"),
        ("g INT AS (id + 1)", "g INT AS (id + 1)", (), "`g` int(11) GENERATED ALWAYS AS (`id` + 1) VIRTUAL"),
        ("a INT", "a INT, c INT NOT NULL", (), "`a` int(11) DEFAULT NULL, `c` int(11) DEFAULT NULL"),
        ("a INT", "a INT, b INT AS (a + 1)", (), "`a` int(11) DEFAULT NULL"),
        ("`a ``,` INT NOT NULL COMMENT 'NOT NULL'", "b INT", ("a `,",),
         "`a ``,` int(11) DEFAULT NULL COMMENT 'NOT NULL', `b` int(11) DEFAULT NULL"),
    ],
)  # fmt: skip
def test_the_target_holds_what_any_copy_has(
    target_server: MariadbServer, schema: str, there: str, copy: str, dropped: tuple[str, ...], columns: str
) -> None:
    assert widened(target_server, schema, there, copy, *dropped) == columns


@pytest.mark.parametrize(
    ("there", "copy"),
    [
        ("a INT", "a INT, b INT NOT NULL"),
        ("a INT, b INT NOT NULL", "a INT"),
        ("a INT", "a INT, b DATETIME DEFAULT CURRENT_TIMESTAMP"),
        ("a INT", "a INT, b DATETIME NULL ON UPDATE CURRENT_TIMESTAMP"),
        ("a INT", "a INT, b INT DEFAULT (a + 1)"),
        ("a VARCHAR(9) CHARACTER SET latin1", "a VARCHAR(9) CHARACTER SET utf8mb4"),
    ],
)
def test_a_column_that_the_later_rows_would_not_have_as_add_column_fills_it(
    target_server: MariadbServer, schema: str, there: str, copy: str
) -> None:
    with pytest.raises(ShardError) as refused:
        widened(target_server, schema, there, copy)
    assert refused.value.code == "SHARD-029"
