"""Statements that would leave a table's rows on the target with marks of what it was."""

from __future__ import annotations

from dataclasses import replace

import pytest

from unshard.ddl.context import Context
from unshard.ddl.parse import classify_ddl
from unshard.ddl.provenance import Marks, check_marks, check_moved_rows, unmarked
from unshard.ddl.rewrite import split
from unshard.errors import SyncError
from unshard.model.table import Column, Table, TableName

ID, V = Column("id", "bigint", "bigint(20)"), Column("v", "int", "int(11)")


def table(name: str, *columns: Column) -> Table:
    return Table(TableName("s", name), columns or (ID, V))


def marks(name: TableName) -> Marks:
    return Marks(("ID",), (name.table.rpartition("_")[2],)) if name.table.startswith("t_") else Marks()


def check(sql: str, after: dict[str, Table | None], there: tuple[str, ...] = ("t_1", "t_2", "u")) -> None:
    before = {TableName("s", name): table(name) for name in there}
    changes = {TableName("s", name): found for name, found in after.items()}
    statements = split(classify_ddl(sql, Context("s")))
    check_marks(statements, changes, before.get, marks, lambda name: not name.table.startswith("shut"))


@pytest.mark.parametrize(
    "column", [None, Column("id", "int", "int(11)"), Column("id", "bigint", "bigint(20)", nullable=False)]
)
def test_a_change_of_a_mapped_column_is_refused(column: Column | None) -> None:
    after = table("t_1", *(one for one in (column, V) if one))
    with pytest.raises(SyncError, match="SYNC-017") as caught:
        check("alter table t_1 add x int", {"t_1": after})
    assert caught.value.where.table == "s.t_1"
    check("alter table u modify id int", {"u": after})


def test_other_columns_change_and_tables_come_and_go() -> None:
    check("alter table t_1 modify v bigint", {"t_1": table("t_1", V, ID)})
    as_mysql_tells_it = table("t_1", V, replace(ID, definition="bigint"))
    check("alter table t_1 modify v bigint", {"t_1": as_mysql_tells_it})
    check("drop table t_1", {"t_1": None})
    check("create table t_9 (id int)", {"t_9": table("t_9", V)})
    check("truncate t_1", {})
    check_marks((), {}, lambda name: None, unmarked, lambda name: True)


@pytest.mark.parametrize(
    ("sql", "after"),
    [
        ("rename table t_1 to t_3", {"t_1": None, "t_3": table("t_3")}),
        ("alter table t_1 rename to t_3", {"t_1": None, "t_3": table("t_3")}),
        ("rename table t_1 to u2", {"t_1": None, "u2": table("u2")}),
        ("rename table t_1 to x, t_2 to t_1, x to t_2", {"t_1": table("t_1"), "t_2": table("t_2"), "x": None}),
    ],
)
def test_a_name_that_rows_carry_is_not_changed(sql: str, after: dict[str, Table | None]) -> None:
    with pytest.raises(SyncError, match="SYNC-018"):
        check(sql, after)


def test_a_new_name_of_the_same_mark() -> None:
    check("rename table t_1 to t_a_1", {"t_1": None, "t_a_1": table("t_a_1")})
    check("rename table u to w", {"u": None, "w": table("w")})
    check("rename table t_1 to x, x to t_1", {"t_1": table("t_1"), "x": None})


@pytest.mark.parametrize(
    "sql",
    [
        "alter table t_1 exchange partition p0 with table t_2",
        "alter table t_1 exchange partition p0 with table u",
        "alter table u exchange partition p0 with table t_1 without validation",
        "alter table t_1 convert table u to partition p1 values less than (9)",
        "alter table u convert partition p0 to table t_3",
    ],
)
def test_rows_do_not_move_to_a_table_of_other_marks(sql: str) -> None:
    ddl = classify_ddl(sql, Context("s"))
    with pytest.raises(SyncError, match="SYNC-018") as caught:
        check_moved_rows([ddl], marks)
    assert caught.value.where.table == str(ddl.tables[0])
    assert str(ddl.tables[1]) in str(caught.value)


@pytest.mark.parametrize(
    "sql",
    [
        "alter table t_1 exchange partition p0 with table t_a_1",
        "alter table u exchange partition p0 with table w",
        "alter table u convert partition p0 to table w",
        "alter table t_1 add v int",
        "create table t_9 like t_1",
        "rename table u to w",
    ],
)
def test_rows_move_between_tables_of_the_same_marks(sql: str) -> None:
    check_moved_rows([classify_ddl(sql, Context("s"))], marks)
