"""Optimistic mode: what a wait or a stop tells to type ends it, as it is typed."""

from __future__ import annotations

import json
import re
import shlex
from functools import partial
from typing import Any

import pytest
from typer.testing import CliRunner

from support.operated_tasks import ctl
from support.optimistic_runs import columns, has_columns, in_step, merged_rows, optimistic, stopped, waits, write
from support.shard_rig import ShardRig
from support.shard_runs import Shards
from support.task_runs import TaskRun
from support.waiting import wait_until
from unshard.api.status import Stage
from unshard.cli.app import app
from unshard.config.files import load_source, load_task
from unshard.config.subtask import plan_subtasks
from unshard.operate.reset import look, undo
from unshard.testing.tidb_server import TidbServer
from unshard.worker.report import subtask_form

pytestmark = [pytest.mark.server, pytest.mark.spark]

RENAME = "CHANGE v w VARCHAR(20) NOT NULL"
MADE = "ADD COLUMN made DATETIME NOT NULL DEFAULT CURRENT_TIMESTAMP"


def begin_anew(shards: Shards) -> None:
    """`unshard run --reset`, up to where the run begins."""
    files = shards.files()
    configs = plan_subtasks(load_task(files.task_path), [load_source(path) for path in files.source_paths])
    undo(configs, look(configs))


def lock_of(shards: Shards) -> dict[str, Any]:
    (lock,) = ctl("shard-ddl-lock", str(shards.files().task_path))["locks"]
    return dict(lock)


def type_what_is_told(shards: Shards, text: str, source: str) -> None:
    """Run the first command in the text that is for that source."""
    typed = [command for command in re.findall(r"`(unshard ctl .*?)`(?= |;|$)", text) if f"-s {source}" in command]
    words = shlex.split(typed[0])[1:]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, f"{typed[0]}\n{done.output}"


def waits_no_more(task: str, waiting: list[str]) -> bool:
    """Whether others wait than those."""
    return waiting not in [sorted(one["synced"]) for one in ctl("shard-ddl-lock", task)["locks"]]


def row_of(shards: Shards, source: str, table: int, number: int) -> dict[str, Any]:
    """A row of the merged table, when it is there."""
    wait_until(lambda: shards.id(source, table, number) in merged_rows(shards), f"row {number} of {table} of {source}")
    return merged_rows(shards)[shards.id(source, table, number)]


def places(run: TaskRun) -> dict[str, str]:
    """Where the statements begin that sources wait with, by source."""
    readings = ((one.source, one.sync) for one in run.crew.readings() if one.sync is not None)
    return {source: group.first_location.split(" ")[0] for source, sync in readings for group in sync.groups}


def go_on(run: TaskRun, shards: Shards) -> None:
    """All shards write rows, and nothing waits."""
    for shard in shards.shards:
        write(shards, *shard, 9)
    shards.wait_in_step(run)
    for shard in shards.shards:
        row_of(shards, *shard, 9)
    assert ctl("shard-ddl-lock", str(shards.files().task_path))["locks"] == []


@pytest.mark.scenarios
@pytest.mark.parametrize(
    ("own", "others", "words"),
    [
        (RENAME, "", "not met by"),
        (MADE, "", "not met by"),
        ("MODIFY v INT NOT NULL", "", "not met by"),
        ("ADD COLUMN u INT UNIQUE", "", "not met by"),
        ("MODIFY v VARCHAR(10) NOT NULL, ADD KEY k (v)", "ADD KEY k (id)", "not met by"),
        (RENAME, "ADD COLUMN w VARCHAR(20) NOT NULL DEFAULT '', DROP COLUMN v", "can't meet it: it has no column v"),
        (RENAME, "CHANGE v x VARCHAR(20) NOT NULL", "has met"),
        ("ADD COLUMN c VARCHAR(10)", "ADD COLUMN c INT", "column c is"),
        ("ADD COLUMN c INT DEFAULT 5", "ADD COLUMN c INT DEFAULT 7", "in column c of the target"),
    ],
)  # fmt: skip
def test_a_statement_of_one_shard(own: str, others: str, words: str, rig: ShardRig) -> None:
    shards = optimistic(rig)
    task = str(shards.files().task_path)
    first, *rest = shards.shards
    shards.update(*first, 0, "v = '0'")
    with rig.run(shards) as run:
        run.catch_up()
        for shard in rest if others else ():
            shards.alter(*shard, others)
        if others and "CHANGE" not in others:
            shards.wait_in_step(run)
        shards.alter(*first, own)
        waits(run, shards, words)
        while locks := ctl("shard-ddl-lock", task)["locks"]:
            if waiting := sorted(locks[0]["synced"]):
                type_what_is_told(shards, locks[0]["help"], waiting[0].partition("-")[0])
            wait_until(partial(waits_no_more, task, waiting), f"{waiting} wait no more")
        go_on(run, shards)


