"""`shard-mode: optimistic` on real servers: what runs at once, what waits and for whom, and that no row is lost."""

from __future__ import annotations

import json
from typing import Any

import pytest
from typer.testing import CliRunner

from support.operated_tasks import ctl
from support.optimistic_runs import columns, has_columns, in_step, merged_rows, optimistic, stopped, waits
from support.shard_rig import ShardRig
from support.shard_runs import Shards
from support.waiting import wait_until
from unshard.cli.app import app

pytestmark = [pytest.mark.server, pytest.mark.spark]


def test_a_column_comes_with_the_first_shard_and_goes_with_the_last(rig: ShardRig) -> None:
    shards = optimistic(rig)
    with rig.run(shards) as run:
        run.catch_up()
        first, *others = shards.shards
        shards.alter(*first, "ADD COLUMN c INT NOT NULL DEFAULT 5")
        for shard in shards.shards:
            shards.insert(*shard, 1)
        in_step(run, shards, {"c": 5})
        for shard in others:
            shards.alter(*shard, "ADD COLUMN c INT NOT NULL DEFAULT 5")
            shards.update(*shard, 1, "c = 6")
        in_step(run, shards)
        *others, last = shards.shards
        for shard in others:
            shards.alter(*shard, "DROP COLUMN c")
            shards.insert(*shard, 4)
        shards.insert(*last, 4, c="7")
        in_step(run, shards)
        assert columns(shards) == ["id", "v", "c"]
        shards.alter(*last, "DROP COLUMN c")
        shards.insert(*last, 5)
        has_columns(run, shards, "id", "v")
        in_step(run, shards)


def test_wider_types_null_and_keys(rig: ShardRig) -> None:
    """Each shard in its own way; the target takes all rows at every moment."""
    shards = optimistic(rig)
    with rig.run(shards) as run:
        run.catch_up()
        for number, shard in enumerate(shards.shards):
            width = (90, 40, 60, 30)[number]
            null = ("", " NOT NULL")[number % 2]
            shards.alter(*shard, f"MODIFY v VARCHAR({width}){null}, ADD KEY by_v (v)")
            shards.run(
                shard[0], f"INSERT INTO {shards.at(shard[1])} VALUES ({shards.id(*shard, 7)}, REPEAT('x', {width}))"
            )
        in_step(run, shards)
        ((kind, null),) = shards.target.query(
            "SELECT COLUMN_TYPE, IS_NULLABLE FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = %s"
            " AND COLUMN_NAME = 'v'",
            (f"{rig.name}_all",),
        )
        assert (kind, null) == ("varchar(90)", "YES")
        for shard in shards.shards:
            shards.alter(*shard, "DROP KEY by_v")
        in_step(run, shards)
        assert {row[2] for row in shards.target.query(f"SHOW INDEX FROM {shards.merged}")} == {"PRIMARY"}


@pytest.mark.scenarios
def test_values_of_a_column_without_default_that_some_shards_lack(rig: ShardRig) -> None:
    shards = optimistic(rig)
    with rig.run(shards) as run:
        run.catch_up()
        first, second, *_ = shards.shards
        shards.alter(*first, "ADD COLUMN a VARCHAR(9) NOT NULL, ADD COLUMN b DECIMAL(9,2) NOT NULL DEFAULT 1.5")
        shards.alter(*second, "ADD COLUMN e ENUM('x','y') NOT NULL, ADD COLUMN n TEXT")
        for shard in shards.shards:
            own = {"a": "''"} if shard == first else {}
            shards.insert(shard[0], shard[1], 1, **own)
        in_step(run, shards, {"a": "", "e": "x", "n": None})
        assert {str(row["b"]) for row in merged_rows(shards).values()} == {"1.50"}
        for shard in shards.shards:
            shards.alter(*shard, "DROP COLUMN v")
            more = (", a", ", 'z'") if shard == first else ("", "")
            shards.run(
                shard[0], f"INSERT INTO {shards.at(shard[1])} (id{more[0]}) VALUES ({shards.id(*shard, 2)}{more[1]})"
            )
        has_columns(run, shards, "id", "a", "b", "e", "n")
        in_step(run, shards)


