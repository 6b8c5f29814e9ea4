"""Lock and LockKeeper: who is waited for, who runs the DDL, who skips it, what a human may do."""

from __future__ import annotations

import json

import pytest

from unshard.errors import ShardError
from unshard.model.table import TableName
from unshard.shard.lock_keeper import LockKeeper, Outcome

TARGET = TableName("db", "t")
BEGUN = {"steps": ["ADD a"]}
T1 = TableName("up", "t_1")
A, B, C = ((f"ALTER TABLE `db`.`t` ADD {column} INT",) for column in "abc")


def keeper(*owners: str, silent: str = "") -> LockKeeper:
    found = LockKeeper("task", TARGET, frozenset((*owners, *silent.split())))
    for source in owners:
        found = found.declare(source, [T1])
    return found


def test_all_sources_have_to_meet_it_and_the_first_one_runs_it() -> None:
    locks = keeper("s1", "s2").join("s1", A, "now")
    assert locks.outcome("s1") is Outcome.WAIT
    assert locks.open is not None
    assert locks.open.remain(locks.needed(locks.open)) == ("s2",)
    locks = locks.join("s2", A, "later")
    assert (locks.outcome("s1"), locks.outcome("s2")) == (Outcome.EXECUTE, Outcome.WAIT)
    locks = locks.done("s1")
    assert (locks.outcome("s1"), locks.outcome("s2")) == (None, Outcome.SKIP)
    assert locks.done("s2").locks == ()


def test_a_source_alone_goes_on_at_once() -> None:
    assert keeper("s1").join("s1", A, "now").outcome("s1") is Outcome.EXECUTE


def test_a_source_that_owns_no_table_is_not_waited_for_and_one_that_has_not_said_is() -> None:
    locks = keeper("s1", silent="s2").join("s1", A, "now")
    assert locks.outcome("s1") is Outcome.WAIT
    assert locks.heard("s2").outcome("s1") is Outcome.EXECUTE
    assert locks.declare("s2", []).outcome("s1") is Outcome.EXECUTE
    assert locks.declare("s2", [T1]).outcome("s1") is Outcome.WAIT


def test_reporting_twice_changes_nothing() -> None:
    locks = keeper("s1", "s2").join("s1", A, "now")
    assert locks.join("s1", A, "later") == locks


def test_a_source_may_be_a_lock_ahead() -> None:
    locks = keeper("s1", "s2").join("s1", A, "").join("s2", A, "").done("s1").join("s1", B, "")
    assert [lock.number for lock in locks.locks] == [1, 2]
    assert (locks.outcome("s1"), locks.outcome("s2")) == (Outcome.WAIT, Outcome.SKIP)
    locks = locks.done("s2").join("s2", B, "")
    assert [lock.number for lock in locks.locks] == [2]
    assert locks.outcome("s1") is Outcome.EXECUTE


def test_another_ddl_waits_and_both_are_shown() -> None:
    locks = keeper("s1", "s2").join("s1", A, "").join("s2", B, "")
    assert (locks.outcome("s1"), locks.outcome("s2")) == (Outcome.WAIT, Outcome.MISMATCH)
    assert locks.open is not None
    shown = locks.open.mismatch("s2")
    assert f"s2: {B[0]}" in shown
    assert f"s1: {A[0]}" in shown


def test_the_first_table_of_a_source_joins_behind_what_is_executed() -> None:
    locks = keeper("s1", "s2").join("s1", A, "").join("s2", A, "")
    locks = LockKeeper.from_dict("task", TARGET, (), locks.to_dict())
    assert locks.busy
    locks = locks.done("s1").declare("s3", [T1])
    assert locks.members["s3"].passed == 1
    locks = locks.done("s2").join("s1", B, "").join("s2", B, "")
    assert locks.outcome("s1") is Outcome.WAIT
    assert locks.join("s3", B, "").outcome("s1") is Outcome.EXECUTE


def test_leaving_completes_a_lock_and_hands_it_on() -> None:
    locks = keeper("s1", "s2", "s3").join("s1", A, "").join("s2", A, "")
    assert locks.declare("s3", []).outcome("s1") is Outcome.EXECUTE
    left = locks.declare("s1", [])
    assert left.open is not None
    assert left.open.owner == "s2"
    assert left.join("s3", A, "").outcome("s2") is Outcome.EXECUTE
    assert left.declare("s2", []).locks == ()


