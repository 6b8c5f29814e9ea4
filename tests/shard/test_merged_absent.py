"""A source or a table that the task leaves out for a while, in optimistic mode: its rows stay as they are."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from merged_world import CONTEXT, NAME, A, B, C, World, behind, columns, definition

from unshard.ddl.parse import classify_ddl
from unshard.ddl.prepare import RoutedDdl
from unshard.model.position import Location, Position
from unshard.shard.merged_form import from_form, to_form
from unshard.shard.merged_parts import MergedChange, OldRows, ShardId, StructureRequest, WaitKind, names_of
from unshard.shard.merged_table import MergedTable
from unshard.shard.sequence import DdlItem
from unshard.sync.sharding.merged_changes import MergedChanges


def leave(world: World) -> World:
    """Take the second source out of the task, and return the world that comes back later."""
    world.table = world.table.take_out("s2")
    del world.waiting[C]
    world.settle()
    return world


def come_back(world: World) -> None:
    """Put the second source into the task again; the record was stored meanwhile."""
    world.table = from_form(NAME, to_form(world.table))
    assert world.table.after is not None
    world.table = world.table.register(C, world.upstream[C], names_of(world.table.after))
    world.waiting[C] = []
    world.settle()


def test_columns_that_only_an_absent_shard_has_stay() -> None:
    world = World(A, C)
    world.alter(C, "ADD COLUMN c INT NOT NULL DEFAULT 0")
    leave(world)
    world.alter(A, "ADD COLUMN more INT")
    assert "c" in columns(world.table.after), "old rows of the absent shard have their values there"
    assert not world.table.leaving
    come_back(world)
    assert not [ddl for ddl in world.ran if "DROP COLUMN" in ddl]
    assert world.ran[-1] == "ALTER TABLE `all`.`t` ADD COLUMN `more` int(11) DEFAULT NULL"
    assert world.table.shards[C].names == {"id", "v", "c"}
    assert world.table.absent == {}


@pytest.mark.parametrize("shards", [(A, C), (A, B, C)])
def test_the_others_drop_a_column_that_an_absent_shard_has(shards: tuple[ShardId, ...]) -> None:
    """Its drop runs with the last shard that has it, which is the absent one."""
    world = leave(World(*shards))
    for shard in shards[:-1]:
        world.alter(shard, "DROP COLUMN v")
    assert not world.open
    assert world.ran == ["ALTER TABLE `all`.`t` ALTER COLUMN `v` SET DEFAULT ''"]
    come_back(world)
    assert "v" in columns(world.table.after)
    world.alter(C, "DROP COLUMN v")
    assert world.ran[-1] == "ALTER TABLE `all`.`t` DROP COLUMN `v`"


def test_a_shard_that_was_absent_has_dropped_what_it_had_dropped() -> None:
    world = World(A, B, C)
    for shard in (A, C):
        world.alter(shard, "ADD COLUMN c INT")
    world.alter(C, "DROP COLUMN c")
    come_back(leave(world))
    world.alter(C, "ADD COLUMN c INT")
    assert world.table.evaluate().waits[C].kind is WaitKind.VALUES
    assert f"the target keeps it for {A}" in world.waits[C]


def test_a_column_that_went_while_a_shard_was_absent_is_a_new_one() -> None:
    world = World(A, B, C)
    world.alter(A, "ADD COLUMN c INT")
    world.alter(C, "ADD COLUMN c INT")
    world.alter(C, "DROP COLUMN c")
    leave(world)
    world.alter(A, "DROP COLUMN c")
    assert "c" not in columns(world.table.after)
    world.alter(A, "ADD COLUMN c INT")
    come_back(world)
    world.alter(C, "ADD COLUMN c INT")
    assert not world.open


def test_a_rule_that_ends_while_a_shard_is_absent_says_nothing_of_its_rows() -> None:
    """They have the first one, and a later one of the same column may be another."""
    world = leave(World(A, B, C))
    for shard in (A, B):
        world.alter(shard, "ADD COLUMN c INT DEFAULT 5")
    for shard in (A, B):
        world.alter(shard, "ALTER COLUMN c SET DEFAULT 7")
    world.alter(B, "DROP COLUMN c")
    assert world.table.rules == {"c": "7"}
    come_back(world)
    world.alter(C, "ADD COLUMN c INT DEFAULT 7")
    assert world.table.evaluate().waits[C].kind is WaitKind.VALUES


def test_who_has_the_column_is_told_also_while_it_is_absent() -> None:
    world = World(A, C)
    leave(world)
    world.alter(A, "DROP COLUMN v")
    world.alter(A, "ADD COLUMN v VARCHAR(20) NOT NULL")
    assert f"the target keeps it for {C}" in world.waits[A]


def test_a_shard_whose_statement_was_left_out_comes_back() -> None:
    """Its own structure has no common one with the others'; that which is in force for it has."""
    world = World(A, C)
    world.leave_out(C, "MODIFY v INT NOT NULL", skipped=True)
    assert world.table.shards[C].fitted
    come_back(leave(world))
    assert world.table.shards[C].fitted
    world = World(A, C)
    world.leave_out(C, "DROP COLUMN v")
    come_back(leave(world))
    assert world.table.shards[C].kept == world.table.kept == {"v"}


