"""Optimistic mode: two sources alter their shards at each moment of a start, of a new shard, and of an absence.

Whatever one source knows of the other by then: both statements come into force, and all rows are there.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any

import pytest

from support.operated_tasks import ctl
from support.optimistic_runs import columns, in_step, merged_rows, optimistic
from support.shard_rig import ShardRig
from support.shard_runs import Shards, take_out
from support.task_runs import TaskRun
from support.waiting import wait_until
from unshard.sync.sharding import optimistic as optimistic_groups
from unshard.sync.sharding.optimistic import OptimisticGroups
from unshard.sync.sharding.optimistic_statements import OptimisticStatements
from unshard.sync.sharding.table_owners import Ownership

pytestmark = [pytest.mark.server, pytest.mark.spark]

ADD = "ADD COLUMN c INT NOT NULL DEFAULT 5"
ALTERED = ["id", "v", "c"]


@dataclass(frozen=True, slots=True)
class Moment:
    """Before or behind a call of a source's method; `number`: which call of it, of those that `counts`."""

    owner: type
    method: str
    behind: bool = False
    number: int = 1
    counts: Callable[[Any], bool] = lambda _: True

    def comes(self, source: str, act: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> threading.Event:
        """Let the source `act` at the moment. The event is set when it has."""
        own, calls, done = getattr(self.owner, self.method), count(1), threading.Event()

        def call(one: Any, *args: Any, **named: Any) -> Any:
            store = one.groups.store if isinstance(one, OptimisticStatements) else one.store
            mine = store.source == source and self.counts(one) and next(calls) == self.number
            if mine and not self.behind:
                act()
                done.set()
            found = own(one, *args, **named)
            if mine and self.behind:
                act()
                done.set()
            return found

        monkeypatch.setattr(self.owner, self.method, call)
        return done


COPY = {
    "before its copy joins": Moment(OptimisticGroups, "join_copies"),
    "when its copy has joined": Moment(OptimisticGroups, "join_copies", behind=True),
    "when its copy is loaded": Moment(OptimisticGroups, "end_join", behind=True),
    "before its tables are declared again": Moment(Ownership, "announce", number=2),
}
START = {
    "before its tables are declared": Moment(Ownership, "announce"),
    "when its tables are declared": Moment(Ownership, "announce", behind=True),
    "before its shards are registered": Moment(OptimisticGroups, "begin_merged"),
    "when its shards are registered": Moment(OptimisticGroups, "begin_merged", behind=True),
    "before its first step": Moment(OptimisticGroups, "next_step"),
    "behind its first step": Moment(OptimisticGroups, "next_step", behind=True),
    "behind its second step": Moment(OptimisticGroups, "next_step", behind=True, number=2),
}


def has_a_shard(groups: OptimisticGroups) -> bool:
    return bool(groups.names)


NEW_SHARD = {
    "before its CREATE is passed": Moment(OptimisticStatements, "pass_by"),
    "while its CREATE is passed": Moment(OptimisticStatements, "pass_by", behind=True),
    "before it is registered": Moment(OptimisticGroups, "register", counts=has_a_shard),
    "when it is registered": Moment(OptimisticGroups, "register", behind=True, counts=has_a_shard),
    "behind the next step": Moment(OptimisticGroups, "next_step", behind=True, number=2, counts=has_a_shard),
}


def alter(shards: Shards, source: str) -> None:
    shards.alter(source, 0, ADD)
    shards.insert(source, 0, 1, c="6")


def follows(run: TaskRun, source: str) -> bool:
    if run.crew.errors:
        raise run.crew.errors[0]
    (subtask,) = (one for one in run.crew.subtasks if one.source == source)
    return subtask.claimed


def has_met(run: TaskRun, shards: Shards, source: str) -> bool:
    """Whether the source waits with its statement, or has a row behind it in the target."""
    if run.crew.errors:
        raise run.crew.errors[0]
    return shards.items(source, 0) == 1 or shards.id(source, 0, 1) in merged_rows(shards)


def all_have_it(run: TaskRun, shards: Shards) -> None:
    for source, table in shards.shards:
        shards.insert(source, table, 9, c="7")
    in_step(run, shards)
    assert columns(shards) == ALTERED


RARE = pytest.mark.scenarios
MOST_TELLING = "when its tables are declared"


@pytest.fixture(params=[pytest.param(0.0, id="looks always", marks=RARE), pytest.param(60.0, id="looks seldom")])
def idle(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """How old a source's knowledge of the merged table may be."""
    monkeypatch.setattr(optimistic_groups, "IDLE_LOOK_SECONDS", request.param)


def meets_alone(run: TaskRun, shards: Shards) -> None:
    """The first source meets its statement, and the other one stands still meanwhile."""
    wait_until(lambda: follows(run, "s1"), "the first source follows its log")
    alter(shards, "s1")
    wait_until(lambda: has_met(run, shards, "s1"), "the first source has met it")


@pytest.mark.usefixtures("idle")
@pytest.mark.parametrize(
    "moment", [pytest.param(one, marks=() if one == MOST_TELLING else RARE) for one in (*START, *COPY)]
)
def test_a_first_start(moment: str, rig: ShardRig, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first source meets its statement at a moment of the second one's start.

    What it knows by then is as it was between the second one's declaration of its tables and their registration.
    """
    shards = optimistic(rig, tables=1)
    run = rig.run(shards)
    come = threading.Event()

    def act() -> None:
        come.set()
        meets_alone(run, shards)

    done = (START | COPY)[moment].comes("s2", act, monkeypatch)
    declared = Moment(Ownership, "announce", behind=True).comes("s2", lambda: None, monkeypatch)
    until_declared = partial(wait_until, lambda: declared.is_set() or come.is_set(), "the second source has declared")
    Moment(OptimisticGroups, "next_step").comes("s1", until_declared, monkeypatch)
    looked = Moment(OptimisticGroups, "next_step", behind=True).comes("s1", lambda: None, monkeypatch)
    until_looked = partial(wait_until, lambda: looked.is_set() or come.is_set(), "the first source has looked")
    Moment(OptimisticGroups, "join_copies").comes("s2", until_looked, monkeypatch)
    with run:
        wait_until(done.is_set, moment, told=lambda: str(run.crew.errors))
        alter(shards, "s2")
        all_have_it(run, shards)


@pytest.mark.scenarios
@pytest.mark.parametrize("moment", START)
def test_a_restart(moment: str, rig: ShardRig, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second source comes back, and the first one meets its statement at a moment of that."""
    shards = optimistic(rig, tables=1)
    with rig.run(shards) as run:
        run.catch_up()
    again = rig.run(shards)
    done = START[moment].comes("s2", partial(meets_alone, again, shards), monkeypatch)
    with again:
        wait_until(done.is_set, moment, told=lambda: str(again.crew.errors))
        alter(shards, "s2")
        all_have_it(again, shards)


@pytest.mark.scenarios
@pytest.mark.parametrize("moment", START)
def test_a_return_into_the_task(moment: str, rig: ShardRig, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the target has got the column without the second source, that one's rows may have any value in it."""
    shards = optimistic(rig, tables=1)
    with rig.run(shards) as run:
        run.catch_up()
    take_out(shards.files(), "s2")
    again = rig.run(shards)
    done = START[moment].comes("s2", partial(meets_alone, again, shards), monkeypatch)
    with again:
        wait_until(done.is_set, moment, told=lambda: str(again.crew.errors))
        alter(shards, "s2")
        wait_until(lambda: has_met(again, shards, "s2"), "the second source has met it")
        for lock in ctl("shard-ddl-lock", str(shards.files().task_path))["locks"]:
            if "lacked it from the beginning" in lock["waitsFor"]:
                words = ["--action", "exec", "--database", f"{shards.name}_s", "--table", "t_0"]
                ctl("-s", "s2", "shard-ddl-lock", "unlock", lock["ID"], str(shards.files().task_path), *words)
        all_have_it(again, shards)


@pytest.mark.scenarios
@pytest.mark.usefixtures("idle")
@pytest.mark.parametrize("moment", NEW_SHARD)
def test_a_new_shard(moment: str, rig: ShardRig, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second source gets its first shard, and the first one meets its statement at a moment of that."""
    shards = optimistic(rig, tables=1)
    shards.run("s2", f"DROP TABLE {shards.at(0)}")
    with rig.run(shards) as run:
        run.catch_up()
        done = NEW_SHARD[moment].comes("s2", partial(meets_alone, run, shards), monkeypatch)
        shards.run("s2", f"CREATE TABLE {shards.at(0)} ({shards.row})")
        shards.insert("s2", 0, 5)
        wait_until(done.is_set, moment, told=lambda: str(run.crew.errors))
        alter(shards, "s2")
        all_have_it(run, shards)