def test_an_owner_that_left_before_it_ran_the_ddl_leaves_it_to_the_next() -> None:
    locks = keeper("s1", "s2").join("s1", A, "").join("s2", A, "").declare("s1", [])
    assert locks.outcome("s2") is Outcome.EXECUTE


def test_a_human_unlocks_and_the_late_source_skips() -> None:
    locks = keeper("s1", "s2", "s3").join("s1", A, "").join("s2", A, "").unlock("s2", "ann")
    assert (locks.outcome("s1"), locks.outcome("s2")) == (Outcome.WAIT, Outcome.EXECUTE)
    locks = locks.done("s2").done("s1").join("s1", B, "")
    assert len(locks.locks) == 2
    locks = locks.join("s3", A, "")
    assert locks.outcome("s3") is Outcome.SKIP
    locks = locks.done("s3").join("s3", B, "").join("s2", B, "")
    assert locks.outcome("s1") is Outcome.EXECUTE


def test_a_source_that_has_not_said_its_tables_skips_what_a_human_unlocked() -> None:
    locks = keeper("s1", silent="s2").join("s1", A, "").unlock("", "ann").done("s1")
    locks = locks.declare("s2", [T1]).join("s2", A, "")
    assert locks.outcome("s2") is Outcome.SKIP


def test_a_human_lets_another_ddl_pass() -> None:
    locks = keeper("s1", "s2").join("s1", A, "").join("s2", B, "").unlock("s2", "ann")
    assert (locks.outcome("s1"), locks.outcome("s2")) == (Outcome.WAIT, Outcome.EXECUTE)
    assert locks.done("s2").outcome("s1") is Outcome.SKIP
    late = keeper("s1", "s2").join("s1", A, "").unlock("", "ann").done("s1").join("s2", C, "")
    assert late.outcome("s2") is Outcome.MISMATCH
    assert late.unlock("", "ann").outcome("s2") is Outcome.SKIP


def test_a_lock_given_up_is_run_by_nobody() -> None:
    locks = keeper("s1", "s2", "s3").join("s1", A, "").join("s2", A, "").remove("ann")
    assert [locks.outcome(source) for source in ("s1", "s2")] == [Outcome.SKIP, Outcome.SKIP]
    assert locks.done("s1").done("s2").join("s3", A, "").outcome("s3") is Outcome.SKIP


def test_what_a_human_may_not() -> None:
    locks = keeper("s1", "s2")
    with pytest.raises(ShardError, match="SHARD-003"):
        locks.unlock("", "ann")
    with pytest.raises(ShardError, match="SHARD-003"):
        locks.remove("ann")
    locks = locks.join("s1", A, "")
    with pytest.raises(ShardError, match="SHARD-004"):
        locks.unlock("s2", "ann")
    with pytest.raises(ShardError, match="SHARD-005"):
        locks.join("s2", A, "").unlock("s2", "ann")


def test_json() -> None:
    locks = keeper("s1", "s2").join("s1", A, "now").join("s2", B, "later").unlock("s2", "ann")
    form = json.loads(json.dumps(locks.to_dict()))
    assert LockKeeper.from_dict("task", TARGET, (), form) == locks
    assert locks.id == "task-`db`.`t`"


def test_what_a_copy_has_counts_from_what_its_source_has_passed() -> None:
    locks = keeper("s1", "s2").copy_has("s1", 2).copy_has("s2", 1)
    assert (locks.copied, locks.ahead, locks.is_copied("s2")) == (2, True, True)
    for ddls in (A, B):
        locks = locks.join("s1", ddls, "").join("s2", ddls, "").done("s1").done("s2")
    assert (locks.ahead, locks.is_copied("s1")) == (False, False)
    assert LockKeeper.from_dict("task", TARGET, [], json.loads(json.dumps(locks.to_dict()))) == locks


