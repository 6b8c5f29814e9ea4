"""Which of two structures the log tells apart, and which it may not."""

from __future__ import annotations

import pytest

from unshard.binlog.reading import differences, read_alike
from unshard.model.table import Column, Table, TableName


def table(*columns: Column) -> Table:
    return Table(TableName("s", "t"), columns)


def text(name: str, charset: str, *, kind: str = "varchar", length: int = 20) -> Column:
    return Column(name, kind, f"{kind}({length})", charset=charset, length=length)


def enum(*members: str) -> Column:
    return Column("e", "enum", f"enum{members}", charset="utf8mb4", members=members)


INT, UNSIGNED = Column("n", "int", "int(11)"), Column("n", "int", "int(10) unsigned")
BINARY = Column("v", "varbinary", "varbinary(20)", length=20)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (INT, UNSIGNED),
        (enum("a", "b"), enum("a", "x", "b")),
        (enum("a", "b"), enum("b", "a")),
        (text("v", "latin1"), text("v", "utf8mb4")),
        (text("v", "utf8mb4"), BINARY),
    ],
)
def test_values_may_become_others(one: Column, other: Column) -> None:
    assert not read_alike(table(one), table(other))
    (found,) = differences(table(one), table(other))
    assert one.definition in found
    assert other.definition in found


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (INT, Column("n", "bigint", "bigint(20)")),
        (enum("a", "b"), enum("a", "b", "c")),
        (text("v", "utf8mb4"), text("v", "utf8mb4", length=50)),
        (text("v", "utf8mb4"), text("v", "utf8mb4", kind="text")),
        (Column("d", "datetime", "datetime"), Column("d", "datetime", "datetime(3)", fsp=3)),
    ],
)
def test_the_log_tells_or_both_read_the_same(one: Column, other: Column) -> None:
    assert not read_alike(table(one), table(other))
    assert differences(table(one), table(other)) == []


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (INT, Column("N", "int", "int")),
        (text("v", "utf8mb3"), text("v", "utf8mb4")),
        (text("v", "ascii"), text("v", "utf8mb4")),
    ],
)
def test_both_read_the_same(one: Column, other: Column) -> None:
    assert read_alike(table(one), table(other))
    assert differences(table(one), table(other)) == []


def test_the_order_of_columns_is_not_in_the_log() -> None:
    a, b, c = (Column(name, "int", "int(11)") for name in "abc")
    assert differences(table(a, b), table(b, a)) == ["the order a, b or b, a"]
    assert differences(table(a, b), table(c, a, b)) == []
    assert differences(table(a, b, c), table(a, b)) == []
