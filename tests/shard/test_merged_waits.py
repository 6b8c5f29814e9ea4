"""Why a shard waits in optimistic mode, what ends that, and how it is shown: pure."""

from __future__ import annotations

import re
import shlex
from dataclasses import replace

import pytest
from merged_world import NAME, A, B, C, World, behind, columns, definition

from unshard.errors import ShardError
from unshard.model.position import Location, Position
from unshard.shard.group import ShardingGroup
from unshard.shard.group_keeper import ShardingGroupKeeper
from unshard.shard.join import Fill
from unshard.shard.merged_parts import OldRows, ShardId, StructureRequest, Wait, WaitKind
from unshard.shard.merged_table import MergedTable
from unshard.shard.same_ddl import same_but_for_places
from unshard.shard.sequence import DdlItem
from unshard.shard.show_merged import merged_locks, waiting_shards

MADE = "ADD COLUMN made DATETIME NOT NULL DEFAULT CURRENT_TIMESTAMP"
RENAME = "RENAME COLUMN v TO w"


def wait_of(world: World, shard: ShardId) -> Wait:
    return world.table.evaluate().waits[shard]


def skip(world: World, shard: ShardId) -> None:
    world.table = world.table.force(shard, skip=True)
    world.settle()


@pytest.mark.parametrize(
    ("change", "ran"),
    [
        (MADE, "ADD COLUMN `made` datetime DEFAULT NULL"),
        ("ADD COLUMN u INT UNIQUE", "ADD COLUMN `u` int(11) DEFAULT NULL"),
        ("ADD COLUMN n INT NOT NULL AUTO_INCREMENT, ADD KEY (n)", "ADD COLUMN `n` int(11) DEFAULT NULL"),
        ("ADD COLUMN g INT AS (id) STORED", ""),
        ("MODIFY v INT NOT NULL", "ALTER COLUMN `v` SET DEFAULT ''"),
        ("MODIFY v VARCHAR(10) NOT NULL", ""),
        ("DROP PRIMARY KEY, DROP COLUMN id", ""),
        ("ADD UNIQUE KEY (v)", ""),
        ("CONVERT TO CHARACTER SET latin1", ""),
        ("COMMENT = 'x'", ""),
    ],
)
def test_a_statement_that_is_left_out_of_the_target(change: str, ran: str) -> None:
    """It ends the wait whatever the statement is, and neither this shard nor another one waits for it again."""
    world = World(A, B, C)
    world.alter(A, change)
    assert wait_of(world, A).kind is WaitKind.SHARDS
    skip(world, A)
    assert not world.open
    assert ran in "".join(world.ran)
    assert bool(world.ran) == bool(ran)
    world.alter(A, "ADD COLUMN more INT NOT NULL DEFAULT 3")
    world.alter(B, "MODIFY v VARCHAR(60) NOT NULL")
    assert not world.open
    assert {"id", "v", "more"} <= columns(world.table.after).keys()


def test_a_column_without_a_rule_that_the_shard_drops_may_be_null() -> None:
    world = World(A, B)
    for shard in (A, B):
        world.alter(shard, MADE)
    world.alter(A, "DROP COLUMN made")
    skip(world, A)
    assert not world.open
    assert world.ran[-1].endswith("MODIFY COLUMN `made` datetime DEFAULT NULL")
    (column, fill) = world.table.noted("s1").seen["s1"].absent({"made"})["made"]
    assert (column.name, fill) == ("made", Fill(None, "NULL"))
    world.alter(B, "ADD COLUMN more INT")
    assert not world.open


def test_a_statement_of_a_column_that_is_of_another_type_elsewhere() -> None:
    world = World(A, B)
    world.alter(A, "ADD COLUMN c VARCHAR(10)")
    world.alter(B, "ADD COLUMN c INT")
    assert wait_of(world, B).kind is WaitKind.STRUCTURES
    skip(world, B)
    assert not world.open
    assert world.table.shards[B].structure.column("c") is None, "its rows are written without it"
    assert world.table.rules == {"c": "NULL"}


