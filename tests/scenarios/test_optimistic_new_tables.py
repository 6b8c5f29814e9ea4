"""Optimistic mode: new tables that are like a shard that waits, that the target can't take, or that are made again."""

from __future__ import annotations

import re
import shlex

import pytest
from typer.testing import CliRunner

from support.operated_tasks import ctl
from support.optimistic_runs import columns, has_columns, merged_rows, optimistic, stopped, waits
from support.shard_rig import ShardRig
from support.shard_runs import Shards
from support.waiting import wait_until
from unshard.cli.app import app

pytestmark = [pytest.mark.server, pytest.mark.spark]

RENAME = "CHANGE v w VARCHAR(20) NOT NULL"


def typed(told: str) -> None:
    """Run the first command in the text."""
    command = re.findall(r"`(unshard ctl .*?)`(?=[ ,;]|$)", told)[0]
    done = CliRunner().invoke(app, shlex.split(command)[1:])
    assert done.exit_code == 0, f"{command}\n{done.output}"


def help_of(shards: Shards, table: int) -> str:
    """The command for that table that the lock's help has, once it waits."""

    seen: list[str] = []

    def found() -> bool:
        locks = ctl("shard-ddl-lock", str(shards.files().task_path))["locks"]
        parts = (part for lock in locks for part in str(lock["help"]).split("; "))
        seen.extend(part for part in parts if f"--table t_{table}`" in part)
        return bool(seen)

    wait_until(found, f"the help has a command for t_{table}")
    return seen[0]  # the source may be about to look again, and tell nothing meanwhile


def made_like(shards: Shards, table: int, model: int) -> None:
    shards.run("s1", f"CREATE TABLE {shards.at(table)} LIKE {shards.at(model)}")
    shards.shards.append(("s1", table))


@pytest.mark.parametrize("skips", [pytest.param(False, marks=pytest.mark.scenarios), True])
def test_a_table_that_is_made_like_a_shard_that_waits(rig: ShardRig, *, skips: bool) -> None:
    """It waits with the same statement, also over a restart; its rows come when that is run or left out."""
    shards = optimistic(rig, sources=1)
    with rig.run(shards) as run:
        run.catch_up()
        shards.alter("s1", 0, RENAME)
        waits(run, shards, "not met by")
        made_like(shards, 9, 0)
        shards.run("s1", f"INSERT INTO {shards.at(9)} (id, w) VALUES (77, 'new')")
        shards.alter("s1", 9, "ADD COLUMN c INT")
        run.catch_up()
        assert shards.items("s1", 9) == 2
    shards.run("s1", f"UPDATE {shards.at(9)} SET c = 3")
    with rig.run(shards) as run:
        if skips:
            typed(help_of(shards, 0))
            typed(help_of(shards, 9))
            has_columns(run, shards, "id", "v", "w", "c")
        else:
            shards.alter("s1", 1, RENAME)
            has_columns(run, shards, "id", "w", "c")
        shards.wait_in_step(run)
        row = merged_rows(shards)[77]
        assert (row["w"], row["c"]) == ("new", 3)
    assert ctl("shard-ddl-lock", str(shards.files().task_path))["locks"] == []


@pytest.mark.scenarios
@pytest.mark.parametrize("mode", ["pessimistic", "optimistic"])
def test_a_table_of_another_target_that_is_made_like_a_shard_that_waits(mode: str, rig: ShardRig) -> None:
    """It has the columns of the shard, which the merged table gets later."""
    shards = optimistic(rig, sources=1, keys={"shard-mode": mode})
    other = f"`{shards.name}_s`.other"
    with rig.run(shards) as run:
        run.catch_up()
        shards.alter("s1", 0, RENAME)
        shards.run("s1", f"CREATE TABLE {other} LIKE {shards.at(0)}")
        shards.run("s1", f"INSERT INTO {other} (id, w) VALUES (77, 'new')")
        run.catch_up()
        assert columns(shards) == ["id", "v"]
        wait_until(lambda: shards.target.query(f"SELECT id, w FROM {other}") == [(77, "new")], "the row is there")
        shards.alter("s1", 1, RENAME)
        shards.wait_in_step(run)
    assert columns(shards) == ["id", "w"]