def test_what_a_human_has_left_out_of_an_absent_shard_fits_what_the_target_is_now() -> None:
    world = World(A, C)
    world.leave_out(C, "ADD COLUMN c INT DEFAULT 5", skipped=True)
    world.leave_out(C, "MODIFY v INT NOT NULL", skipped=True)
    leave(world)
    world.alter(A, "DROP COLUMN v")
    world.alter(A, "ADD COLUMN d VARCHAR(9) NOT NULL")
    come_back(world)
    assert world.table.evaluate().changes == ()
    world.check()


def test_a_statement_that_came_into_force_is_not_asked_for_again() -> None:
    """Its source has still to write its values into old rows, and to release the table."""
    world = World(A, C)
    after = behind(definition(), "ADD COLUMN made DATETIME DEFAULT NOW()")
    request = StructureRequest("1", after, "it computes", ("x",))
    table = world.table.ask(A, request).ask(C, replace(request, id="2"))
    table = table.done(table.at_barrier(table.evaluate(), None)).take_out("s2")
    table = table.register(C, request.after, names_of(request.after))
    assert (table.shards[C].done, table.shards[C].old_rows) == ("2", OldRows.OF_ONE_RUN)


def test_the_only_shard_that_is_left_does_not_run_its_own_text() -> None:
    world = leave(World(A, C))
    assert not world.table.is_of_one_shard
    assert World(A).table.is_of_one_shard


def test_one_table_is_left_out_by_the_lists_of_its_source() -> None:
    world = World(A, B)
    world.alter(B, "ADD COLUMN c INT")
    table = world.table.leave(B).noted("s1")
    assert table.evaluate().changes == ()
    assert table.register(B, world.upstream[B], {"id", "v", "c"}).shards == world.table.shards
    assert table.created(B, world.upstream[B]).absent == {}
    assert table.joined(B, world.upstream[B]).absent == {}


def test_a_table_that_is_dropped_takes_its_columns_along() -> None:
    """So it is documented: the rows that stay lose what no table has any more."""
    world = World(A, B)
    world.alter(B, "ADD COLUMN c INT")
    world.drop(B)
    assert world.ran[-1].endswith("DROP COLUMN `c`")


def test_a_column_for_absent_shards_alone_keeps_no_task_in_its_mode() -> None:
    """The target gives it to rows of the others by its default, as a target of another mode does."""
    world = World(A, C)
    world.alter(C, "ADD COLUMN c INT NOT NULL DEFAULT 5")
    assert not world.table.is_settled
    assert leave(world).table.is_settled


def test_a_task_that_leaves_the_mode_keeps_nothing() -> None:
    table = World(A, C).table.take_out("s2")
    assert table.absent.keys() == {C}
    assert table.take_out("s1").absent.keys() == {A, C}
    assert table.take_out("s1", forget=True) == replace(table, shards={}, seen={}, absent={})


def test_all_sources_leave_and_come_back() -> None:
    world = World(A, C)
    world.leave_out(C, "DROP COLUMN v")
    table = from_form(NAME, to_form(world.table.take_out("s1").take_out("s2")))
    assert (table.sources, table.evaluate().waits) == (frozenset(), {})
    back = table.register(C, world.upstream[C], {"id", "v"}).register(A, world.upstream[A], {"id", "v"})
    assert back.shards == world.table.shards
    assert back.evaluate().changes == ()
    assert MergedTable(NAME).absent == {}


def test_rows_of_shards_that_left_are_never_cut() -> None:
    """The statement for all shards is run as each of them took it, but rows that none of them has are in the target."""
    world = World(A, B, C)
    assert not world.table.has_rows_of_others
    world.drop(B)
    assert from_form(NAME, to_form(world.table)).has_rows_of_others
    leave(world := World(A, B, C))
    assert world.table.has_rows_of_others
    come_back(world)
    assert not world.table.has_rows_of_others


@pytest.mark.parametrize("strict", [False, True])
def test_a_statement_for_all_shards_is_strict_where_rows_of_others_are_there(strict: bool) -> None:
    world = World(A, B, C)
    if strict:
        world.drop(B)
    ddl = classify_ddl("ALTER TABLE `all`.`t` MODIFY v VARCHAR(5) NOT NULL", CONTEXT)
    at = Location(Position("b.1", 4))
    item = DdlItem(at, at, (ddl.text,), {"before": None, "statements": []})
    handler: Any = SimpleNamespace(_left_to_run=lambda *_: [RoutedDdl(ddl)])
    change = MergedChange((A,), definition(), {}, barrier=True)
    (found,) = MergedChanges._own(handler, world.table, change, {A.table: item}, at)
    assert (found.ddl.text, found.ddl.context.strict) == (ddl.text, strict)
