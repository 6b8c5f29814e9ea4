"""What a merged table does about the statements of its shards, in optimistic mode: the pure decision."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from merged_world import NAME, A, B, C, World, behind, columns, definition, why_barrier

from unshard.errors import ShardError
from unshard.schema.definition import Dialect
from unshard.shard.join import IncompatibleError, unjoined_parts
from unshard.shard.merged_difference import difference
from unshard.shard.merged_form import from_form, to_form
from unshard.shard.merged_parts import MergedChange, StructureRequest, Wait, WaitKind, names_of
from unshard.shard.merged_table import MergedTable


def test_a_new_column_is_there_for_the_first_shard_and_costs_nothing_for_the_next() -> None:
    world = World(A, B, C)
    world.alter(A, "ADD COLUMN c INT NOT NULL DEFAULT 5")
    assert world.ran == ["ALTER TABLE `all`.`t` ADD COLUMN `c` int(11) NOT NULL DEFAULT 5"]
    assert world.table.seen["s1"].fills(names_of(world.upstream[B]))["c"][1].value == 5
    world.alter(B, "ADD COLUMN c INT NOT NULL DEFAULT 5")
    world.alter(C, "ADD COLUMN c INT NOT NULL DEFAULT 5")
    assert len(world.ran) == 1
    assert not world.open
    assert not world.table.rules


def test_not_null_without_a_default_gets_one_as_long_as_a_shard_lacks_it() -> None:
    world = World(A, B)
    world.alter(A, "ADD COLUMN c VARCHAR(9) NOT NULL")
    world.alter(B, "ADD COLUMN c VARCHAR(9) NOT NULL")
    first, last = world.ran
    assert first.endswith(
        "ADD COLUMN `c` varchar(9) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci NOT NULL DEFAULT ''"
    )
    assert last.endswith("ALTER COLUMN `c` DROP DEFAULT")


def test_what_the_target_lacks_already_is_not_dropped_again() -> None:
    before = behind(definition(), "ADD COLUMN c INT, ADD KEY by_v (v), ADD COLUMN d INT, ADD KEY by_d (d)")
    there = behind(before, "DROP COLUMN c, DROP KEY by_v")
    text = difference(NAME, before, definition(), Dialect.MARIADB, there)
    assert text == "ALTER TABLE `all`.`t` DROP INDEX `by_d`, DROP COLUMN `d`"
    assert not difference(NAME, before, definition(), Dialect.MARIADB, definition())


def test_expressions_are_in_brackets_which_mysql_requires() -> None:
    """MariaDB shows a call without."""
    before = behind(definition(), "ADD COLUMN c DATE, ADD COLUMN d DATE DEFAULT (CURDATE())")
    after = behind(definition(), "ADD COLUMN c DATE DEFAULT (CURDATE()), ADD COLUMN d INT DEFAULT (CURDATE())")
    text = difference(NAME, before, after, Dialect.MARIADB)
    changed = "ALTER COLUMN `c` SET DEFAULT (curdate()), MODIFY COLUMN `d` int(11) DEFAULT (curdate())"
    assert text.lower() == f"alter table `all`.`t` {changed}".lower()


def test_a_default_with_as_many_digits_as_a_decimal_has() -> None:
    world = World(A, B)
    world.alter(A, "ADD COLUMN c DECIMAL(65,30) NOT NULL DEFAULT 12345678901234567890123456789012345")
    assert world.table.rules["c"] == f"12345678901234567890123456789012345.{'0' * 30}"
    world.alter(B, "ADD COLUMN c DECIMAL(65,30) NOT NULL DEFAULT 12345678901234567890123456789012345")
    assert not world.open


def test_another_default_waits_and_says_what_differs() -> None:
    world = World(A, B)
    world.alter(A, "ADD COLUMN c INT DEFAULT 5")
    world.alter(B, "ADD COLUMN c INT DEFAULT 7")
    assert world.open == [B]
    assert "have 5 in column c of the target, and 7" in world.waits[B]


def test_a_dropped_column_goes_with_the_last_shard_that_has_it() -> None:
    world = World(A, B, C)
    for shard in (A, B):
        world.alter(shard, "DROP COLUMN v")
    assert world.ran == ["ALTER TABLE `all`.`t` ALTER COLUMN `v` SET DEFAULT ''"]
    assert world.table.seen["s1"].fills(names_of(world.upstream[A]))["v"][1].value == ""
    world.alter(C, "DROP COLUMN v")
    assert world.ran[1:] == ["ALTER TABLE `all`.`t` DROP COLUMN `v`"]


def test_a_column_is_not_dropped_before_every_source_writes_without_it() -> None:
    world = World(A, C, note=False)
    for source in ("s1", "s2"):
        world.table = world.table.noted(source)
    world.alter(A, "DROP COLUMN v")
    world.alter(C, "DROP COLUMN v")
    assert not world.open, "rows of both go on"
    assert world.table.leaving
    assert not world.ran[1:]
    world.table = world.table.noted("s1")
    world.settle()
    assert not world.ran[1:]
    world.table = world.table.noted("s2")
    world.settle()
    assert world.ran[1:] == ["ALTER TABLE `all`.`t` DROP COLUMN `v`"]


def test_a_shard_that_adds_a_dropped_name_again_waits_for_the_others() -> None:
    world = World(A, B)
    world.alter(A, "DROP COLUMN v")
    world.alter(A, "ADD COLUMN v VARCHAR(20) NOT NULL")
    assert "the target keeps it for s.t_1 of s1" in world.waits[A]
    world.alter(B, "DROP COLUMN V")
    assert not world.open
    assert world.ran[1].endswith("DROP COLUMN `v`")
    assert "ADD COLUMN `v`" in world.ran[2]


def test_the_wider_of_two_types_stays() -> None:
    world = World(A, B)
    world.alter(A, "MODIFY v VARCHAR(90) NOT NULL")
    world.alter(B, "MODIFY v VARCHAR(40) NOT NULL")
    world.alter(B, "MODIFY v VARCHAR(60) NULL")
    assert len(world.ran) == 2, "the second one is narrower than the target"
    made = world.table.after
    assert made is not None
    column = made.column("v")
    assert column is not None
    assert column.type.arguments == (90,)
    assert column.nullable


@pytest.mark.parametrize(
    "change",
    [
        "CHANGE v w VARCHAR(20) NOT NULL",
        "RENAME COLUMN v TO w",
        "MODIFY v VARCHAR(10) NOT NULL",
        "MODIFY v INT NOT NULL",
        "ADD UNIQUE KEY u (v)",
        "ADD COLUMN c INT UNIQUE",
        "DROP PRIMARY KEY",
        "DROP COLUMN id",
        "ADD COLUMN c DATETIME NOT NULL DEFAULT CURRENT_TIMESTAMP",
        "ADD COLUMN c INT AS (id) STORED",
        "ADD CONSTRAINT x CHECK (id > 0)",
        "PARTITION BY HASH (id) PARTITIONS 2",
        "COMMENT = 'x'",
        "CONVERT TO CHARACTER SET latin1",
        "DROP COLUMN v, ADD COLUMN v INT",
    ],
)
def test_what_needs_a_barrier(change: str) -> None:
    assert why_barrier(definition(), change)


@pytest.mark.parametrize(
    "change",
    [
        "ADD COLUMN c INT",
        "ADD COLUMN c ENUM('a','b') NOT NULL",
        "ADD COLUMN c DECIMAL(9,2) NOT NULL DEFAULT 1.5 AFTER id",
        "ADD KEY k (v)",
        "DROP COLUMN v",
        "MODIFY v VARCHAR(30) NOT NULL",
        "MODIFY v VARCHAR(20)",
        "ALTER v SET DEFAULT 'x'",
        "ADD COLUMN c INT, ADD COLUMN d INT, ADD KEY k (c)",
        "AUTO_INCREMENT = 7",
    ],
)
def test_what_needs_none(change: str) -> None:
    assert why_barrier(definition(), change) == ""


def test_a_barrier_is_for_all_shards() -> None:
    world = World(A, B, C)
    for shard in (C, A):
        world.alter(shard, "RENAME COLUMN v TO w")
        world.alter(shard, "ADD COLUMN more INT")
    assert world.open == [A, C]
    assert "not met by s.t_1 of s1" in world.waits[A]
    world.alter(B, "ADD COLUMN other INT")
    assert world.ran == ["ALTER TABLE `all`.`t` ADD COLUMN `other` int(11) DEFAULT NULL"]
    world.alter(B, "RENAME COLUMN v TO w")
    assert not world.open
    assert set(columns(world.table.after)) == {"id", "w", "other", "more"}


def test_the_last_shard_that_waits_for_a_dropped_one() -> None:
    world = World(A, B)
    world.alter(A, "RENAME COLUMN v TO w")
    world.drop(B)
    assert not world.open
    assert set(columns(world.table.after)) == {"id", "w"}


def test_a_shard_that_goes_takes_its_columns_along() -> None:
    world = World(A, B)
    world.alter(B, "ADD COLUMN c INT")
    world.drop(B)
    assert set(columns(world.table.after)) == {"id", "v"}


def test_a_new_shard_says_what_the_target_lacks() -> None:
    world = World(A, B)
    assert world.table.fits(C, definition()) == ""
    assert "no column more" in world.table.fits(C, behind(definition(), "ADD COLUMN more INT"))
    assert world.table.fits(C, behind(definition(), "MODIFY v INT NOT NULL"))


def test_a_new_shard_fits_what_the_target_is_to_become() -> None:
    world = World(A, B)
    for shard in (A, B):
        world.table = world.table.ask(
            shard, StructureRequest(shard.source, behind(definition(), "RENAME COLUMN v TO w"), "it renames")
        )
    decision = world.table.evaluate()
    begun = world.table.begun("s1", world.table.at_barrier(decision, behind(definition(), "RENAME COLUMN v TO w")))
    assert "no column v" in begun.fits(C, definition())
    assert begun.given_up("s1").fits(C, definition()) == ""


def test_a_new_table_has_never_dropped_what_it_lacks() -> None:
    world = World(A)
    world.alter(A, "ADD COLUMN c INT NOT NULL DEFAULT 5")
    table = world.table.created(C, definition())
    assert table.evaluate().changes == ()
    assert table.rules == {"c": "5"}
    table = table.ask(C, StructureRequest("1", behind(definition(), "ADD COLUMN c INT NOT NULL DEFAULT 5")))
    assert table.evaluate().waits == {}


def test_shards_without_a_common_structure_are_refused() -> None:
    table = MergedTable(NAME).register(A, definition())
    with pytest.raises(IncompatibleError):
        table.register(B, behind(definition(), "MODIFY v INT NOT NULL"))


def test_the_only_shard_has_its_statements_run_as_they_are() -> None:
    world = World(A)
    world.alter(A, "ADD COLUMN c INT FIRST, COMMENT = 'one'")
    assert world.ran == ["ALTER TABLE `all`.`t` ADD COLUMN c INT FIRST, COMMENT = 'one'"]


def test_a_shard_that_comes_while_the_only_one_asks() -> None:
    """What was asked by the only shard is decided by the record with both of them."""
    asked = MergedTable(NAME).register(A, definition())
    asked = asked.ask(A, StructureRequest("1", behind(definition(), "ADD COLUMN c INT")))
    assert asked.evaluate().barrier == (A,)
    assert asked.evaluate().changes == ()
    both = asked.register(C, definition())
    assert both.evaluate().barrier == ()
    (change,) = both.evaluate().changes
    assert change.shards == (A,)
    assert both.without(C).evaluate().barrier == (A,)


def test_shards_that_are_not_registered_yet_are_reckoned_with() -> None:
    asked = MergedTable(NAME).register(A, definition())
    asked = asked.ask(A, StructureRequest("1", behind(definition(), "ADD COLUMN c INT")))
    for unknown in (replace(asked, silent=frozenset({"s2"})), replace(asked, declared=frozenset({A, C}))):
        assert unknown.awaited == ("s2",)
        assert unknown.evaluate().barrier == ()
        assert [one.shards for one in unknown.evaluate().changes] == [(A,)]
    renamed = StructureRequest("1", behind(definition(), "RENAME COLUMN v TO w"), "it renames")
    asked = replace(asked.ask(A, renamed), declared=frozenset({A, C}))
    assert "s2: not started, or at its start" in asked.evaluate().waits[A].why
    assert "not met by" in asked.register(C, definition()).evaluate().waits[A].why


def test_a_shard_that_is_left_alone_narrows_nothing() -> None:
    """The rows of the one that is gone are still there."""
    world = World(A, B)
    world.alter(B, "MODIFY v VARCHAR(90) NOT NULL")
    world.drop(B)
    world.alter(A, "MODIFY v VARCHAR(40) NOT NULL")
    assert len(world.ran) == 1
    assert not world.open


def test_nothing_else_runs_while_somebody_changes_the_target() -> None:
    world = World(A, B)
    after = behind(world.upstream[A], "ADD COLUMN c INT")
    world.table = world.table.ask(A, StructureRequest("1", after))
    (change,) = world.table.evaluate().changes
    begun = world.table.begun("s1", change)
    assert begun.evaluate().changes == ()
    assert begun.evaluate().waits == {A: Wait(WaitKind.BUSY, "s1 changes the target")}
    assert begun.done(change).evaluate().waits == {}


def test_a_human_lets_a_shard_have_a_column_with_other_values() -> None:
    world = World(A, B)
    world.alter(A, "ADD COLUMN c INT DEFAULT 5")
    world.alter(B, "ADD COLUMN c INT DEFAULT 7")
    world.table = world.table.force(B)
    world.settle()
    assert not world.open
    with pytest.raises(ShardError, match="SHARD-050"):
        world.table.force(B)


def test_a_column_that_a_shard_has_lacked_from_the_beginning() -> None:
    """The copy may have filled it with anything."""
    table = MergedTable(NAME).register(A, behind(definition(), "ADD COLUMN c INT")).register(B, definition(), {"c"})
    table = table.ask(B, StructureRequest("1", behind(definition(), "ADD COLUMN c INT")))
    assert "lacked it from the beginning" in table.evaluate().waits[B].why


def test_a_source_that_is_taken_out_in_the_middle_of_a_change() -> None:
    """What it has open is for the next one; what it has not opened is nobody's."""
    world = World(A, C)
    table = world.table.ask(A, StructureRequest("1", behind(world.upstream[A], "ADD COLUMN c INT")))
    begun = table.begun("s1", table.evaluate().changes[0])
    assert begun.take_out("s1").runner is None
    left = begun.take_out("s1", {"steps": []})
    assert left.runner is not None
    assert (left.runner.source, left.runner.begun) == ("", {"steps": []})
    assert left.sources == {"s2"}
    assert set(columns(left.done(left.runner.change).after)) == {"id", "v", "c"}
    assert set(left.done(left.runner.change).leaving) == {"c"}


