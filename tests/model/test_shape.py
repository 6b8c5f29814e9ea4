"""The table of `load.shape`, cell by cell, and whole tables."""

from __future__ import annotations

import pytest

from unshard.model.shape import misfits
from unshard.model.table import Column, Table, TableName


def column(definition: str, **known: object) -> Column:
    kind = definition.split("(")[0].split()[0]
    return Column("c", kind, definition, **known)  # type: ignore[arg-type]


def table(*columns: Column) -> Table:
    return Table(TableName("s", "t"), columns)


FITS = [
    ("int(11)", "int(11)"),
    ("tinyint(4)", "bigint(20) unsigned"),
    ("bigint(20)", "int(11)"),
    ("float", "double"),
    ("decimal(10,2)", "decimal(12,4)"),
    ("char(5)", "varchar(9)"),
    ("varchar(9)", "longtext"),
    ("longtext", "json"),
    ("json", "longtext"),
    ("binary(4)", "blob"),
    ("varbinary(4)", "blob"),
    ("date", "date"),
    ("geometry", "geometry"),
    ("year(4)", "year(4)"),
]
CLASHES = [
    ("int(11)", "varchar(20)"),
    ("double", "float"),
    ("varchar(9)", "char(9)"),
    ("varbinary(4)", "binary(4)"),
    ("datetime", "timestamp"),
    ("date", "datetime"),
    ("enum('a')", "varchar(9)"),
    ("text", "blob"),
]


@pytest.mark.parametrize(("source", "target"), FITS)
def test_fits(source: str, target: str) -> None:
    assert misfits(table(column(source)), table(column(target))) == []


@pytest.mark.parametrize(("source", "target"), CLASHES)
def test_clashes_are_named_with_both_sides(source: str, target: str) -> None:
    (fault,) = misfits(table(column(source)), table(column(target)))
    assert source in fault
    assert target in fault


@pytest.mark.parametrize(
    ("source", "target", "fits"),
    [
        (column("uuid"), column("char(36)", length=36), True),
        (column("uuid"), column("char(35)", length=35), False),
        (column("inet6"), column("varchar(39)", length=39), True),
        (column("inet4"), column("varchar(14)", length=14), False),
        (column("datetime(3)", fsp=3), column("datetime(6)", fsp=6), True),
        (column("datetime(3)", fsp=3), column("datetime", fsp=0), False),
        (column("float(7,2)"), column("float(9,3)"), True),
        (column("float"), column("double(9,3)"), False),
        (column("double(9,3)"), column("double(9,2)"), False),
        (column("double(9,3)"), column("double"), True),
        (column("timestamp"), column("timestamp", nullable=False), False),
        (column("timestamp", nullable=False), column("timestamp", nullable=False), True),
        (column("int(11)"), column("int(11)", nullable=False, auto_increment=True), False),
        (column("int(11)"), column("int(11)", nullable=False), True),
        (column("binary(4)", length=4), column("binary(5)", length=5), False),
        (column("bit(9)", precision=9), column("bit(8)", precision=8), False),
        (column("bit(8)", precision=8), column("bit(9)", precision=9), True),
        (column("enum('a','b')", members=("a", "b")), column("enum('b','a','c')", members=("b", "a", "c")), True),
        (column("enum('a','b')", members=("a", "b")), column("enum('a')", members=("a",)), False),
    ],
)
def test_sizes_count_where_the_server_would_change_a_value_silently(source: Column, target: Column, fits: bool) -> None:
    assert (misfits(table(source), table(target)) == []) is fits


def test_columns_that_only_one_side_has() -> None:
    mine = Column("id", "int", "int(11)")
    generated = Column("g", "int", "int(11)", generated=True)
    assert misfits(table(mine, generated), table(mine)) == []
    assert "missing" in misfits(table(mine), table())[0]
    assert misfits(table(mine), table(mine, Column("x", "int", "int(11)"))) == []
    bare = Column("x", "int", "int(11)", nullable=False, has_default=False)
    assert "no default" in misfits(table(mine), table(mine, bare))[0]
    assert "generated" in misfits(table(Column("g", "int", "int(11)")), table(generated))[0]


def test_names_are_compared_without_case() -> None:
    assert misfits(table(Column("ID", "int", "int(11)")), table(Column("id", "int", "int(11)"))) == []
