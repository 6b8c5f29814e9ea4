"""TiDB's table takes the rows of copies that differ, whatever their character sets were."""

from __future__ import annotations

import pytest

from unshard.errors import ShardError, Where
from unshard.load.contents import SourceTable
from unshard.load.creation import creation_for
from unshard.load.widen import take_all, widen
from unshard.model.table import Table, TableName
from unshard.mysql.connection import rows
from unshard.mysql.structure import read_table
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.tidb_server import TidbServer

pytestmark = pytest.mark.server

SHOWN = (
    "SELECT COLUMN_NAME, COLUMN_TYPE, IF(IS_NULLABLE = 'YES', '', 'NOT NULL'), COALESCE(COLUMN_DEFAULT, 'NULL')"
    " FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = %s AND TABLE_NAME = 't' AND COLUMN_NAME <> 'id'"
    " ORDER BY ORDINAL_POSITION"
)


def on_source(server: MariadbServer, name: TableName, columns: str) -> Table:
    server.run(f"CREATE OR REPLACE TABLE {name.quoted} (id BIGINT PRIMARY KEY, {columns}) CHARACTER SET latin1")
    with server.connection() as connection:
        found = read_table(connection, name)
    assert found is not None
    return found


def widened(source: MariadbServer, tidb: TidbServer, schema: str, first: str, copy: str, *dropped: str) -> str:
    """The columns of TiDB's table, which is made from one copy and takes another one; `b` was added to the other."""
    for server in (source, tidb):
        server.run(f"CREATE DATABASE IF NOT EXISTS {schema}")
    target = TableName(schema, "t")
    one = on_source(source, TableName(schema, "one"), first)
    other = on_source(source, TableName(schema, "other"), copy)
    with tidb.connection() as connection:
        creation = creation_for(connection, "", "s", {}, 1)
        dumped = SourceTable(one.name, one.create_sql, one, None, ())
        rows(connection, creation.table(dumped, target, lambda name: name, None, Where("s")))
        there = read_table(connection, target)
        assert there is not None
        mine, its = creation.sides(other, there)
        changed = widen(connection, its, mine, {"b"}, dropped, Where("s"))
        assert changed is (read_table(connection, target) != there)
        return ", ".join(" ".join(filter(None, row)) for row in rows(connection, SHOWN, (schema,)))


@pytest.mark.parametrize(
    ("first", "copy", "dropped", "columns"),
    [
        ("a INT", "a INT, b INT NOT NULL DEFAULT 7", (), "a int(11) NULL, b int(11) NOT NULL 7"),
        ("a INT, b INT", "a INT", (), "a int(11) NULL, b int(11) NULL"),
        ("a INT, b INT NOT NULL", "a INT", ("b",), "a int(11) NULL, b int(11) NULL"),
        ("a VARCHAR(9) NOT NULL", "a VARCHAR(12)", (), "a varchar(12) NULL"),
        ("a VARCHAR(12)", "a VARCHAR(9)", (), "a varchar(12) NULL"),
        ("a VARCHAR(9) CHARACTER SET utf8mb3", "a VARCHAR(12) CHARACTER SET utf8mb3", (), "a varchar(12) NULL"),
        ("a VARCHAR(9) CHARACTER SET sjis", "a VARCHAR(12) CHARACTER SET cp1251", (), "a varchar(12) NULL"),
        ("a VARCHAR(9)", "a TEXT", (), "a mediumtext NULL"),
        ("a INT NOT NULL", "a INT", (), "a int(11) NULL"),
        ("a INT", "a BIGINT NOT NULL", (), "a bigint(20) NULL"),
        ("a DECIMAL(5,2)", "a DECIMAL(8,3)", (), "a decimal(8,3) NULL"),
        ("a ENUM('x','y\\\\y')", "a ENUM('x','y\\\\y','z''')", (), "a enum('x','y\\y','z''') NULL"),
        ("a ENUM('x\\\\y') NOT NULL", "a ENUM('x\\\\y')", (), "a enum('x\\y') NULL"),
        ("a DATETIME", "a DATETIME(3)", (), "a datetime(3) NULL"),
        ("g INT AS (id + 1)", "g INT AS (id + 1)", (), "g int(11) NULL"),
        ("a INT", "a INT, c INT NOT NULL", (), "a int(11) NULL, c int(11) NULL"),
        ("a INT, c VARCHAR(9) NOT NULL DEFAULT 'x'", "a INT, b VARCHAR(9) NOT NULL DEFAULT 'y'", (),
         "a int(11) NULL, c varchar(9) NOT NULL x, b varchar(9) NOT NULL y"),
    ],
)  # fmt: skip
def test_the_target_holds_what_any_copy_has(
    source_server: MariadbServer,
    tidb: TidbServer,
    schema: str,
    first: str,
    copy: str,
    dropped: tuple[str, ...],
    columns: str,
) -> None:
    assert widened(source_server, tidb, schema, first, copy, *dropped) == columns


@pytest.mark.parametrize(
    ("first", "copy"),
    [
        ("a INT", "a INT, b INT NOT NULL"),
        ("a INT, c INT NOT NULL", "a INT"),
        ("a INT", "a INT, b DATETIME DEFAULT CURRENT_TIMESTAMP"),
        ("a INT", "a INT, b DATETIME NULL ON UPDATE CURRENT_TIMESTAMP"),
        ("a VARCHAR(9) CHARACTER SET utf8mb3", "a VARCHAR(9) CHARACTER SET utf8mb4"),
    ],
)
def test_a_column_that_the_later_rows_would_not_have_as_add_column_fills_it(
    source_server: MariadbServer, tidb: TidbServer, schema: str, first: str, copy: str
) -> None:
    with pytest.raises(ShardError) as refused:
        widened(source_server, tidb, schema, first, copy)
    assert refused.value.code == "SHARD-029"


def test_keys_over_columns_that_are_added_and_widened(
    source_server: MariadbServer, tidb: TidbServer, schema: str
) -> None:
    for server in (source_server, tidb):
        server.run(f"CREATE DATABASE IF NOT EXISTS {schema}")
    target = TableName(schema, "t")
    first = on_source(source_server, TableName(schema, "one"), "v VARCHAR(20), n INT, KEY n (n)")
    joined = on_source(
        source_server, TableName(schema, "all"), "v VARCHAR(60), n BIGINT, c INT, KEY n (n), KEY v (v), KEY cn (c, n)"
    )
    with tidb.connection() as connection:
        creation = creation_for(connection, "", "s", {}, 1)
        dumped = SourceTable(first.name, first.create_sql, first, None, ())
        rows(connection, creation.table(dumped, target, lambda name: name, None, Where("s")))

        def taken() -> bool:
            there = read_table(connection, target)
            assert there is not None
            mine, its = creation.sides(joined, there)
            return take_all(connection, its, mine, Where("s"))

        assert taken()
        found = read_table(connection, target)
        assert found is not None
        assert [index.name for index in found.indexes] == ["PRIMARY", "cn", "n", "v"]
        columns = ", ".join(" ".join(filter(None, row)) for row in rows(connection, SHOWN, (schema,)))
        assert columns == "v varchar(60) NULL, n bigint(20) NULL, c int(11) NULL"
        assert not taken()
