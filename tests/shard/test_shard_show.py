"""What is shown of sharding DDL that waits."""

from __future__ import annotations

from datetime import UTC, datetime

from unshard.model.position import Location, Position
from unshard.model.table import TableName
from unshard.shard.group import ShardingGroup, TableState
from unshard.shard.group_keeper import ShardingGroupKeeper
from unshard.shard.lock_keeper import LockKeeper
from unshard.shard.sequence import DdlItem
from unshard.shard.show import overdue, unresolved_groups, waiting_locks

TARGET, ONE, TWO = TableName("db", "t"), TableName("up", "t_1"), TableName("up", "t_2")
A, B = ("ALTER TABLE `db`.`t` ADD a INT",), ("ALTER TABLE `db`.`t` ADD b INT",)
UNLOCK = "unshard ctl shard-ddl-lock unlock 'task-`db`.`t`'"


def at(offset: int) -> Location:
    return Location(Position("bin.000001", offset))


def group(source: str, *met: TableName) -> ShardingGroup:
    found = ShardingGroup(source, TARGET, {ONE: TableState(), TWO: TableState()})
    for table in met:
        found = found.meet(table, DdlItem(at(100), at(105), A, time="2026-01-01T00:00:00+00:00"))
    return found


def keeper(*owners: str, silent: str = "") -> LockKeeper:
    found = LockKeeper("task", TARGET, frozenset((*owners, *silent.split())))
    for source in owners:
        found = found.declare(source, [ONE, TWO])
    return found


def test_a_lock_tells_who_is_missing_with_which_tables_and_what_helps() -> None:
    locks = keeper("s1", "s2", silent="s3").join("s1", A, "2026-01-01T00:00:00+00:00")
    (form,) = waiting_locks(locks, {"s1": group("s1", ONE, TWO), "s2": group("s2", ONE)})
    assert {key: form[key] for key in ("ID", "task", "mode", "owner", "DDLs", "synced", "unsynced")} == {
        "ID": "task-`db`.`t`",
        "task": "task",
        "mode": "pessimistic",
        "owner": "s1",
        "DDLs": list(A),
        "synced": ["s1"],
        "unsynced": ["s2", "s3"],
    }
    assert form["since"] == "2026-01-01T00:00:00+00:00"
    assert "s2 has not met it in up.t_2; s3 has not said yet" in form["waitsFor"]
    assert UNLOCK in form["help"]


def test_a_mismatch_is_shown_side_by_side_with_the_command_that_chooses() -> None:
    locks = keeper("s1", "s2").join("s1", A, "").join("s2", B, "")
    (form,) = waiting_locks(locks, {})
    assert form["waitsFor"] == "s2 has met another DDL"
    assert form["mismatch"] == [f"1 <> s2: {B[0]}", f"s1: {A[0]}"]
    assert f"{UNLOCK} --owner SOURCE" in form["help"]


def test_an_owner_that_is_gone_and_a_source_that_is_late_behind_a_human() -> None:
    locks = keeper("s1", "s2").join("s1", A, "").unlock("", "ann")
    (form,) = waiting_locks(locks, {})
    assert "s1 runs it on the target" in form["waitsFor"]
    assert "unlocked by ann" in form["waitsFor"]
    assert "--force-remove" in form["help"]
    (late,) = waiting_locks(locks.done("s1"), {})
    assert late["unsynced"] == ["s2"]
    assert late["help"].startswith("nothing")
    (other,) = waiting_locks(locks.done("s1").join("s2", B, ""), {})
    assert f"`{UNLOCK}` lets s2 pass" in other["help"]
    assert waiting_locks(locks.done("s1").join("s2", A, "").done("s2"), {}) == []


def test_a_source_that_was_left_out_of_the_file_is_named_with_what_takes_it_out() -> None:
    met = keeper("s1", "s2").join("s1", A, "")
    (form,) = waiting_locks(met, {}, listed=("s1",))
    assert form["waitsFor"].endswith("; not in the task's file: s2")
    assert "`unshard ctl update-task` with the file without it" in form["help"]
    keepers = ShardingGroupKeeper("s1").with_group(group("s1", ONE, TWO).report())
    (shown,) = unresolved_groups(keepers, {TARGET.quoted: met}, ("s1",))
    assert (shown.waits_for, shown.help) == (form["waitsFor"].replace("up.t_1", "all of up.t_1"), form["help"])
    owned = keeper("s1", "s2").join("s2", A, "").join("s1", A, "")
    (form,) = waiting_locks(owned, {}, listed=("s1",))
    assert form["waitsFor"] == "s2 runs it on the target; not in the task's file: s2"
    assert "pause-task" in form["help"]
    (form,) = waiting_locks(met, {}, listed=("s1", "s2"))
    assert "file" not in form["waitsFor"]
    assert UNLOCK in form["help"]


