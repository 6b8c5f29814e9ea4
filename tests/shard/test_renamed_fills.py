"""Whose source brings the values of old rows where a table was renamed while it waited with the statement."""

from __future__ import annotations

import pytest
from merged_world import CONTEXT, NAME, A, B, behind, definition

from unshard.ddl.parse import classify_ddl
from unshard.ddl.prepare import RoutedDdl
from unshard.model.position import Location, Position
from unshard.model.table import Table, TableName
from unshard.schema.definition import Dialect
from unshard.schema.text import to_table
from unshard.shard.group import ShardingGroup
from unshard.shard.sequence import DdlItem
from unshard.sync.sharding.item_fills import item_fill
from unshard.sync.sharding.owner import item_payload

MADE = "ADD COLUMN made DATETIME NOT NULL DEFAULT CURRENT_TIMESTAMP"
NEW = TableName("s", "t_9")


def place(offset: int) -> Location:
    return Location(Position("bin.000001", offset), "")


def shard(name: TableName, *, altered: bool) -> Table:
    return to_table(behind(definition(), MADE) if altered else definition(), name, Dialect.MARIADB)


def waiting(*tables: TableName) -> ShardingGroup:
    """A group whose tables wait with the statement."""
    ddl = classify_ddl(f"ALTER TABLE `all`.`t` {MADE}", CONTEXT)
    group = ShardingGroup("s1", NAME)
    for number, name in enumerate(tables):
        group = group.add(name, place(1))
        payload = item_payload(shard(name, altered=False), [RoutedDdl(ddl)])
        begin = 100 * (number + 1)
        group = group.hold(name, DdlItem(place(begin), place(begin + 5), (ddl.text,), payload))
    return group


def filled(group: ShardingGroup, *, several: bool = True) -> dict[TableName, tuple[str, ...]]:
    """The columns to bring by table; the source has the tables under their last names."""
    names = [name for name, state in group.tables.items() if state.gone is None]
    upstream = {name: shard(name, altered=True) for name in names}
    found = {
        name: item_fill(group, name, upstream.get, frozenset(), several=several, tidb=False)[0] for name in group.tables
    }
    return {name: fill.columns for name, fill in found.items() if fill is not None}


@pytest.mark.parametrize("last", [{}, {B.table: shard(B.table, altered=True).to_dict()}])
def test_the_new_name_has_the_rows_of_the_old_one(last: dict[TableName, object]) -> None:
    """The source has no table of the old name to read them from."""
    group = waiting(A.table, B.table)
    assert filled(group) == {A.table: ("made",), B.table: ("made",)}
    renamed = group.rename({B.table: NEW}, place(300), place(310), last)  # type: ignore[arg-type]
    assert filled(renamed) == {A.table: ("made",), NEW: ("made",)}
    again = renamed.rename({NEW: B.table}, place(400), place(410))
    assert filled(again) == {A.table: ("made",), B.table: ("made",)}


def test_two_that_exchange_their_names() -> None:
    group = waiting(A.table, B.table).rename({A.table: B.table, B.table: A.table}, place(300), place(310))
    assert filled(group) == {A.table: ("made",), B.table: ("made",)}


def test_rows_of_a_dropped_table_are_nowhere_to_be_read() -> None:
    group = waiting(A.table, B.table).drop(B.table, place(300), shard(B.table, altered=True).to_dict())
    assert filled(group) == {A.table: ("made",), B.table: ("made",)}