def test_a_rename_is_for_all_shards_and_other_tables_go_on(rig: ShardRig) -> None:
    shards = optimistic(rig)
    with rig.run(shards) as run:
        run.catch_up()
        first, *others = shards.shards
        shards.alter(*first, "CHANGE v w VARCHAR(20) NOT NULL")
        shards.run(first[0], f"INSERT INTO {shards.at(first[1])} VALUES ({shards.id(*first, 1)}, 'renamed')")
        shards.alter(*first, "ADD COLUMN more INT DEFAULT 3")
        shards.run(first[0], f"INSERT INTO {shards.at(first[1])} VALUES ({shards.id(*first, 2)}, 'both', 4)")
        for shard in others:
            shards.insert(*shard, 1)
        waits(run, shards, "not met by")
        wait_until(lambda: len(merged_rows(shards)) == 7, "the rows of all but the shard that waits")
        shards.alter(*others[0], "ADD COLUMN own INT")
        shards.insert(*others[0], 2, own="5")
        has_columns(run, shards, "id", "v", "own")
        for shard in others:
            shards.alter(*shard, "CHANGE v w VARCHAR(20) NOT NULL")
            shards.run(shard[0], f"UPDATE {shards.at(shard[1])} SET w = 'new' WHERE id = {shards.id(*shard, 1)}")
        has_columns(run, shards, "id", "w", "own", "more")
        in_step(run, shards, {"more": 3, "own": None})


@pytest.mark.scenarios
def test_a_dropped_name_that_comes_again_waits_for_the_others(rig: ShardRig) -> None:
    """Old rows of the shard have the old values in the target; the new column must not show them."""
    shards = optimistic(rig)
    with rig.run(shards) as run:
        run.catch_up()
        first, *others = shards.shards
        shards.alter(*first, "DROP COLUMN v")
        shards.alter(*first, "ADD COLUMN v VARCHAR(20) NOT NULL DEFAULT 'again'")
        shards.insert(*first, 1)
        waits(run, shards, "may have other values in column v")
        for shard in others:
            shards.alter(*shard, "DROP COLUMN v")
        in_step(run, shards, {"v": "again"})
        assert columns(shards) == ["id", "v"]


def test_a_shard_that_is_dropped_and_one_that_is_new(rig: ShardRig) -> None:
    shards = optimistic(rig)
    with rig.run(shards) as run:
        run.catch_up()
        *others, last = shards.shards
        for shard in others:
            shards.alter(*shard, "CHANGE v w VARCHAR(20) NOT NULL")
        waits(run, shards, "not met by")
        kept = shards.id(*last, 0)
        shards.run(last[0], f"DROP TABLE {shards.at(last[1])}")
        has_columns(run, shards, "id", "w")
        shards.shards.remove(last)
        wait_until(lambda: not shards.held(), "nothing is held")
        shards.alter(*others[0], "ADD COLUMN c INT DEFAULT 2")
        has_columns(run, shards, "id", "w", "c")
        shards.run(last[0], f"CREATE TABLE {shards.at(9)} (id BIGINT NOT NULL PRIMARY KEY, w VARCHAR(20) NOT NULL)")
        shards.run(last[0], f"INSERT INTO {shards.at(9)} VALUES ({shards.id(last[0], 9, 0)}, 'new')")
        run.catch_up()
        wait_until(lambda: shards.id(last[0], 9, 0) in merged_rows(shards), "the row of the new shard")
        rows = merged_rows(shards)
        assert rows[shards.id(last[0], 9, 0)]["c"] == 2
        assert kept in rows