def test_a_lock_that_only_waits_to_be_passed_is_not_shown() -> None:
    assert waiting_locks(keeper("s1", "s2").join("s1", A, "").join("s2", A, "").done("s1"), {}) == []


def test_a_group_that_waits_for_tables_of_its_own() -> None:
    (shown,) = unresolved_groups(ShardingGroupKeeper("s1").with_group(group("s1", ONE)), {})
    assert shown.model_dump(by_alias=True) == {
        "target": "`db`.`t`",
        "DDLs": A,
        "firstLocation": "bin.000001:100",
        "synced": ("`up`.`t_1`",),
        "unsynced": ("`up`.`t_2`",),
        "since": "2026-01-01T00:00:00+00:00",
        "waitsFor": "s1 has not met it in up.t_2",
        "mismatch": (),
        "help": "run the DDL on the tables that miss it, or drop those that are not needed any more",
        "overdue": False,
        "owner": "",
        "mode": "pessimistic",
    }


def test_a_group_that_waits_for_other_sources_or_reads_again() -> None:
    ready = group("s1", ONE, TWO)
    keepers = ShardingGroupKeeper("s1").with_group(ready)
    assert unresolved_groups(keepers, {})[0].waits_for == "s1 has met it in all tables, and will report it"
    locks = keeper("s1", "s2").join("s1", A, "")
    (shown,) = unresolved_groups(keepers.with_group(ready.report()), {TARGET.quoted: locks})
    assert (shown.waits_for, shown.owner) == ("s2 has not met it in all of up.t_1, up.t_2", "s1")
    assert UNLOCK in shown.help
    (shown,) = unresolved_groups(keepers.with_group(ready.resolve(at(300))), {})
    assert (shown.waits_for, shown.ddls, shown.unsynced) == ("what was held is read again", (), ())


def test_a_group_that_others_are_ahead_of() -> None:
    """It tells what a human has decided, and another DDL than theirs before all tables have it."""
    late = ShardingGroupKeeper("s2").with_group(group("s2", ONE))
    locks = keeper("s1", "s2").join("s1", A, "")
    (shown,) = unresolved_groups(late, {TARGET.quoted: locks})
    assert (shown.waits_for, shown.owner, shown.mismatch) == ("s2 has not met it in up.t_2", "s1", ())
    (shown,) = unresolved_groups(late, {TARGET.quoted: locks.unlock("", "ann").done("s1")})
    assert shown.waits_for == "unlocked by ann, s1 runs its own; s2 has not met it in up.t_2"
    (shown,) = unresolved_groups(late, {TARGET.quoted: keeper("s1", "s2").join("s1", B, "")})
    assert shown.mismatch == (f"1 <> s2: {A[0]}", f"s1: {B[0]}")
    assert f"{UNLOCK} --owner SOURCE" in shown.help


def test_a_table_of_which_the_ddl_was_left_out_is_told_with_the_way_to_give_it() -> None:
    """It never meets it by itself, so "run the DDL there" alone would be no help."""
    left = DdlItem(at(200), at(205), (), {"before": None})
    late = group("s1", ONE).pass_by(TWO, left)
    (shown,) = unresolved_groups(ShardingGroupKeeper("s1").with_group(late), {})
    told = "s1 has not met it in up.t_2; a statement was left out of up.t_2 (bin.000001:200) since"
    assert shown.waits_for.startswith(told)
    assert "run `ALTER TABLE … ENGINE=InnoDB` on it" in shown.help
    assert '`unshard ctl binlog replace TASK -s s1 "ALTER TABLE …"`' in shown.help
    locks = keeper("s1", "s2").join("s2", A, "")
    (lock,) = waiting_locks(locks, {"s1": late}, "task.yaml")
    assert lock["waitsFor"].startswith(told)
    assert '`unshard ctl binlog replace task.yaml -s s1 "ALTER TABLE …"`' in lock["help"]
    (lock,) = waiting_locks(locks, {"s1": late.pass_by(ONE, left).meet(TWO, DdlItem(at(300), at(305), A))})
    assert "left out" not in lock["waitsFor"] + lock["help"], "it has met it after all"


def test_a_dropped_table_is_not_waited_for() -> None:
    dropped = group("s1", ONE).drop(TWO, at(200))
    (shown,) = unresolved_groups(ShardingGroupKeeper("s1").with_group(dropped), {})
    assert (shown.unsynced, shown.waits_for) == ((), "s1 has met it in all tables, and will report it")


def test_a_ddl_that_waits_for_longer_than_it_may_is_overdue() -> None:
    (form,) = unresolved_groups(ShardingGroupKeeper("s1").with_group(group("s1", ONE)), {})
    met = datetime(2026, 1, 1, tzinfo=UTC)
    assert not overdue(form, 60, met.replace(minute=1)).overdue
    assert overdue(form, 60, met.replace(minute=2)).overdue
    assert not overdue(form.model_copy(update={"since": ""}), 60, met.replace(year=2027)).overdue