@pytest.mark.parametrize(
    "change",
    [MADE, "MODIFY v INT NOT NULL", "ADD COLUMN g INT AS (id) STORED", "CONVERT TO CHARACTER SET latin1", RENAME],
)
def test_a_statement_that_is_left_out_before_it_waits(change: str) -> None:
    """No later statement waits because of it, neither of this shard nor of another one."""
    world = World(A, B, C)
    world.leave_out(A, change, skipped=True)
    world.alter(B, "ADD COLUMN more INT NOT NULL DEFAULT 3")
    world.alter(A, "ADD COLUMN more INT NOT NULL DEFAULT 3")
    assert not world.open
    world.alter(C, MADE)
    assert wait_of(world, C).kind in (WaitKind.SHARDS, WaitKind.CANNOT)
    skip(world, C)
    assert not world.open


def test_a_shard_that_fits_again_is_as_it_is() -> None:
    world = World(A, B)
    world.alter(A, MADE)
    skip(world, A)
    assert world.table.shards[A].fitted
    world.alter(A, "MODIFY made DATETIME NULL")
    assert not world.table.shards[A].fitted
    world.alter(A, "DROP COLUMN made")
    assert not world.open
    assert columns(world.table.after).keys() == {"id", "v"}


@pytest.mark.parametrize(
    ("wider", "back"),
    [
        ("MODIFY v VARCHAR(90) NOT NULL", "MODIFY v VARCHAR(20) NOT NULL"),
        ("MODIFY v VARCHAR(20) NULL", "MODIFY v VARCHAR(20) NOT NULL"),
        ("CHANGE V v VARCHAR(30) NOT NULL DEFAULT 'x'", "MODIFY v VARCHAR(20) NOT NULL"),
    ],
)
@pytest.mark.parametrize("shards", [[A], [A, B], [A, C]])
def test_a_widening_that_is_taken_back(wider: str, back: str, shards: list[ShardId]) -> None:
    """Shards that have never had it need not meet the statement that takes it back."""
    world = World(A, B, C)
    for shard in shards:
        world.alter(shard, wider)
    for shard in shards:
        world.alter(shard, back)
    assert (world.open, world.waits) == ([], {})
    assert columns(world.table.after) == columns(definition())
    world.alter(B, wider)
    world.alter(B, back)
    assert (world.open, columns(world.table.after)) == ([], columns(definition()))


def test_a_widening_that_is_taken_back_beside_another_statement_that_waits() -> None:
    """Of the shards that wait, each has met what the next one needs: none waits for the other for ever."""
    world = World(A, B)
    world.alter(A, "MODIFY v VARCHAR(90) NOT NULL")
    world.alter(B, RENAME)
    world.alter(A, "MODIFY v VARCHAR(20) NOT NULL")
    assert world.open == [B]
    assert "not met by s.t_0 of s1" in world.waits[B]
    world.alter(A, RENAME)
    assert not world.open
    assert columns(world.table.after).keys() == {"id", "w"}


@pytest.mark.parametrize(
    ("first", "others", "change"),
    [
        ("MODIFY v VARCHAR(90) NOT NULL", "MODIFY v VARCHAR(90) NOT NULL", "MODIFY v VARCHAR(20) NOT NULL"),
        ("MODIFY v VARCHAR(90) NOT NULL", "MODIFY v VARCHAR(50) NOT NULL", "MODIFY v VARCHAR(20) NOT NULL"),
        ("MODIFY v VARCHAR(90) NOT NULL", "DROP COLUMN v", "MODIFY v VARCHAR(20) NOT NULL"),
        ("MODIFY v VARCHAR(90) NOT NULL", "", "MODIFY v VARCHAR(20) NOT NULL, ADD UNIQUE KEY (v)"),
        ("MODIFY v VARCHAR(90) NOT NULL", "", "MODIFY v VARCHAR(20) NOT NULL, DROP COLUMN id"),
        ("MODIFY v VARCHAR(90) NOT NULL", "", "MODIFY v VARCHAR(20) NOT NULL DEFAULT '?'"),
        ("ALTER v SET DEFAULT '😀'", "ALTER v SET DEFAULT '🎉'", "ALTER v SET DEFAULT '🐟'"),
    ],
)
def test_a_statement_that_another_shard_needs_still_waits_for_it(first: str, others: str, change: str) -> None:
    world = World(A, B)
    for shard, one in ((A, first), (B, others)):
        if one:
            world.alter(shard, one)
    world.alter(A, change)
    assert A in world.open


