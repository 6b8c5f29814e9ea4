"""Defaults and members of which a server shows letters of four bytes as `?`: nothing is generated from them."""

from __future__ import annotations

import pytest
from merged_world import BASE, NAME, A, B, World, behind, definition

from unshard.shard.join import IncompatibleError, fill_of, joined_structure
from unshard.shard.merged_parts import WaitKind
from unshard.shard.merged_table import MergedTable
from unshard.shard.shown_text import as_shown

LETTER = "VARCHAR(40) NOT NULL DEFAULT '😀'"


@pytest.mark.parametrize(
    "change",
    [
        f"ADD COLUMN a {LETTER}",
        "ADD COLUMN a VARCHAR(9) DEFAULT 'is it?'",
        "ADD COLUMN e ENUM('😀', 'b')",
        "MODIFY v VARCHAR(40) NOT NULL DEFAULT '😀'",
        "ALTER COLUMN v SET DEFAULT '😀'",
    ],
)
def test_a_statement_with_such_a_letter_is_for_all_shards_at_once(change: str) -> None:
    world = World(A, B)
    world.alter(A, change)
    assert world.waits[A].startswith("not met by")
    world.alter(B, change)
    assert not world.open
    assert world.ran == [f"ALTER TABLE `all`.`t` {change}"]


@pytest.mark.parametrize(
    "change",
    ["ADD COLUMN a VARCHAR(9) CHARACTER SET latin1 DEFAULT 'is it?'", "ADD COLUMN n INT COMMENT 'how many?'"],
)
def test_a_question_mark_that_is_one(change: str) -> None:
    world = World(A, B)
    world.alter(A, change)
    assert not world.open


def test_a_drop_is_for_all_shards_at_once() -> None:
    world = World(A, B)
    for shard in (A, B):
        world.alter(shard, f"ADD COLUMN a {LETTER}")
    world.alter(A, "DROP COLUMN a")
    assert world.open == [A]
    world.alter(B, "DROP COLUMN a")
    assert world.ran[-1] == "ALTER TABLE `all`.`t` DROP COLUMN a"


def test_the_join_has_such_a_default_only_in_a_column_that_it_leaves_as_it_is() -> None:
    one = behind(definition(), f"ADD COLUMN a {LETTER}")
    wide = behind(one, "MODIFY a VARCHAR(50) NOT NULL DEFAULT '😀'")
    same, _ = joined_structure([one, one], one, {})
    assert same == one
    wider, _ = joined_structure([one, wide], one, {})
    column = wider.column("a")
    assert column is not None
    assert (column.type.arguments, column.default) == ((50,), None)


def test_shards_of_other_members_do_not_join() -> None:
    one = behind(definition(), "ADD COLUMN e ENUM('😀', 'b')")
    longer = behind(one, "MODIFY e ENUM('😀', 'b', 'c')")
    assert joined_structure([one, one], one, {})[0] == one
    with pytest.raises(IncompatibleError, match="letters which the server shows as \\?"):
        joined_structure([one, longer], one, {})


def test_a_statement_with_such_members_is_left_out() -> None:
    """The target has no such column then, as there is no statement that could make it."""
    world = World(A, B)
    world.alter(A, "ADD COLUMN e ENUM('😀', 'b')")
    assert world.table.evaluate().waits[A].kind is WaitKind.SHARDS
    world.table = world.table.force(A, skip=True)
    world.settle()
    assert not world.open
    assert not world.ran


def test_a_shard_that_lacks_such_a_column_is_not_registered() -> None:
    table = MergedTable(NAME).register(A, behind(definition(), f"ADD COLUMN a {LETTER}"))
    with pytest.raises(IncompatibleError, match="no constant value"):
        table.joined(B, definition())


def test_a_server_that_shows_the_bytes_of_such_a_default() -> None:
    """As MySQL 8.0 does. The record has it as it is computed from a statement, and no row gets these digits."""
    computed = behind(definition(), f"ADD COLUMN a {LETTER}")
    line = "`a` varchar(40) NOT NULL DEFAULT 0xF09F9880"
    shown = definition(BASE.replace("  PRIMARY", f"  {line},\n  PRIMARY"))
    assert as_shown(shown) == computed
    column = shown.column("a")
    assert column is not None
    assert fill_of(column) is None
    with pytest.raises(IncompatibleError, match="no constant value"):
        MergedTable(NAME).register(A, as_shown(shown)).joined(B, definition())