@pytest.mark.scenarios
def test_a_new_shard_whose_rows_the_target_can_not_take_is_refused(rig: ShardRig) -> None:
    shards = optimistic(rig)
    with rig.run(shards) as run:
        run.catch_up()
    shards.run("s1", f"CREATE TABLE {shards.at(9)} ({shards.row}, extra INT)")
    error = stopped(rig, shards)
    assert error.code == "SHARD-045"
    assert "extra" in str(error)


def test_another_default_than_that_of_the_first_shard_waits_for_a_human(rig: ShardRig) -> None:
    shards = optimistic(rig)
    with rig.run(shards) as run:
        run.catch_up()
        first, second, *others = shards.shards
        shards.alter(*first, "ADD COLUMN c INT DEFAULT 5")
        has_columns(run, shards, "id", "v", "c")
        shards.alter(*second, "ADD COLUMN c INT DEFAULT 7")
        shards.insert(*others[0], 1)
        waits(run, shards, "have 5 in column c of the target, and 7")
        wait_until(lambda: shards.id(*others[0], 1) in merged_rows(shards), "a row of another shard")
        task = str(shards.files().task_path)
        (lock,) = ctl("shard-ddl-lock", task)["locks"]
        words = ["--action", "exec", "--database", f"{rig.name}_s", "--table"]
        refusal = CliRunner().invoke(
            app, ["ctl", "-s", second[0], "shard-ddl-lock", "unlock", lock["ID"], task, *words, "t_0"]
        )
        assert "SHARD-050" in refusal.output
        ctl("-s", second[0], "shard-ddl-lock", "unlock", lock["ID"], task, *words, f"t_{second[1]}")
        shards.insert(*second, 1, c="9")
        wait_until(lambda: shards.id(*second, 1) in merged_rows(shards), "the shard that waited")
        assert merged_rows(shards)[shards.id(*second, 0)]["c"] == 5, "what it had: a human sets it"


def test_two_statements_at_one_barrier_are_left_out_by_a_human(rig: ShardRig) -> None:
    shards = optimistic(rig)
    with rig.run(shards) as run:
        run.catch_up()
        first, second = shards.shards[:2]
        shards.alter(*first, "CHANGE v name VARCHAR(20) NOT NULL")
        shards.run(first[0], f"INSERT INTO {shards.at(first[1])} (id, name) VALUES ({shards.id(*first, 1)}, 'row 1')")
        shards.alter(*second, "ADD UNIQUE KEY (v)")
        shards.insert(*second, 1)
        waits(run, shards, "not met by")
        task = str(shards.files().task_path)
        (lock,) = ctl("shard-ddl-lock", task)["locks"]
        for source, table in (first, second):
            words = ["--action", "skip", "--database", f"{rig.name}_s", "--table", f"t_{table}"]
            ctl("-s", source, "shard-ddl-lock", "unlock", lock["ID"], task, *words)
        wait_until(lambda: shards.id(*first, 1) in merged_rows(shards), "the shard with another name")
        shards.wait_in_step(run)
        rows = merged_rows(shards)
        assert columns(shards) == ["id", "v", "name"]
        assert rows[shards.id(*first, 1)]["name"] == "row 1"
        assert rows[shards.id(*first, 0)]["v"] == "row 0"
        assert rows[shards.id(*second, 1)]["v"] == "row 1"
        assert ctl("shard-ddl-lock", task)["locks"] == []


def explained(shards: Shards, source: str, table: int, change: str) -> dict[str, Any]:
    """What `unshard explain --connect` says of an ALTER TABLE, in its JSON form."""
    files = shards.files()
    args = ["explain", str(files.task_path), "--source-id", source, "--connect", "--json"]
    for path in files.source_paths:
        args += ["-s", str(path)]
    made = CliRunner().invoke(app, [*args, "--sql", f"ALTER TABLE {shards.at(table)} {change}"])
    assert made.exit_code == 0, made.output
    (found,) = json.loads(made.output)["sources"]
    return dict(found)