def test_a_widening_that_is_taken_back_while_a_source_is_not_known() -> None:
    world = World(A, B)
    world.alter(A, "MODIFY v VARCHAR(90) NOT NULL")
    world.table = replace(world.table, silent=frozenset({"s2"}))
    world.alter(A, "MODIFY v VARCHAR(20) NOT NULL")
    assert "s2: not started" in world.waits[A]


def test_a_table_that_is_made_like_a_shard_that_waits() -> None:
    world = World(A, B)
    world.alter(A, RENAME)
    table = world.table.like(C, A)
    assert table.shards[C] == table.shards[A]
    assert wait_of(world, A).kind is WaitKind.SHARDS
    assert table.evaluate().waits.keys() == {A, C}
    asked = table.ask(
        B, StructureRequest("b", behind(definition(), RENAME), "it renames", (f"ALTER TABLE `all`.`t` {RENAME}",))
    )
    assert asked.evaluate().barrier == (A, B, C)


def test_a_table_that_is_made_like_a_shard_while_its_statement_runs() -> None:
    """The target has the statement for the new table too, whenever the source of the new table hears of it."""
    world = World(A, C)
    after = behind(definition(), RENAME)
    for shard in (A, C):
        world.table = world.table.ask(shard, StructureRequest("1", after, "it renames", ("x",)))
    begun = world.table.begun("s2", world.table.at_barrier(world.table.evaluate(), after))
    made = begun.like(B, A)
    assert made.runner is not None
    before, behind_it = made.done(made.runner.change), begun.done(made.runner.change).like(B, A)
    assert before.shards[B] == behind_it.shards[B]
    assert (before.shards[B].done, before.shards[B].request) == ("1", None)
    assert before.evaluate().waits == {}


def test_a_table_that_is_made_like_a_shard_which_adds_a_column_again() -> None:
    """It has no rows of the time before, so it need not wait for the others."""
    world = World(A, B)
    world.alter(A, "DROP COLUMN v")
    world.alter(A, "ADD COLUMN v VARCHAR(20) NOT NULL")
    table = world.table.like(C, A)
    assert table.evaluate().waits.keys() == {A}
    assert [change.shards for change in table.evaluate().changes] == [(C,)]


@pytest.mark.parametrize(
    ("change", "ran"),
    [
        ("ADD COLUMN c INT NOT NULL", "ADD COLUMN `c` int(11) NOT NULL DEFAULT 0"),
        ("MODIFY v INT NOT NULL", "ALTER COLUMN `v` SET DEFAULT ''"),
        ("MODIFY v VARCHAR(90) NULL", "MODIFY COLUMN `v` varchar(90)"),
        (MADE, "ADD COLUMN `made` datetime DEFAULT NULL"),
        (RENAME, "ADD COLUMN `w` varchar(20)"),
    ],
)
def test_a_new_table_that_does_not_fit_is_let_in(change: str, ran: str) -> None:
    """Its source writes none of its rows before the target takes them."""
    world = World(A, B)
    world.table = world.table.created(C, behind(definition(), change), fits=False)
    assert world.table.lacks("s2")
    world.settle()
    assert not world.table.lacks("s2")
    assert ran in world.ran[0]
    world.check()