def test_a_source_that_comes_back_waits_until_the_target_takes_its_rows() -> None:
    """Its shard has a column that the target has lost, and has none that the target has got meanwhile."""
    renamed = behind(definition(), "CHANGE v w VARCHAR(20) NOT NULL")
    table = MergedTable(NAME).register(A, renamed).register(C, definition())
    assert (table.lacks("s1"), table.lacks("s2")) == (True, True)  # rows of neither have a value for both columns
    (change,) = table.evaluate().changes
    begun = table.begun("s1", change)
    assert begun.lacks("s2")
    assert not begun.done(change).lacks("s1")
    assert not begun.done(change).lacks("s2")


def test_a_shard_that_is_ahead_lets_no_source_wait() -> None:
    world = World(A, C)
    world.alter(A, "ADD COLUMN c INT, MODIFY v VARCHAR(90) NOT NULL")
    assert not world.table.lacks("s1")
    assert not world.table.lacks("s2")
    world.alter(A, "DROP COLUMN v")
    world.alter(C, "ADD COLUMN c INT")
    assert not world.table.lacks("s1")
    assert not world.table.lacks("s2")


def test_the_record_is_read_back_as_it_was_written() -> None:
    world = World(A, B, C)
    world.alter(A, "ADD COLUMN c ENUM('a','b') NOT NULL, ADD KEY k (v)")
    world.alter(B, "CHANGE v w VARCHAR(20) NOT NULL")
    world.alter(C, "DROP COLUMN v")
    begun = world.table.begun("s1", MergedChange((), definition(), {"c": "'a'"}, dropped=("v",)))
    assert from_form(NAME, json.loads(json.dumps(to_form(begun)))) == begun