@pytest.mark.scenarios
def test_what_an_alter_would_do_is_told_before_it_is_run(rig: ShardRig) -> None:
    shards = optimistic(rig)
    with rig.run(shards) as run:
        run.catch_up()
        added = explained(shards, "s1", 0, "ADD COLUMN c INT NOT NULL")
        assert added["says"] == "runs"
        assert "ADD COLUMN `c`" in added["statements"][0]["sql"]
        assert "get 0 in column c" in str(added["groups"])
        letter = explained(shards, "s1", 0, "ADD COLUMN e VARCHAR(9) NOT NULL DEFAULT '😀'")
        assert "a barrier; not met by" in str(letter)
        renamed = explained(shards, "s1", 0, "CHANGE v w VARCHAR(20) NOT NULL")
        assert renamed["says"] == "waits"
        assert "not met by" in str(renamed["groups"])
        dropped = explained(shards, "s2", 0, "ALTER COLUMN v SET DEFAULT 'x', DROP COLUMN v")
        assert dropped["says"] in ("runs", "nothing")
        shards.alter("s1", 0, "CHANGE v w VARCHAR(20) NOT NULL")
        waits(run, shards, "not met by")
        assert "waits with an earlier" in str(explained(shards, "s1", 0, "ADD COLUMN d INT"))
        (lock,) = ctl("shard-ddl-lock", str(shards.files().task_path))["locks"]
        assert lock["mode"] == "optimistic"
        assert "not met by" in lock["waitsFor"]
        words = ["ctl", "shard-ddl-lock", "unlock", lock["ID"], str(shards.files().task_path)]
        assert "name the one that waits" in CliRunner().invoke(app, words).output


@pytest.mark.scenarios
def test_another_mode_while_a_shard_is_ahead_is_refused(rig: ShardRig) -> None:
    shards = optimistic(rig)
    with rig.run(shards) as run:
        run.catch_up()
        shards.alter("s1", 0, "ADD COLUMN c INT")
        has_columns(run, shards, "id", "v", "c")
    shards.keys = {"shard-mode": "pessimistic"}
    assert stopped(rig, shards).code == "SHARD-051"
    shards.keys = {"shard-mode": "optimistic"}
    with rig.run(shards) as run:
        for shard in shards.shards[1:]:
            shards.alter(*shard, "ADD COLUMN c INT")
        in_step(run, shards)
        wait_until(lambda: not ctl("shard-ddl-lock", str(shards.files().task_path))["locks"], "nothing waits")
    shards.keys = {"shard-mode": "pessimistic"}
    with rig.run(shards) as run:
        for shard in shards.shards:
            shards.alter(*shard, "CHANGE v w VARCHAR(20) NOT NULL")
        has_columns(run, shards, "id", "w", "c")


@pytest.mark.scenarios
def test_a_widening_that_one_shard_takes_back(rig: ShardRig) -> None:
    """The other shards never had it; the target is as it was, and nothing waits."""
    shards = optimistic(rig, row="id BIGINT NOT NULL PRIMARY KEY, v VARCHAR(20) NOT NULL, n INT")
    first = shards.shards[0]

    def kind() -> str:
        return str(shards.target.query(f"SHOW COLUMNS FROM {shards.merged} LIKE 'n'")[0][1])

    with rig.run(shards) as run:
        run.catch_up()
        before = kind()
        shards.alter(*first, "MODIFY n BIGINT")
        wait_until(lambda: "bigint" in kind(), "the wider type")
        shards.insert(*first, 1, n="7")
        shards.alter(*first, "MODIFY n INT")
        for shard in shards.shards:
            shards.insert(*shard, 2, n="8")
        in_step(run, shards)
        assert kind() == before
    assert ctl("shard-ddl-lock", str(shards.files().task_path))["locks"] == []