def test_another_shard_can_not_meet_it() -> None:
    world = World(A, B)
    world.alter(A, RENAME)
    world.alter(B, "ADD COLUMN w VARCHAR(20) NOT NULL DEFAULT '', DROP COLUMN v")
    assert wait_of(world, A) == Wait(
        WaitKind.CANNOT, "s.t_1 of s1 can't meet it: it has no column v and has column w already"
    )
    skip(world, A)
    assert not world.open
    assert columns(world.table.after).keys() == {"id", "v", "w"}, "a statement that is left out drops nothing"


def test_statements_that_differ_in_the_place_of_a_column_are_one() -> None:
    world = World(A, B, C, base=definition_text("`a` int(11) DEFAULT NULL", "`b` int(11) DEFAULT NULL"))
    for shard, place in ((A, "AFTER b"), (B, "FIRST"), (C, "")):
        world.alter(shard, f"CHANGE a c INT {place}")
    assert not world.open
    assert columns(world.table.after).keys() == {"id", "v", "b", "c"}
    world.alter(A, "CHANGE c c INT FIRST")
    assert not world.open


def definition_text(*more: str) -> str:
    lines = ["`id` bigint(20) NOT NULL", "`v` varchar(20) NOT NULL", *more, "PRIMARY KEY (`id`)"]
    return "CREATE TABLE `t` (\n  " + ",\n  ".join(lines) + "\n) ENGINE=InnoDB"


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ("CHANGE a c INT AFTER b", "CHANGE COLUMN a c INTEGER FIRST", True),
        ("ADD COLUMN a INT FIRST, ADD b INT AFTER `x y`", "ADD a INT, ADD b INT", True),
        ("ADD COLUMN a DECIMAL(9,2) FIRST", "ADD a DECIMAL(9,2) AFTER c", True),
        ("ADD COLUMN a INT FIRST", "ADD a BIGINT FIRST", False),
        ("ADD COLUMN first INT", "ADD COLUMN first INT FIRST", True),
        ("DROP COLUMN first", "DROP COLUMN second", False),
        ("DROP a, DROP first", "DROP a", False),
        ("CHANGE a after INT", "CHANGE a c INT", False),
        ("CHANGE a after INT", "CHANGE a after BIGINT", False),
        ("CHANGE IF EXISTS a after INT", "CHANGE IF EXISTS a after BIGINT", False),
        ("ADD b INT, CHANGE a after INT AFTER b", "ADD b INT, CHANGE a after INT FIRST", True),
        ("ADD COLUMN IF NOT EXISTS after INT", "ADD COLUMN IF NOT EXISTS after BIGINT", False),
        ("ADD COLUMN IF NOT EXISTS a INT AFTER after", "ADD IF NOT EXISTS a INT", True),
        ("MODIFY after INT AFTER first", "MODIFY after INT FIRST", True),
    ],
)
def test_statements_without_the_places_of_columns(one: str, other: str, *, alike: bool) -> None:
    texts = [[f"ALTER TABLE t {change}"] for change in (one, other)]
    assert same_but_for_places(*texts) is alike


def test_what_is_not_forced() -> None:
    world = World(A, B)
    with pytest.raises(ShardError, match="SHARD-050"):
        world.table.force(A, skip=True)
    world.alter(A, RENAME)
    with pytest.raises(ShardError, match="SHARD-050"):
        world.table.force(A)
    both = world.table.ask(B, StructureRequest("b", behind(definition(), RENAME), "it renames", ("x",)))
    decision = both.force(A, skip=True).evaluate()
    assert decision.barrier == ()
    asked = world.table.ask(
        B, StructureRequest("b", behind(definition(), RENAME), "it renames", (f"ALTER TABLE `all`.`t` {RENAME}",))
    )
    begun = asked.begun("s1", asked.at_barrier(asked.evaluate(), behind(definition(), RENAME)))
    with pytest.raises(ShardError, match="SHARD-050"):
        begun.force(A, skip=True)


def test_waits_that_end_by_themselves_are_no_conflicts() -> None:
    kinds = {kind for kind in WaitKind if Wait(kind, "").is_conflict}
    assert kinds == set(WaitKind) - {WaitKind.BUSY, WaitKind.UNKNOWN}