def test_a_table_that_is_left_out_is_not_waited_for_until_it_is_declared() -> None:
    waiting = keeper("s1", "s2").join("s1", A, "")
    locks = waiting.leave("s2", T1)
    assert locks.outcome("s1") is Outcome.EXECUTE
    assert LockKeeper.from_dict("task", TARGET, [], json.loads(json.dumps(locks.to_dict()))) == locks
    assert locks.declare("s2", []) == locks
    assert locks.declare("s2", [T1]).left == frozenset()


def test_a_source_that_was_taken_out_goes_on_where_it_was() -> None:
    locks = keeper("s1", "s2", "s3").join("s1", A, "").take_out("s1").take_out("s1")
    for ddls in (A, B):
        locks = locks.join("s2", ddls, "").join("s3", ddls, "").done("s2").done("s3")
    locks = LockKeeper.from_dict("task", TARGET, ["s1"], json.loads(json.dumps(locks.to_dict())))
    assert locks.take_out("s1").away == {"s1": 0}, "put back, and taken out before it has said anything"
    back = locks.declare("s1", [T1])
    assert back.join("s1", B, "").outcome("s1") is Outcome.MISMATCH
    for ddls in (A, B):
        back = back.join("s1", ddls, "")
        assert back.outcome("s1") is Outcome.SKIP
        back = back.done("s1")
    assert (back.locks, back.away, back.gone) == ((), {}, 2)


def test_a_source_that_comes_back_without_a_table_keeps_no_locks() -> None:
    locks = keeper("s1", "s2").take_out("s1").join("s2", A, "").done("s2")
    assert len(locks.locks) == 1
    assert locks.declare("s1", []).locks == ()


def test_an_owner_that_is_taken_out_in_the_middle_of_its_ddl_skips_it_when_it_comes_back() -> None:
    locks = keeper("s1", "s2").join("s1", A, "").join("s2", A, "").take_out("s1", BEGUN)
    assert locks.outcome("s2") is Outcome.EXECUTE
    assert locks.open is not None
    assert locks.open.begun == BEGUN
    back = locks.done("s2").declare("s1", [T1])
    assert back.outcome("s1") is None
    assert back.join("s1", A, "").outcome("s1") is Outcome.SKIP


def test_a_lock_of_which_nothing_is_handed_on_is_written_as_before() -> None:
    """Workers are upgraded one by one: an older one refuses a row with a key that it does not know."""
    (form,) = keeper("s1", "s2").join("s1", A, "").to_dict()["locks"]
    assert sorted(form) == sorted(
        ["number", "ddls", "owner", "since", "reports", "resolved", "executed", "excused", "decision"]
    )


def test_what_nobody_else_has_met_is_kept_for_whoever_comes_next() -> None:
    locks = keeper("s1", "s2").join("s1", A, "").unlock("", "ann").take_out("s1", BEGUN)
    locks = LockKeeper.from_dict("task", TARGET, [], json.loads(json.dumps(locks.to_dict())))
    assert locks.open is not None
    assert not locks.open.owner
    assert not locks.busy
    met = locks.join("s2", A, "")
    assert met.outcome("s2") is Outcome.EXECUTE
    assert met.open is not None
    assert met.open.begun == BEGUN
    back = locks.declare("s2", []).declare("s1", [T1]).join("s1", A, "")
    assert back.outcome("s1") is Outcome.EXECUTE
    assert back.done("s1").locks == ()


def test_a_human_chooses_another_ddl_than_the_one_that_was_begun() -> None:
    locks = keeper("s1", "s2").join("s1", A, "").join("s2", B, "").unlock("s1", "ann").take_out("s1", BEGUN)
    assert locks.open is not None
    assert (locks.open.owner, locks.open.ddls) == ("s2", A)
    assert locks.outcome("s2") is Outcome.EXECUTE, "the human has let it pass: it goes on with what was begun"
    locks = locks.unlock("s2", "ann")
    assert locks.open is not None
    assert (locks.open.ddls, locks.open.begun) == (B, None)


def test_only_what_the_source_may_run_is_kept() -> None:
    locks = keeper("s1", "s2").join("s1", A, "").join("s2", A, "")
    assert all(lock.begun is None for lock in locks.take_out("s2", BEGUN).locks)
    assert all(lock.begun is None for lock in locks.remove("ann").take_out("s1", BEGUN).locks)