@pytest.mark.parametrize(
    ("kind", "default", "value"),
    [
        ("DATETIME", "2020-01-01 00:00:00", "2020-01-01 00:00:00.000000"),
        ("TIME", "-01:02:03", "-01:02:03.000000"),
        ("DATETIME(2)", "2020-01-01 00:00:00.25", "2020-01-01 00:00:00.250000"),
    ],
)
def test_a_rule_stays_when_a_column_gets_a_fraction(kind: str, default: str, value: str) -> None:
    """Rows of a shard without the column get the value with the digits of the target's type."""
    world, name = World(A, B), kind.split("(")[0]
    world.alter(A, f"ADD COLUMN c {kind} NOT NULL DEFAULT '{default}'")
    world.alter(A, f"MODIFY c {name}(6) NOT NULL DEFAULT '{default}'")
    _, fill = world.table.noted("s1").seen["s1"].fills(frozenset({"id", "v"}))["c"]
    assert fill.value == value
    world.alter(B, f"ADD COLUMN c {kind} NOT NULL DEFAULT '{default}'")
    assert not world.open


def test_parts_that_are_not_joined_are_named() -> None:
    more = behind(definition(), "ADD UNIQUE KEY u (v), ADD CONSTRAINT low CHECK (id < 9), COMMENT = 'x'")
    assert unjoined_parts([definition(), more]) == ["unique keys", "CHECK constraints", "table options"]
    assert unjoined_parts([more, more]) == []