def test_what_all_shards_have_afterwards_where_the_effect_is_not_computed() -> None:
    """A column that the statement did not touch stays as wide as it is in the target."""
    table = MergedTable(NAME).register(A, definition()).register(C, definition())
    wide = behind(definition(), "MODIFY v VARCHAR(90) NOT NULL")
    table = table.ask(A, StructureRequest("w", wide))
    table = table.done(table.evaluate().changes[0])
    for shard in (A, C):
        after = behind(table.shards[shard].structure, "ADD COLUMN made DATETIME DEFAULT NOW(), ADD UNIQUE KEY u (v)")
        table = table.ask(shard, StructureRequest(shard.source, after, "not computed", ("x",)))
    change = table.at_barrier(table.evaluate(), None)
    found = change.after.column("v")
    assert found is not None
    assert found.type.arguments == (90,)
    assert [column.name for column in change.after.columns] == ["id", "v", "made"]
    assert change.after.key("u") is not None
    assert change.old_rows is OldRows.OF_ONE_RUN
    assert table.done(change).shards[A].old_rows is OldRows.OF_ONE_RUN


def test_rows_of_the_only_shard_have_what_its_own_statement_gives() -> None:
    world = World(A)
    world.alter(A, MADE)
    assert world.table.shards[A].old_rows is OldRows.OF_ANOTHER_SESSION


@pytest.mark.parametrize(
    ("changes", "commands"),
    [
        ({A: RENAME}, ["skip"]),
        ({A: RENAME, B: "RENAME COLUMN v TO x", C: RENAME}, ["skip", "skip", "skip"]),
        ({A: "ADD COLUMN c INT DEFAULT 5", B: "ADD COLUMN c INT DEFAULT 7"}, ["exec"]),
        ({A: "ADD COLUMN c VARCHAR(9)", B: "ADD COLUMN c INT"}, ["skip"]),
    ],
)
def test_each_wait_tells_the_command_that_ends_it(changes: dict[ShardId, str], commands: list[str]) -> None:
    world = World(A, B, C)
    for shard, change in changes.items():
        world.alter(shard, change)
    (lock,) = merged_locks("task", world.table)
    typed = [shlex.split(text) for text in re.findall(r"`(unshard ctl .*?)`(?= )", lock["help"])]
    found = [words for words in typed if "unlock" in words]
    assert [words[words.index("--action") + 1] for words in found] == commands
    assert all("task-`all`.`t`" in words for words in found)


def test_dm_shows_whose_statement_conflicts() -> None:
    """`blockDDLOwner` and `owner` are DM's name of the shard, the message has DM's words."""
    world = World(A, C)
    world.alter(C, RENAME)
    (lock,) = merged_locks("task", world.table)
    assert lock["owner"] == "s2-`s`.`t`"
    assert lock["DDLs"] == [f"ALTER TABLE `all`.`t` {RENAME}"]
    assert (lock["synced"], lock["unsynced"]) == (["s2-`s`.`t`"], ["s1-`s`.`t_0`"])
    (message,) = lock["mismatch"]
    assert message.startswith(f"there will be conflicts if DDLs ALTER TABLE `all`.`t` {RENAME} of s.t of s2")
    item = DdlItem(place(100), place(200), (f"ALTER TABLE `all`.`t` {RENAME}",), {"before": None})
    group = ShardingGroup("s2", NAME).hold(C.table, item)
    (shown,) = waiting_shards("task", ShardingGroupKeeper("s2").with_group(group), {NAME: world.table})
    assert (shown.owner, shown.ddls) == ("s2-`s`.`t`", item.ddls)
    assert shown.mismatch == (message,)
    busy = world.table.begun("s1", world.table.at_barrier(world.table.evaluate(), definition()))
    (shown,) = waiting_shards("task", ShardingGroupKeeper("s2").with_group(group), {NAME: busy})
    assert (shown.owner, shown.mismatch) == ("s1", ())


def place(offset: int) -> Location:
    return Location(Position("bin.000001", offset), "")
