"""Statements of optimistic mode that all shards have met, and what keeps them from being run."""

from __future__ import annotations

import pytest
from merged_world import NAME, A, B, C, World, behind, columns

from unshard.errors import ShardError
from unshard.shard.merged_form import from_form, to_form
from unshard.shard.merged_parts import Wait, WaitKind

AGAIN = "ADD COLUMN IF NOT EXISTS c INT DEFAULT 7, ADD UNIQUE KEY u (v)"


def test_a_column_that_only_one_shard_has_not_had() -> None:
    """Upstream it got 7 in all rows of B, where the target has 5: a human decides."""
    world = World(A, B)
    world.alter(A, "ADD COLUMN c INT DEFAULT 5")
    for shard in (A, B):
        world.alter(shard, AGAIN)
    waits = world.table.evaluate().waits
    assert waits[B].kind is WaitKind.VALUES
    assert "5 in column c of the target, and 7" in waits[B].why
    assert str(B) in waits[A].why
    with pytest.raises(ShardError, match="SHARD-050"):
        world.table.force(A)
    world.table = world.table.force(B)
    world.settle()
    assert not world.open
    assert f"ALTER TABLE `all`.`t` {AGAIN}" in world.ran
    assert "c" in columns(world.table.after)


def test_a_column_that_one_shard_has_dropped_comes_back_at_a_barrier() -> None:
    world = World(A, B)
    for shard in (A, B):
        world.alter(shard, "ADD COLUMN c INT DEFAULT 7")
    world.alter(B, "DROP COLUMN c")
    for shard in (A, B):
        world.alter(shard, AGAIN)
    assert world.table.evaluate().waits[B].kind is WaitKind.VALUES


def test_a_barrier_with_the_value_that_rows_have() -> None:
    world = World(A, B)
    world.alter(A, "ADD COLUMN c INT DEFAULT 7")
    for shard in (A, B):
        world.alter(shard, AGAIN)
    assert not world.open


@pytest.mark.parametrize("to", ["`k` (`v`(15))", "`k` (`v`(10) DESC)", "`k` (`v`(10)) COMMENT 'x'"])
def test_a_key_that_gets_other_parts_of_its_columns(to: str) -> None:
    world = World(A, B, base=with_lines("KEY `k` (`v`(10))"))
    for shard in (A, B):
        world.alter(shard, f"DROP KEY k, ADD KEY {to}")
    assert not world.open
    assert world.table.after is not None
    assert world.table.after.key("k") == world.upstream[A].key("k")


def test_a_statement_that_no_shard_can_have_alone_is_run_when_all_have_met_it() -> None:
    """The default of the target's column is gone, so rows of no shard can do without the column."""
    world = World(A, B, base=with_lines("`d` date NOT NULL DEFAULT '2020-01-01'"))
    world.alter(B, "ALTER d SET DEFAULT '2021-01-01'")
    world.alter(A, "DROP COLUMN d")
    assert world.table.evaluate().waits[A].kind is WaitKind.STRUCTURES
    world.alter(B, "DROP COLUMN d")
    assert not world.open
    assert columns(world.table.after).keys() == {"id", "v"}


def test_a_statement_that_the_copy_of_one_shard_had() -> None:
    """That shard never meets it, so the others don't wait for it."""
    unique = "ADD UNIQUE KEY u (v)"
    world = World(A, B, C)
    world.upstream[A] = behind(world.upstream[A], unique)
    text = (f"ALTER TABLE `all`.`t` {unique}",)
    world.table = world.table.joined(A, world.upstream[A]).with_copied(A, text)
    assert from_form(NAME, to_form(world.table)).shards[A].copied == (text,)
    world.alter(A, "ADD COLUMN c INT")
    world.alter(B, unique)
    assert world.waits[B] == f"not met by {C}"
    world.alter(C, unique)
    assert not world.open
    assert world.table.after is not None
    assert world.table.after.key("u") is not None
    assert world.table.shards[A].copied == ()


def test_a_statement_that_all_copies_had_is_forgotten() -> None:
    table, text = World(A, B).table, ("ALTER TABLE `all`.`t` ADD UNIQUE KEY u (v)",)
    assert table.with_copied(A, text).with_copied(B, text).shards == table.shards


def test_a_copied_statement_is_forgotten_with_the_last_shard_that_was_to_meet_it() -> None:
    """A later statement of the same text is another one, which all shards have to meet."""
    world, narrows = World(A, B), "MODIFY v VARCHAR(10) NOT NULL"
    world.table = world.table.with_copied(A, (f"ALTER TABLE `all`.`t` {narrows}",))
    world.drop(B)
    assert world.table.shards[A].copied == ()


def test_a_column_that_is_wider_in_the_target_may_be_dropped_beside_a_new_one() -> None:
    world = World(A, B, base=with_lines("`d` datetime DEFAULT NULL"))
    world.alter(B, "MODIFY d DATETIME(3)")
    world.alter(A, "DROP COLUMN d, ADD COLUMN n VARCHAR(10) DEFAULT 'x'")
    assert not world.open


def test_a_statement_without_a_join_and_with_other_values_is_decided_and_run() -> None:
    """A human accepts the values of both shards; then it is run as that of a barrier."""
    lines = with_lines("`d` date NOT NULL DEFAULT '2020-01-01'", "`e` int NOT NULL DEFAULT 3")
    world = World(A, B, base=lines)
    for shard in (A, B):
        world.leave_out(shard, "DROP COLUMN e")
    world.alter(B, "ALTER d SET DEFAULT '2021-01-01'")
    for shard in (A, B):
        world.alter(shard, "DROP COLUMN d, ADD COLUMN IF NOT EXISTS e INT NOT NULL DEFAULT 5")
    assert {wait.kind for wait in world.table.evaluate().waits.values()} == {WaitKind.VALUES}
    for shard in (A, B):
        world.table = world.table.force(shard)
    world.settle()
    assert not world.open


@pytest.mark.parametrize(
    ("narrow", "wide", "to"),
    [
        ("`d` datetime NOT NULL", "MODIFY d DATETIME(6) NOT NULL", "MODIFY d VARCHAR(30) NOT NULL"),
        ("`d` time NOT NULL", "MODIFY d TIME(3) NOT NULL", "CHANGE d e VARCHAR(30) NOT NULL"),
        ("`d` bit(8) NOT NULL", "MODIFY d BIT(16) NOT NULL", "MODIFY d VARBINARY(30) NOT NULL"),
    ],
)
def test_a_column_that_is_wider_in_the_target_becomes_another_type(narrow: str, wide: str, to: str) -> None:
    """The target would make other texts of the rows of B than B itself: a human decides."""
    world = World(A, B, base=with_lines(narrow))
    world.alter(A, wide)
    for shard in (A, B):
        world.alter(shard, to)
    waits = world.table.evaluate().waits
    assert waits[B] == Wait(
        WaitKind.VALUES, "column d is wider in the target, which would make other values of this shard's old rows"
    )
    assert waits[A].kind is WaitKind.BUSY
    world.table = world.table.force(B)
    world.settle()
    assert not world.open


def with_lines(*lines: str) -> str:
    more = ["`id` bigint(20) NOT NULL", "`v` varchar(20) NOT NULL", *lines, "PRIMARY KEY (`id`)"]
    return "CREATE TABLE `t` (\n  " + ",\n  ".join(sorted(more, key=lambda line: "KEY" in line)) + "\n) ENGINE=InnoDB"