def test_what_is_told_again_for_the_next_statement(rig: ShardRig) -> None:
    """A shard whose structure does not fit stays apart: its later statements do not wait for that again."""
    shards = optimistic(rig)
    first = shards.shards[0]
    with rig.run(shards) as run:
        run.catch_up()
        shards.alter(*first, MADE)
        waits(run, shards, "not met by")
        type_what_is_told(shards, lock_of(shards)["help"], "s1")
        shards.wait_in_step(run)
        shards.alter(*first, "ADD COLUMN more INT NOT NULL DEFAULT 3")
        shards.insert(*first, 1, made="'2021-01-01 01:01:01'", more="4")
        go_on(run, shards)
        row = row_of(shards, *first, 1)
        assert (str(row["made"]), row["more"]) == ("2021-01-01 01:01:01", 4)


@pytest.mark.scenarios
@pytest.mark.parametrize("stops", [False, True], ids=["while it runs", "by a new start"])
def test_another_statement_in_the_place_of_one_that_waits(rig: ShardRig, *, stops: bool) -> None:
    shards = optimistic(rig)
    first = shards.shards[0]
    task = str(shards.files().task_path)
    with rig.run(shards) as run:
        run.catch_up()
        shards.alter(*first, MADE)
        shards.insert(*first, 1, made="'2021-01-01 01:01:01'")
        waits(run, shards, "not met by")
        other = f"ALTER TABLE {shards.at(first[1])} ADD COLUMN made DATETIME NULL"
        words = ["binlog", "replace", task, "-s", "s1", "-b", places(run)["s1"], other]
        if not stops:
            ctl(*words)
            go_on(run, shards)
    if stops:
        ctl(*words)
        with rig.run(shards) as run:
            go_on(run, shards)
    assert str(merged_rows(shards)[shards.id(*first, 1)]["made"]) == "2021-01-01 01:01:01"
    assert merged_rows(shards)[shards.id(*first, 0)]["made"] is None
    assert json.loads(ctl("binlog", "list", task, "-s", "s1")["sources"][0]["msg"]) == [], "it is used"


@pytest.mark.scenarios
def test_a_statement_before_one_that_waits(rig: ShardRig) -> None:
    shards = optimistic(rig)
    first = shards.shards[0]
    with rig.run(shards) as run:
        run.catch_up()
        shards.alter(*first, RENAME)
        waits(run, shards, "not met by")
        before = f"ALTER TABLE {shards.at(first[1])} ADD COLUMN note INT"
        ctl("binlog", "inject", str(shards.files().task_path), "-s", "s1", "-b", places(run)["s1"], before)
        wait_until(lambda: len(lock_of(shards)["DDLs"]) == 2, "both statements wait")
        type_what_is_told(shards, lock_of(shards)["help"], "s1")
        go_on(run, shards)


@pytest.mark.scenarios
@pytest.mark.parametrize("op", ["skip", "replace"])
def test_a_statement_that_the_target_refuses(op: str, rig: ShardRig) -> None:
    """Values that are unique in each shard are double in the target, so it has no such key."""
    shards = optimistic(rig)
    with rig.run(shards) as run:
        run.catch_up()
    for shard in shards.shards:
        shards.alter(*shard, "ADD UNIQUE KEY one (v)")
    error = stopped(rig, shards)
    assert "row 0" in str(error)
    words = ["binlog", op, str(shards.files().task_path), "-s", str(error.where.source)]
    place = "in the place of the unique key"
    if op == "replace":
        words.append(f"ALTER TABLE {shards.at(0)} ADD KEY one (v) COMMENT '{place}'")
    ctl(*words)
    with rig.run(shards) as run:
        for shard in shards.shards:
            shards.insert(*shard, 1)
        shards.wait_in_step(run)
    keys = [row for row in shards.target.query(f"SHOW KEYS FROM {shards.merged}") if row[2] == "one"]
    assert len(keys) == (op == "replace")


