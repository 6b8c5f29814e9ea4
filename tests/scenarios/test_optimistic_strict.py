"""`strict-optimistic-shard-mode`: a task stops at a statement that conflicts with other shards, and at no other."""

from __future__ import annotations

import threading
from functools import partial
from typing import Any

import pytest

from support.operated_tasks import ctl
from support.optimistic_runs import columns, has_columns, in_step, merged_rows, optimistic, stopped
from support.shard_rig import ShardRig
from support.shard_runs import Shards
from support.waiting import wait_until
from unshard.sync.sharding.table_owners import Ownership
from unshard.sync.statement import Statements

pytestmark = [pytest.mark.server, pytest.mark.spark]

STRICT = {"strict-optimistic-shard-mode": True}
RENAME = "CHANGE v w VARCHAR(20) NOT NULL"


def test_it_stops_in_front_of_what_would_wait(rig: ShardRig) -> None:
    shards = optimistic(rig, keys=STRICT)
    with rig.run(shards) as run:
        run.catch_up()
        shards.alter("s1", 0, "ADD COLUMN c INT")
        has_columns(run, shards, "id", "v", "c")
    shards.alter("s1", 0, RENAME)
    error = stopped(rig, shards)
    assert error.code == "SHARD-044"
    assert "not met by" in str(error)
    assert "because schema conflict detected" in str(error)
    assert shards.items("s1", 0) == 0


def test_a_statement_that_is_left_out_does_not_bar_later_ones(rig: ShardRig) -> None:
    """What the error says to type lets this source go on with its rows, and the other one with its statements."""
    shards = optimistic(rig, keys=STRICT)
    with rig.run(shards) as run:
        run.catch_up()
    changes = ("ADD COLUMN made DATETIME NOT NULL DEFAULT '2020-01-01' ON UPDATE CURRENT_TIMESTAMP", "MODIFY v INT")
    shards.update("s1", 1, 0, "v = '0'")
    for table, change in enumerate(changes):
        shards.alter("s1", table, change)
        assert stopped(rig, shards).code == "SHARD-044"
        ctl("binlog", "skip", str(shards.files().task_path), "-s", "s1")
    shards.insert("s1", 0, 1, made="'2021-02-03'")
    with rig.run(shards) as run:
        shards.wait_in_step(run)
        assert columns(shards) == ["id", "v", "made"]
        for shard in shards.shards[2:]:
            shards.alter(*shard, "ADD COLUMN c INT")
            shards.insert(*shard, 1, c="3")
        shards.wait_in_step(run)
        rows = merged_rows(shards)
        assert str(rows[shards.id("s1", 0, 1)]["made"]) == "2021-02-03 00:00:00"
        assert {rows[shards.id(*shard, 1)]["c"] for shard in shards.shards[2:]} == {3}


@pytest.mark.scenarios
def test_it_does_not_stop_while_another_source_changes_the_target(
    rig: ShardRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second source stands still in the middle of its statement, and the first one meets another."""
    shards = optimistic(rig, keys=STRICT)
    begun, goes_on, run_own = threading.Event(), threading.Event(), Statements.run

    def run_late(statements: Statements, *args: Any, **named: Any) -> None:
        if statements.source == "s2" and not begun.is_set():
            begun.set()
            assert goes_on.wait(60)
        run_own(statements, *args, **named)

    with rig.run(shards) as run:
        run.catch_up()
        monkeypatch.setattr(Statements, "run", run_late)
        shards.alter("s2", 0, "ADD COLUMN c INT")
        wait_until(begun.is_set, "the second source is about to run its statement")
        shards.alter("s1", 0, "ADD COLUMN d INT")
        shards.insert("s1", 0, 1, d="3")
        wait_until(lambda: shards.items("s1", 0) == 1, "the first source has met its statement")
        goes_on.set()
        in_step(run, shards)
        assert sorted(columns(shards)) == ["c", "d", "id", "v"]


def a_late_source(
    rig: ShardRig, shards: Shards, monkeypatch: pytest.MonkeyPatch
) -> tuple[threading.Event, threading.Event]:
    """The second source stands still before it says which tables it owns. What is given: that, and that it goes on."""
    come, goes_on, announce = threading.Event(), threading.Event(), Ownership.announce

    def announce_late(ownership: Ownership, *args: Any) -> None:
        if ownership.store.source == "s2" and not come.is_set():
            come.set()
            assert goes_on.wait(60)
        announce(ownership, *args)

    monkeypatch.setattr(Ownership, "announce", announce_late)
    return come, goes_on


@pytest.mark.scenarios
def test_it_does_not_stop_while_a_source_starts(rig: ShardRig, monkeypatch: pytest.MonkeyPatch) -> None:
    """The source turns out to have no shard of the target, so all shards have met the statement."""
    shards = optimistic(rig, tables=1, keys=STRICT)
    shards.run("s2", f"DROP TABLE {shards.at(0)}")
    shards.shards.remove(("s2", 0))
    come, goes_on = a_late_source(rig, shards, monkeypatch)
    with rig.run(shards) as run:
        wait_until(come.is_set, "the second source starts")
        wait_until(partial(shards.target_has, shards.merged), "the first source has copied its shard")
        shards.alter("s1", 0, RENAME)
        wait_until(lambda: shards.items("s1", 0) == 1, "the first source has met it")
        goes_on.set()
        has_columns(run, shards, "id", "w")
        shards.wait_in_step(run)


@pytest.mark.scenarios
def test_it_stops_when_a_source_that_starts_has_a_shard(rig: ShardRig, monkeypatch: pytest.MonkeyPatch) -> None:
    """The stop is at the statement, though that is passed. What the error says to type lets the task go on."""
    shards = optimistic(rig, tables=1, keys=STRICT)
    come, goes_on = a_late_source(rig, shards, monkeypatch)
    with rig.run(shards).failing() as run:
        wait_until(come.is_set, "the second source starts")
        wait_until(partial(shards.target_has, shards.merged), "the first source has copied its shard")
        shards.alter("s1", 0, RENAME)
        wait_until(lambda: shards.items("s1", 0) == 1, "the first source has met it")
        goes_on.set()
        error = run.error()
    assert (getattr(error, "code", ""), "not met by" in str(error)) == ("SHARD-044", True)
    ctl("binlog", "skip", str(shards.files().task_path), "-s", "s1")
    with rig.run(shards) as run:
        shards.insert("s2", 0, 1)
        shards.run("s1", f"INSERT INTO {shards.at(0)} VALUES ({shards.id('s1', 0, 1)}, 'new')")
        shards.wait_in_step(run)
        own, other = shards.id("s1", 0, 1), shards.id("s2", 0, 1)
        wait_until(lambda: {own, other} <= merged_rows(shards).keys(), "the new rows")
        assert (merged_rows(shards)[own]["w"], merged_rows(shards)[other]["v"]) == ("new", "row 1")
