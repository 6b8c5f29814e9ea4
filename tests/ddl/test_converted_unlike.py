"""The columns whose old values TiDB converts otherwise than the source, by their names after the statement."""

from __future__ import annotations

import pytest

from unshard.ddl.context import Context
from unshard.ddl.conversions import converted_unlike_upstream
from unshard.ddl.evaluate import definition_of, evaluate
from unshard.ddl.parse import classify_ddl
from unshard.ddl.statement import Ddl
from unshard.model.table import Table, TableName
from unshard.schema.definition import Dialect, TableDefinition
from unshard.schema.words import NotUnderstoodError

NAME = TableName("s", "t")
CREATE = (
    "CREATE TABLE s.t (id INT PRIMARY KEY, a TIME, b VARCHAR(9) CHARACTER SET latin1, c INT, z INT(6) ZEROFILL,"
    " g INT AS (c + 1) VIRTUAL) CHARACTER SET latin1"
)


def after(tables: dict[TableName, Table | None], text: str) -> tuple[Ddl, dict[TableName, Table | None]]:
    ddl = classify_ddl(text, Context("s"))
    return ddl, tables | evaluate(ddl, tables.get, lambda schema: None)


def definition(tables: dict[TableName, Table | None]) -> TableDefinition:
    table = tables[NAME]
    assert table is not None
    return definition_of(table, Dialect.MARIADB)


def unlike(*changes: str) -> tuple[str, ...]:
    """After one ALTER TABLE for each of the changes."""
    _, tables = after({}, CREATE)
    before, ddls = definition(tables), []
    for change in changes:
        ddl, tables = after(tables, f"ALTER TABLE s.t {change}")
        ddls.append(ddl)
    return converted_unlike_upstream(ddls, before, definition(tables))


@pytest.mark.parametrize(
    ("change", "names"),
    [
        ("MODIFY a DATETIME", ("a",)),
        ("CHANGE A x DATETIME", ("x",)),
        ("MODIFY a TIME NOT NULL DEFAULT '1:0:0' COMMENT 'c' FIRST", ()),
        ("MODIFY c BIGINT, MODIFY z VARCHAR(9), MODIFY a DATE", ("a", "z")),
        ("MODIFY b BLOB", ("b",)),
        ("MODIFY b VARCHAR(12) CHARACTER SET utf8mb4", ()),
        ("MODIFY b TINYTEXT CHARACTER SET ascii", ("b",)),
        ("CONVERT TO CHARACTER SET utf8mb4", ()),
        ("CONVERT TO CHARACTER SET ascii", ("b",)),
        ("DROP COLUMN a, ADD COLUMN a DATETIME", ()),
        ("MODIFY g BIGINT AS (c + 2) VIRTUAL", ()),
        ("RENAME COLUMN a TO c, RENAME COLUMN c TO a, DROP COLUMN g", ()),
    ],
)
def test_in_one_statement(change: str, names: tuple[str, ...]) -> None:
    assert unlike(change) == names


def test_in_several_statements() -> None:
    """The parts of one: a column is converted, then gets another name. A second conversion may have lost something."""
    assert unlike("MODIFY a DATETIME", "RENAME COLUMN a TO x") == ("x",)
    assert unlike("RENAME COLUMN c TO x", "MODIFY x BIGINT") == ()
    assert unlike("MODIFY c TINYINT", "MODIFY c INT") == ("c",)


def test_a_structure_that_is_not_known() -> None:
    ddl, tables = after(after({}, CREATE)[1], "ALTER TABLE s.t MODIFY c BIGINT, ADD d INT")
    assert converted_unlike_upstream([ddl], definition(tables), None) == ("c",)


@pytest.mark.parametrize(
    ("change", "names"),
    [
        ("MODIFY b VARCHAR(20)", ("b",)),
        ("CHANGE b x TEXT", ("x",)),
        ("MODIFY b CHAR(20)", ()),
        ("MODIFY v VARCHAR(20)", ()),
    ],
)
def test_blanks_that_the_source_stores_with_a_char(change: str, names: tuple[str, ...]) -> None:
    text = "CREATE TABLE s.t (id INT PRIMARY KEY, b CHAR(9), v VARCHAR(9)) CHARACTER SET latin1"
    for mode in ("", "PAD_CHAR_TO_FULL_LENGTH"):
        _, tables = after({}, text)
        before = definition(tables)
        ddl = classify_ddl(f"ALTER TABLE s.t {change}", Context("s", sql_mode=mode))
        found = converted_unlike_upstream([ddl], before, definition(tables | evaluate(ddl, tables.get, lambda _: None)))
        assert found == (names if mode else ())


@pytest.mark.parametrize(
    ("mode", "statement"),
    [
        ("EMPTY_STRING_IS_NULL", "CREATE TABLE s.n (v VARCHAR(5) DEFAULT '')"),
        ("REAL_AS_FLOAT", "ALTER TABLE s.t ADD r REAL"),
        ("ORACLE,ANSI_QUOTES", "ALTER TABLE s.t ADD r DATE"),
        ("MAXDB,ANSI_QUOTES", "CREATE TABLE s.n (v TIMESTAMP)"),
    ],
)
def test_a_statement_to_which_a_mode_gives_another_meaning(mode: str, statement: str) -> None:
    """TiDB has no such mode, and the structure is computed without a server."""
    _, tables = after({}, CREATE)
    evaluate(classify_ddl(statement, Context("s", sql_mode="ANSI_QUOTES")), tables.get, lambda _: None)
    with pytest.raises(NotUnderstoodError, match=f"sql_mode {mode.split(',')[0]} of its session"):
        evaluate(classify_ddl(statement, Context("s", sql_mode=mode)), tables.get, lambda _: None)
