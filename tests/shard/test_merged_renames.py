"""Shards of optimistic mode that are renamed while they wait."""

from __future__ import annotations

from dataclasses import replace

from merged_world import A, B, C, World, behind, columns, definition

from unshard.model.position import Location, Position
from unshard.model.table import TableName
from unshard.shard.group import ShardingGroup
from unshard.shard.merged_parts import ShardId
from unshard.shard.sequence import DdlItem
from unshard.sync.sharding.optimistic import precedes_waiting

NEW = ShardId("s1", TableName("s", "t_9"))
RENAME = "CHANGE v w VARCHAR(20) NOT NULL"


def test_a_renamed_shard_waits_with_its_own_statement() -> None:
    world = World(A, B, C)
    world.alter(B, "ADD COLUMN e INT DEFAULT 5")
    for shard in (A, B):
        world.alter(shard, RENAME)
    world.rename(B, NEW)
    world.alter(C, RENAME)
    assert not world.open
    assert columns(world.table.after).keys() == {"id", "w", "e"}
    world.drop(B)  # all that it had under its old name is read
    assert columns(world.table.after).keys() == {"id", "w", "e"}
    assert not world.table.leaving


def test_a_shard_is_renamed_while_its_statement_runs() -> None:
    """Both names have the change when it is done: nothing is made again, and nobody waits for it."""
    world = World(A, C)
    world.alter(A, RENAME)
    request, after = world.table.shards[A].request, behind(definition(), RENAME)
    assert request is not None
    table = world.table.ask(C, replace(request, id="of C"))
    table = table.begun("s2", table.at_barrier(table.evaluate(), after)).renamed({A: NEW}, [A])
    assert table.runner is not None
    assert set(table.runner.change.shards) == {A, NEW, C}
    done = table.done(table.runner.change)
    assert all(state.request is None and state.structure == after for state in done.shards.values())
    assert done.evaluate().changes == ()


def test_a_new_name_is_released_behind_the_old_one() -> None:
    """Its changes are later in the log; between two statements that came over with it are none."""
    group = ShardingGroup("s1", C.table).add(B.table, place(1))
    group = group.hold(B.table, item(100)).hold(B.table, item(200)).rename({B.table: NEW.table}, place(300), place(310))
    assert not precedes_waiting(group, NEW.table)
    group = group.release(NEW.table, place(400))
    assert precedes_waiting(group, NEW.table)
    group = group.release(B.table, place(400)).resynced(place(200), place(400)).release(B.table, place(400))
    assert not precedes_waiting(group, NEW.table)
    assert group.release(NEW.table, place(400)).behind


def item(offset: int) -> DdlItem:
    return DdlItem(place(offset), place(offset + 5), ("x",), {"before": None})


def place(offset: int) -> Location:
    return Location(Position("bin.000001", offset), "")
