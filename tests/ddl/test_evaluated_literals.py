"""Literals of a statement in the structures that are computed from it: they mean what they meant in its session."""

from __future__ import annotations

from typing import Any

import pytest

from unshard.ddl.context import Context
from unshard.ddl.evaluate import created_definition, evaluate, operations
from unshard.ddl.parse import classify_ddl
from unshard.model.table import Table, TableName
from unshard.mysql.defaults import constant_defaults

NAME = TableName("s", "t")


def table_after(*statements: str, **session: Any) -> Table:
    tables: dict[TableName, Table | None] = {}
    for sql in statements:
        tables |= evaluate(classify_ddl(sql, Context("s", **session)), tables.get, lambda schema: None)
    found = tables[NAME]
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("default", "zone", "stored"),
    [
        ("'2020-01-01 03:00:00'", "+05:00", "'2019-12-31 22:00:00'"),
        ("'2020-01-01 03:00:00'", "-03:30", "'2020-01-01 06:30:00'"),
        ("'2020-01-01 03:00:00'", "", "'2020-01-01 03:00:00'"),
        ("'2020-01-01 03:00:00'", "+00:00", "'2020-01-01 03:00:00'"),
        ("'2020-01-01'", "+05:00", "'2019-12-31 19:00:00'"),
        ("20200101030000", "+05:00", "'2019-12-31 22:00:00'"),
        ("TIMESTAMP'2020-01-01 03:00:00'", "+05:00", "'2019-12-31 22:00:00'"),
        ('"2020-7-1 3:0"', "Europe/Berlin", "'2020-07-01 01:00:00'"),
        ("'0000-00-00 00:00:00'", "+05:00", "'0000-00-00 00:00:00'"),
        ("0", "+05:00", "'0000-00-00 00:00:00'"),
        ("'2020-7-1 3:0'", "+00:00", "'2020-07-01 03:00:00'"),
        ("'2020-07-01'", "UTC", "'2020-07-01 00:00:00'"),
        # the server's value depends on more than is known here
        ("'2020-10-25 02:30:00'", "Europe/Berlin", None),
        ("'2020-03-29 02:30:00'", "Europe/Berlin", None),
        ("'2020-01-01 03:00:00'", "No/Where", None),
        ("'20-1-1'", "+05:00", None),
        ("'2020-01-01 03:00:00.6'", "+05:00", None),
    ],
)
@pytest.mark.parametrize("mariadb", [True, False])
def test_the_default_of_a_timestamp_is_in_utc(default: str, zone: str, stored: str | None, mariadb: bool) -> None:
    """None: no constant, so a row image that lacks the column stops the task (SYNC-031)."""
    session = {"time_zone": zone, "mariadb": mariadb}
    made = table_after(f"CREATE TABLE t (id INT PRIMARY KEY, f TIMESTAMP NOT NULL DEFAULT {default})", **session)
    added = table_after(
        "CREATE TABLE t (id INT PRIMARY KEY)", f"ALTER TABLE t ADD f TIMESTAMP NOT NULL DEFAULT {default}", **session
    )
    changed = table_after(
        "CREATE TABLE t (id INT PRIMARY KEY, f TIMESTAMP NOT NULL DEFAULT NOW())",
        f"ALTER TABLE t ALTER f SET DEFAULT {default}",
        "ALTER TABLE t ADD g INT",
        **session,
    )
    for table in (made, added, changed):
        assert constant_defaults(table).get("f") == stored, table.create_sql


def test_digits_of_a_second_and_columns_of_other_types() -> None:
    columns = "a TIMESTAMP(3) NULL DEFAULT '2020-01-01 03:00:00.25', b DATETIME DEFAULT '2020-01-01 03:00:00'"
    found = constant_defaults(table_after(f"CREATE TABLE t ({columns})", time_zone="+05:00"))
    assert found == {"a": "'2019-12-31 22:00:00.250'", "b": "'2020-01-01 03:00:00'"}


PLAIN = r"a ENUM('x\y', 'z''\') DEFAULT 'x\y', b VARCHAR(9) DEFAULT 'a\b' COMMENT 'c\'"
ESCAPED = PLAIN.replace("\\", "\\\\")


def test_a_backslash_that_is_one_in_the_statement() -> None:
    plain, escaped = {"sql_mode": "NO_BACKSLASH_ESCAPES"}, {"sql_mode": ""}
    created = table_after(f"CREATE TABLE t ({PLAIN})", **plain)
    assert created == table_after(f"CREATE TABLE t ({ESCAPED})", **escaped)
    assert created.columns[0].members == ("x\\y", "z'\\")
    assert constant_defaults(created) == {"a": r"'x\\y'", "b": r"'a\\b'"}
    added = table_after("CREATE TABLE t (id INT) COMMENT 'd\\'", f"ALTER TABLE t ADD ({PLAIN})", **plain)
    assert added == table_after("CREATE TABLE t (id INT) COMMENT 'd\\\\'", f"ALTER TABLE t ADD ({ESCAPED})", **escaped)
    texts = (
        "CREATE INDEX i ON t (b) COMMENT 'x{0}'",
        "ALTER TABLE t PARTITION BY LIST (a) (PARTITION p VALUES IN ('{0}'))",
    )
    for text in texts:
        one = classify_ddl(text.format("\\"), Context("s", sql_mode="NO_BACKSLASH_ESCAPES"))
        assert operations(one) == operations(classify_ddl(text.format("\\\\"), Context("s")))
    commented = classify_ddl(f"/*!50000 CREATE TABLE t */ ({PLAIN})", Context("s", sql_mode="NO_BACKSLASH_ESCAPES"))
    assert [column.name for column in created_definition(commented).columns] == ["a", "b"]