@pytest.mark.parametrize(
    ("row", "values", "there"),
    [
        ("v VARCHAR(20) NOT NULL, extra INT NOT NULL", "'a', 5", {"v": "a", "extra": 5}),
        ("v DATE NOT NULL, extra INT DEFAULT 4", "'2020-01-01', 5", {"v": "", "extra": 5}),
        ("v VARCHAR(90) NULL", "NULL", {"v": None}),
    ],
)
@pytest.mark.scenarios
def test_a_table_that_the_target_can_not_take(rig: ShardRig, row: str, values: str, there: dict[str, object]) -> None:
    """What the error says to type lets the table in; later it is dropped and made like the others."""
    shards = optimistic(rig, sources=1)
    with rig.run(shards) as run:
        run.catch_up()
    shards.run("s1", f"CREATE TABLE {shards.at(9)} (id BIGINT NOT NULL PRIMARY KEY, {row})")
    shards.run("s1", f"INSERT INTO {shards.at(9)} VALUES (77, {values})")
    error = stopped(rig, shards)
    assert error.code == "SHARD-045"
    typed(str(error).replace("TASK.yaml", shlex.quote(str(shards.files().task_path))))
    shards.insert("s1", 0, 1)
    with rig.run(shards) as run:
        shards.wait_in_step(run)
        found = merged_rows(shards)
        assert {name: found[77][name] for name in there} == there
        shards.run("s1", f"DROP TABLE {shards.at(9)}")
        made_like(shards, 9, 1)
        shards.run("s1", f"INSERT INTO {shards.at(9)} VALUES (78, 'again')")
        shards.wait_in_step(run)
        assert merged_rows(shards)[78]["v"] == "again"
        assert columns(shards) == ["id", "v"]


@pytest.mark.scenarios
def test_a_shard_that_waits_is_dropped_and_made_again(rig: ShardRig) -> None:
    """The command that the error points to ends it, once for each statement."""
    shards = optimistic(rig, sources=1)
    with rig.run(shards) as run:
        run.catch_up()
        shards.alter("s1", 0, RENAME)
        shards.alter("s1", 0, "ADD UNIQUE KEY (w)")
        waits(run, shards, "not met by")
    shards.run("s1", f"DROP TABLE {shards.at(0)}")
    made_like(shards, 0, 1)
    shards.insert("s1", 0, 1)
    for _ in range(2):
        for _ in range(2):
            assert stopped(rig, shards).code == "SHARD-046"
        typed(help_of(shards, 0))
    with rig.run(shards) as run:
        shards.wait_in_step(run)
        assert merged_rows(shards)[shards.id("s1", 0, 1)]["v"] == "row 1"


@pytest.mark.scenarios
def test_a_statement_that_is_left_out_while_its_shard_waits(rig: ShardRig) -> None:
    """It comes behind the one that waits, and the shard goes on with both."""
    shards = optimistic(rig, sources=1)
    task = str(shards.files().task_path)
    with rig.run(shards) as run:
        run.catch_up()
        shards.alter("s1", 0, RENAME)
        waits(run, shards, "not met by")
    ((file, position, *_),) = shards.sources["s1"].query("SHOW MASTER STATUS")
    shards.alter("s1", 0, "ADD COLUMN made DATETIME NOT NULL DEFAULT CURRENT_TIMESTAMP")
    shards.run("s1", f"INSERT INTO {shards.at(0)} VALUES (77, 'new', '2021-01-01')")
    ctl("binlog", "skip", task, "-s", "s1", "-b", f"{file}:{position}")
    with rig.run(shards) as run:
        run.catch_up()
        assert shards.items("s1", 0) == 2
        shards.alter("s1", 1, RENAME)
        has_columns(run, shards, "id", "w", "made")
        shards.wait_in_step(run)
        row = merged_rows(shards)[77]
        assert (row["w"], str(row["made"])) == ("new", "2021-01-01 00:00:00")
        assert merged_rows(shards)[shards.id("s1", 0, 0)]["made"] is None