@pytest.mark.scenarios
def test_an_effect_that_is_not_computed(rig: ShardRig) -> None:
    """What all shards have afterwards is what the target gets."""
    if isinstance(rig.target, TidbServer):
        return
    row = (
        "id BIGINT NOT NULL PRIMARY KEY, v VARCHAR(20) NOT NULL, a DATE NOT NULL DEFAULT '2020-01-01', "
        "b DATE NOT NULL DEFAULT '2021-01-01'"
    )
    shards = optimistic(rig, row=row)
    with rig.run(shards) as run:
        run.catch_up()
        for shard in shards.shards:
            shards.alter(*shard, "ADD PERIOD FOR p (a, b)")
            shards.insert(*shard, 1)
        shards.wait_in_step(run)
        ((_, created),) = shards.target.query(f"SHOW CREATE TABLE {shards.merged}")
        assert "PERIOD FOR `p`" in created
        shards.alter(*shards.shards[0], "ADD COLUMN c INT")
        has_columns(run, shards, "id", "v", "a", "b", "c")
        shards.wait_in_step(run)


def test_a_tool_of_dm_reads_whose_statement_conflicts(rig: ShardRig) -> None:
    """DM's case of a column's place is no conflict here, whichever statement comes last."""
    row = "id BIGINT NOT NULL PRIMARY KEY, v VARCHAR(20) NOT NULL, a INT, b INT"
    shards = optimistic(rig, row=row, tables=1)
    with rig.run(shards) as run:
        run.catch_up()
        shards.alter("s1", 0, "CHANGE a c INT AFTER b")
        waits(run, shards, "not met by")
        (reading,) = (one for one in run.crew.readings() if one.source == "s1")
        form = subtask_form(rig.name, Stage.RUNNING, "sync", None, reading).model_dump(by_alias=True)
        statement = f"ALTER TABLE {shards.merged} CHANGE a c INT AFTER b"
        assert form["unresolvedDDLLockID"] == f"{rig.name}-{shards.merged}"
        assert form["sync"]["blockDDLOwner"] == f"s1-{shards.at(0)}"
        assert list(form["sync"]["blockingDDLs"]) == [statement]
        assert form["sync"]["conflictMsg"].startswith(f"there will be conflicts if DDLs {statement} of ")
        shards.alter("s2", 0, "CHANGE a c INT FIRST")
        shards.alter("s1", 0, "CHANGE c c INT FIRST")
        shards.alter("s2", 0, "CHANGE c c INT AFTER b")
        shards.wait_in_step(run)
        go_on(run, shards)
        assert set(columns(shards)) == {"id", "v", "b", "c"}


@pytest.mark.parametrize("has_ids", [True, False])
def test_shards_without_a_key_that_differ(rig: ShardRig, *, has_ids: bool) -> None:
    """A column of the target comes with one shard, and the next row is of a shard that lacks it."""
    shards = optimistic(rig, row="id BIGINT NOT NULL, v VARCHAR(20) NOT NULL", tables=1)
    first, last = shards.shards
    with rig.run(shards) as run:
        run.catch_up()
        shards.alter(*first, "ADD COLUMN c INT DEFAULT 5")
        has_columns(run, shards, "id", "v", "c")
    shards.insert(*last, 1)
    error = stopped(rig, shards)
    assert (error.code, f"ALTER TABLE {shards.name}_all.t ADD PRIMARY KEY" in str(error)) == ("SHARD-048", True)
    if has_ids:
        shards.target.run(f"ALTER TABLE {shards.merged} ADD PRIMARY KEY (id)")
    else:
        shards.alter(*last, "ADD COLUMN c INT DEFAULT 5")
        begin_anew(shards)
    with rig.run(shards) as run:
        in_step(run, shards, {"c": 5})
        shards.update(*last, 1, "v = 'new'")
        shards.delete(*first, 0)
        in_step(run, shards, {"c": 5})
