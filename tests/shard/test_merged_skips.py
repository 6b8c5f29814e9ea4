"""A human leaves out a statement that may run, or that waits only until the target is free."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from merged_world import BASE, NAME, A, B, World, behind, columns, definition, keys

from unshard.model.position import Location, Position
from unshard.model.table import Table
from unshard.shard.group import ShardingGroup, TableState
from unshard.shard.merged_parts import MergedChange, StructureRequest, WaitKind
from unshard.shard.merged_table import MergedTable
from unshard.shard.sequence import DdlItem, ShardingSequence
from unshard.sync.sharding.optimistic import OperateRequest, OptimisticGroups
from unshard.target.operators import Operator, OperatorKind

KEYED = BASE.replace("  PRIMARY KEY (`id`)\n", "  PRIMARY KEY (`id`),\n  KEY `old` (`v`)\n")


def skip(world: World, shard: Any, change: str, by_hand: str = "") -> None:
    """A shard meets a statement that may run at once, and a human leaves it out; what he does by hand comes first."""
    before = world.upstream[shard]
    after = world.upstream[shard] = behind(before, change)
    table = world.table.ask(shard, StructureRequest(change, after, "", (change,)))
    (found,) = (one for one in table.evaluate().changes if one.shards)
    assert table.after is not None
    there = behind(table.after, by_hand) if by_hand else table.after
    table, found = table.skipped(found, there)
    world.table = table.begun(shard.source, found).done(found)
    world.settle()


def test_a_column_whose_drop_was_left_out_is_never_dropped() -> None:
    world = World(A, B)
    skip(world, A, "DROP COLUMN v")
    assert world.table.kept == {"v"}
    world.alter(B, "DROP COLUMN v")
    assert world.ran == ["ALTER TABLE `all`.`t` ALTER COLUMN `v` SET DEFAULT ''"]
    world.alter(A, "ADD COLUMN v VARCHAR(20) NOT NULL")
    assert world.table.evaluate().waits[A].kind is WaitKind.VALUES


@pytest.mark.parametrize(
    ("change", "ran"),
    [
        ("ADD COLUMN c INT DEFAULT 5", "ADD COLUMN `c` int(11) DEFAULT 5"),
        ("MODIFY v VARCHAR(90) NOT NULL", "MODIFY COLUMN `v` varchar(90)"),
        ("ADD KEY k (v)", ""),
        ("DROP KEY old", ""),
    ],
)
def test_what_rows_of_the_shard_need_comes_all_the_same(change: str, ran: str) -> None:
    world = World(A, B, base=KEYED)
    skip(world, A, change)
    assert [ddl.partition("` ")[2].startswith(ran) for ddl in world.ran] == [True] * bool(ran)
    assert keys(world.table.after) == [("old", ("v",)), ("primary", ("id",))]


def test_what_a_human_has_made_of_the_target_is_not_made_again() -> None:
    change = "ADD COLUMN c INT DEFAULT 5, MODIFY v VARCHAR(90) NOT NULL, ADD KEY k (v)"
    world = World(A, B)
    skip(world, A, change, by_hand=change)
    assert world.ran == []
    assert keys(world.table.after) == [("k", ("v",)), ("primary", ("id",))]
    assert set(columns(world.table.after)) == {"id", "v", "c"}
    world.alter(B, change)
    assert world.ran == []


def test_where_nobody_knows_the_target_the_statement_counts_as_made() -> None:
    table = World(A, B).table.ask(A, StructureRequest("1", behind(definition(), "ADD COLUMN c INT"), "", ("x",)))
    (change,) = table.evaluate().changes
    assert set(columns(table.skipped(change, None)[1].after)) == {"id", "v", "c"}


OPERATOR = Operator(7, "s1", OperatorKind.SKIP, Position("b.1", 40))


def looks(table: MergedTable, *, barrier: str = "", asked: str = "1") -> tuple[ShardingGroup, Any]:
    """A group in which A waits with a statement that has the id 1, and what looks for an operator there."""
    before, request = Table(A.table, ()), {"id": asked, "barrier": barrier}
    payload = {"before": before.to_dict(), "request": request}
    item = DdlItem(Location(Position("b.1", 40)), Location(Position("b.1", 50)), ("x",), payload)
    group = ShardingGroup("s1", NAME, {A.table: TableState(ShardingSequence((item,)))})
    return group, SimpleNamespace(store=SimpleNamespace(source="s1"), merged={NAME: table}, strict=False)


def test_a_statement_that_waits_until_the_target_is_free_is_left_out() -> None:
    world = World(A, B)
    change = StructureRequest("1", behind(definition(), "DROP COLUMN v"), "", ("x",))
    busy = world.table.ask(A, change).begun("s2", MergedChange((), definition(), {}))
    group, groups = looks(busy)
    assert OptimisticGroups._decided(groups, group, [OPERATOR]) == OperateRequest(group, A.table, OPERATOR)
    left = busy.force(A, skip=True)
    request = left.shards[A].request
    assert request is not None
    assert request.kept == {"v"}
    group, groups = looks(left)
    assert OptimisticGroups._decided(groups, group, [OPERATOR]) is None, "a second word is for the change itself"
    runs = world.table.ask(A, change)
    (mine,) = runs.evaluate().changes
    group, groups = looks(runs.begun("s1", mine))
    assert OptimisticGroups._decided(groups, group, [OPERATOR]) is None, "it is for the change that runs"


def test_a_statement_behind_one_that_waited_is_left_out_before_it_is_asked_for() -> None:
    table = World(A, B).table
    group, groups = looks(table)
    step = OperateRequest(group, A.table, OPERATOR)
    assert OptimisticGroups._given_first(groups, group, A.table, [OPERATOR]) == step
    assert OptimisticGroups._given_first(groups, group, A.table, []) is None
    group, groups = looks(table, barrier="it renames")
    assert OptimisticGroups._given_first(groups, group, A.table, [OPERATOR]) is None
    asked = table.ask(A, StructureRequest("1", behind(definition(), "DROP COLUMN v"), "", ("x",)))
    group, groups = looks(asked)
    assert OptimisticGroups._given_first(groups, group, A.table, [OPERATOR]) is None
