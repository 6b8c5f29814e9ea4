"""Columns whose values a target stores in another form although every statement succeeds."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from typing import Any

from unshard.model.table import Column, Table
from unshard.mysql.charsets import TWO_CODES
from unshard.mysql.flavour import Flavour, identify
from unshard.mysql.tidb import is_tidb
from unshard.mysql.types import CHARACTERS


@dataclass(frozen=True, slots=True)
class TargetKind:
    """The database products of the source and of the target.

    `from_mysql`: the source is MySQL. `json`: the target's JSON is not a text: it is MySQL or TiDB, not MariaDB.
    `tidb`: the target is TiDB.
    """

    from_mysql: bool
    json: bool
    tidb: bool


def target_kind(connection: Any, *, from_mysql: bool) -> TargetKind:
    """Return the products on both ends of a connection to the target."""
    tidb = is_tidb(connection)
    mysql = not tidb and identify(connection).flavour is Flavour.MYSQL
    return TargetKind(from_mysql, tidb or mysql, tidb)


def documents(table: Table, there: Table | None, kind: TargetKind) -> list[Column]:
    """Return the columns of MySQL's JSON whose DECIMAL, dates and binary values become other ones."""
    if not kind.from_mysql:
        return []
    takes = _columns(there)
    default = "json" if kind.json else "longtext"
    return [
        column
        for column in table.columns
        if column.type == "json"
        and not column.generated
        and (takes[column.name.lower()].type if column.name.lower() in takes else default) == "json"
    ]


def texts_of_documents(table: Table, there: Table | None, kind: TargetKind) -> list[Column]:
    """Return the columns of text, MariaDB's JSON among them, that the target has as JSON: numbers may lose digits."""
    takes = _columns(there)
    return [
        column
        for column in table.columns
        if kind.json
        and column.type in CHARACTERS
        and not column.generated
        and column.name.lower() in takes
        and takes[column.name.lower()].type == "json"
    ]


def codes(table: Table, there: Table | None, kind: TargetKind, *, as_text: bool = False) -> list[Column]:
    """Return the columns of text in which a character may get the other one of its two codes.

    They are those whose bytes are not passed through: keys, ENUM and SET. `as_text`: those of no column are, as the
    copy goes through files of SQL.
    """
    if kind.tidb:
        return []
    takes, passed = _columns(there), frozenset() if as_text else passed_through(table, there or table)
    return [
        column
        for column in table.columns
        if column.charset in TWO_CODES
        and not column.generated
        and column.name not in passed
        and (column.name.lower() not in takes or takes[column.name.lower()].charset == column.charset)
    ]


def passed_through(table: Table, there: Table) -> frozenset[str]:
    """Return the columns of text whose bytes the target takes as they are, by their names in the source's table.

    Both ends have the same character set with two codes for some characters, which Unicode does not tell apart. Rows
    are found by Unicode, so a column of a key is none of them, nor is any column of a table without a key.
    """
    takes = {column.name.lower(): column.charset for column in raw_columns(there)}
    return frozenset(column.name for column in raw_columns(table) if takes.get(column.name.lower()) == column.charset)


def raw_columns(table: Table) -> list[Column]:
    """Return the columns of one end whose bytes may be passed through."""
    keyed = {(name or "").lower() for key in table.unique_keys for name in key.columns}
    return [
        column
        for column in table.columns
        if column.charset in TWO_CODES
        and column.type in CHARACTERS
        and not column.generated
        and table.identity
        and column.name.lower() not in keyed
    ]


def with_raw_columns(table: Table, names: Collection[str]) -> Table:
    """Return the table with the values of these columns as the bytes that they are."""
    columns = tuple(replace(column, charset="binary") if column.name in names else column for column in table.columns)
    return replace(table, columns=columns)


def zeros(table: Table, kind: TargetKind) -> list[Column]:
    """Return the columns in which a -0 becomes 0: of these products only MySQL stores a -0."""
    if not kind.from_mysql or (kind.json and not kind.tidb):
        return []
    return [column for column in table.columns if column.type in ("float", "double") and not column.generated]


def times(table: Table, there: Table | None, kind: TargetKind) -> list[Column]:
    """Return the columns of TIME that may have values beyond the range of MySQL and TiDB, and that may be clamped.

    Two values of a key that become one would make one row of two, so a column of a unique key is not among them.
    """
    if kind.from_mysql or not kind.json:
        return []
    ends = (table,) if there is None else (table, there)
    keyed = {(name or "").lower() for end in ends for key in end.unique_keys for name in key.columns}
    return [
        column
        for column in table.columns
        if column.type == "time" and column.fsp and not column.generated and column.name.lower() not in keyed
    ]


def altered(
    table: Table, there: Table | None, kind: TargetKind, *, converts: bool = True, clamps: bool = False
) -> Iterator[tuple[str, list[Column]]]:
    """Yield each alteration in words, with the columns that it may happen to.

    `converts`: opaque values of JSON are converted; `clamps`: a TIME is clamped; else they are not written.
    """
    if converts and (found := documents(table, there, kind)):
        yield "a DECIMAL inside of a JSON document becomes a DOUBLE, dates, times and binary values strings", found
    if converts and (found := texts_of_documents(table, there, kind)):
        yield "a number in a JSON document becomes a DOUBLE, which rounds one of more than 15 digits", found
    if found := codes(table, there, kind):
        yield "a character with two codes arrives under one of them; the text is equal, its bytes may differ", found
    if found := zeros(table, kind):
        yield "a -0 arrives as 0, which compares as equal: this target stores none", found
    if clamps and (found := times(table, there, kind)):
        yield "a TIME beyond 838:59:59 arrives as 838:59:59, and `clamped_value` of the task has its row's key", found


def _columns(table: Table | None) -> dict[str, Column]:
    return {} if table is None else {column.name.lower(): column for column in table.columns}
