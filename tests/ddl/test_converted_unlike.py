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
