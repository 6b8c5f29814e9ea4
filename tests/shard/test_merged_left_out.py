"""Statements of shards that an event filter or a human leaves out of a merged table: the target changes nothing."""

from __future__ import annotations

import pytest
from merged_world import NAME, A, B, C, World, behind, columns, definition, keys

from unshard.model.table import TableName
from unshard.shard.carried import carried
from unshard.shard.merged_form import from_form, to_form
from unshard.shard.merged_parts import ShardId, WaitKind, names_of

KEYED = """CREATE TABLE `t` (
  `id` bigint(20) NOT NULL,
  `v` varchar(20) NOT NULL,
  PRIMARY KEY (`id`),
  KEY `old` (`v`)
) ENGINE=InnoDB"""


@pytest.mark.parametrize("shards", [(A,), (A, B, C)])
@pytest.mark.parametrize("skipped", [False, True])
@pytest.mark.parametrize(
    "change", ["DROP COLUMN v", "DROP KEY old", "ADD KEY k (v)", "CHANGE v w VARCHAR(20) NOT NULL"]
)
def test_nothing_of_the_target_is_dropped(shards: tuple[ShardId, ...], skipped: bool, change: str) -> None:
    world = World(*shards, base=KEYED)
    for shard in shards:
        world.leave_out(shard, change, skipped=skipped)
    assert "DROP" not in "".join(world.ran).replace("DROP DEFAULT", "")
    assert "KEY" not in "".join(world.ran)
    assert "v" in columns(world.table.after)
    for shard in shards:
        world.alter(shard, "ADD COLUMN more INT")
    assert {"id", "v", "more"} <= columns(world.table.after).keys()
    assert ("old", ("v",)) in keys(world.table.after)
    assert not world.open
    assert not world.table.leaving


@pytest.mark.parametrize(
    "change",
    [
        "DROP COLUMN v",
        "ADD KEY k (v), ADD COLUMN c INT DEFAULT 5",
        "MODIFY v VARCHAR(90)",
        "ADD COLUMN made DATETIME NOT NULL DEFAULT CURRENT_TIMESTAMP",
        "CONVERT TO CHARACTER SET latin1",
    ],
)
def test_what_an_event_filter_leaves_out_runs_nothing(change: str) -> None:
    """Neither at once nor with a later statement, and no other shard waits because of it."""
    world = World(A, C)
    for shard in (A, C):
        world.leave_out(shard, change)
    assert world.ran == []
    for shard in (A, C):
        world.alter(shard, "ADD COLUMN more INT")
    assert world.ran == ["ALTER TABLE `all`.`t` ADD COLUMN `more` int(11) DEFAULT NULL"]
    assert not world.open


def test_a_part_that_is_left_out_stays_left_out() -> None:
    world = World(A, C)
    for shard in (A, C):
        world.alter(shard, "ADD COLUMN d INT", left_out="DROP COLUMN v")
    for shard in (A, C):
        world.alter(shard, "ADD COLUMN e INT")
    assert columns(world.table.after).keys() == {"id", "v", "d", "e"}
    assert not world.table.leaving
    assert world.table.shards[A].names == {"id", "d", "e"}


def test_other_shards_drop_what_one_has_left_out() -> None:
    world = World(A, B)
    world.leave_out(A, "DROP COLUMN v")
    world.alter(B, "DROP COLUMN v")
    assert "v" in columns(world.table.after)
    assert world.table.rules == {"v": "''"}
    world.drop(A)
    assert "v" in columns(world.table.after)


def test_a_column_that_comes_back_may_have_other_values() -> None:
    world = World(A, B)
    for shard in (A, B):
        world.leave_out(shard, "DROP COLUMN v")
    world.alter(A, "ADD COLUMN v VARCHAR(20) NOT NULL")
    assert world.table.evaluate().waits[A].kind is WaitKind.VALUES
    world.table = world.table.force(A)
    world.settle()
    assert not world.open
    assert world.table.shards[A].names == {"id", "v"}
    assert world.table.kept == {"v"}, "B still lacks it"


def test_a_new_shard_lacks_what_others_have_left_out() -> None:
    world = World(A)
    world.leave_out(A, "DROP COLUMN v")
    new = ShardId("s2", TableName("s", "new"))
    assert world.table.fits(new, world.upstream[A]) == ""
    for table in (world.table.created(new, world.upstream[A]), world.table.register(new, world.upstream[A], {"id"})):
        assert table.shards[new].kept == {"v"}
        assert table.evaluate().changes == ()
    away = world.table.without(A)
    assert away.register(new, world.upstream[A], {"id"}).leaving == {}


def test_what_is_left_out_is_stored() -> None:
    world = World(A, B)
    world.leave_out(A, "DROP COLUMN v")
    world.alter(A, "ADD UNIQUE KEY u (id)")
    request = world.table.shards[A].request
    assert request is not None
    assert request.kept == {"v"}
    stored = from_form(NAME, to_form(world.table))
    assert stored.kept == world.table.kept == {"v"}
    kept = {shard: (state.kept, state.request and state.request.kept) for shard, state in stored.shards.items()}
    assert kept == {A: (frozenset("v"), frozenset("v")), B: (frozenset(), None)}


def test_a_statement_changes_what_it_changes_upstream() -> None:
    own = definition(KEYED)
    before = behind(own, "ADD COLUMN x INT, DROP COLUMN v")
    after = behind(before, "MODIFY id BIGINT NOT NULL COMMENT 'k', MODIFY x BIGINT, ADD KEY more (id)")
    found = carried(own, before, after)
    assert names_of(found) == {"id", "v"}
    assert {name for name, _ in keys(found)} == {"primary", "old", "more"}
    assert found.column("id") == after.column("id")
    assert carried(own, own, after) == after
