"""Optimistic mode: a source leaves the task or a target, and comes back, while statements wait for all shards."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from support.operated_tasks import ctl, stopped_run
from support.optimistic_runs import columns, has_columns, merged_rows, optimistic, upstream_rows
from support.shard_rig import ShardRig
from support.shard_runs import Shards, ends_at, take_out
from support.task_runs import TaskRun
from support.waiting import wait_until
from unshard.cli.app import app
from unshard.errors import SyncError
from unshard.model.table import TableName
from unshard.operate import locks
from unshard.shard.group import ShardingGroup
from unshard.sync.sharding.optimistic import OptimisticGroups, ReleaseTable

pytestmark = [pytest.mark.server, pytest.mark.spark]

RENAME = "CHANGE v w VARCHAR(20) NOT NULL"


def renamed_without_the_second_source(rig: ShardRig) -> Shards:
    """The first source's shards have a new name for a column, and wait until the second source is taken out."""
    shards = optimistic(rig)
    files = shards.files()
    rest = replace(files, sources={"s1": rig.servers["s1"]})
    with rig.run(shards) as run:
        run.catch_up()
        for table in (0, 1):
            shards.alter("s1", table, RENAME)
            shards.run("s1", f"INSERT INTO {shards.at(table)} VALUES ({shards.id('s1', table, 1)}, 'held')")
        wait_until(lambda: all(shards.items("s1", table) == 1 for table in (0, 1)), "both wait")
    take_out(files, "s2")
    with TaskRun(rest.write(), rig.spark) as run:
        has_columns(run, shards, "id", "w")
        wait_until(lambda: shards.held() == 0, "none waits")
    files.write()
    return shards


def late(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second source goes on when the first one has begun to change the target for it."""
    begin = OptimisticGroups.begin_merged

    def begin_and_wait(groups: OptimisticGroups) -> None:
        def is_begun() -> bool:
            groups.load()
            return any(one.runner is not None and one.runner.source == "s1" for one in groups.merged.values())

        begin(groups)
        if groups.store.source == "s2":
            wait_until(is_begun, "the first source changes the target")

    monkeypatch.setattr(OptimisticGroups, "begin_merged", begin_and_wait)


@pytest.mark.scenarios
def test_it_comes_back_behind_a_rename(rig: ShardRig, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its rows have the old name: none is written before the other source has given the target that column too.

    Its own statement is left out. The rows between are set by hand.
    """
    shards = renamed_without_the_second_source(rig)
    later = [one for one in shards.shards if one[0] == "s2"]
    for shard in later:
        shards.insert(*shard, 1)
        shards.alter(*shard, RENAME)
        shards.run("s2", f"INSERT INTO {shards.at(shard[1])} VALUES ({shards.id(*shard, 2)}, 'new')")
    late(monkeypatch)
    reader = shards.target.connection()
    reader.query("BEGIN")
    reader.query(f"SELECT * FROM {shards.merged}")  # an ALTER TABLE waits for its end
    reader.store_result()
    with rig.run(shards) as run:

        def is_held() -> bool:
            if run.crew.errors:
                raise run.crew.errors[0]
            (reading,) = (one.sync for one in run.crew.readings() if one.source == "s2")
            return reading is not None and reading.doing == f"waiting for columns of {rig.name}_all.t"

        wait_until(is_held, "the second source waits")
        reader.close()
        has_columns(run, shards, "id", "w", "v")
        wait_until(lambda: all(shards.items(*shard) == 1 for shard in later), "both wait with the RENAME")
        task = str(shards.files().task_path)
        (lock,) = ctl("shard-ddl-lock", task)["locks"]
        assert "of s1 can't meet it: it has no column v and has column w already" in lock["waitsFor"]
        for source, table in later:
            words = ["--action", "skip", "--database", f"{rig.name}_s", "--table", f"t_{table}"]
            ctl("-s", source, "shard-ddl-lock", "unlock", lock["ID"], task, *words)
        shards.wait_in_step(run)
    assert columns(shards) == ["id", "w", "v"], "the values that were renamed are in v"
    rows = {id_: row["w"] for id_, row in merged_rows(shards).items()}
    expected = {id_: row["w"] for id_, row in upstream_rows(shards).items()}
    between = {shards.id(*shard, 1): "" for shard in later}
    assert rows == {**expected, **between}


def test_an_unlock_waits_until_the_source_has_asked_for_the_statement(
    rig: ShardRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The status shows the table as one that waits before the merged table has its request."""
    shards = optimistic(rig)
    (first, second), task = shards.shards[:2], str(shards.files().task_path)
    words = ["--action", "skip", "--database", f"{rig.name}_s", "--table", f"t_{second[1]}"]
    given = ["ctl", "-s", second[0], "shard-ddl-lock", "unlock", f"{rig.name}-`{rig.name}_all`.`t`", task, *words]
    may_ask, looks = threading.Event(), threading.Semaphore(0)
    ask, is_about_to_ask = OptimisticGroups._ask, locks._is_about_to_ask

    def ask_late(groups: OptimisticGroups, group: ShardingGroup, name: TableName) -> ReleaseTable | None:
        late = name.table == f"t_{second[1]}" and groups.store.source == second[0]
        return ask(groups, group, name) if may_ask.is_set() or not late else None

    def look(*what: Any) -> bool:
        looks.release()
        return is_about_to_ask(*what)

    monkeypatch.setattr(OptimisticGroups, "_ask", ask_late)
    monkeypatch.setattr(locks, "_is_about_to_ask", look)
    with rig.run(shards) as run:
        run.catch_up()
        for shard in (first, second):
            shards.alter(*shard, RENAME)
            shards.run(shard[0], f"INSERT INTO {shards.at(shard[1])} VALUES ({shards.id(*shard, 1)}, 'new')")
        wait_until(lambda: shards.items(*first) == shards.items(*second) == 1, "both are held")
        wait_until(lambda: bool(ctl("shard-ddl-lock", task)["locks"]), "the first has asked")
        with monkeypatch.context() as patch:
            assert locks.answer_unlock.__kwdefaults__ is not None
            patch.setitem(locks.answer_unlock.__kwdefaults__, "patience_seconds", 0.0)
            refused = CliRunner().invoke(app, given)
        assert refused.exit_code == 1
        assert "SHARD-052" in refused.output
        while looks.acquire(blocking=False):
            pass
        results: list[Result] = []
        unlock = threading.Thread(target=lambda: results.append(CliRunner().invoke(app, given)))
        unlock.start()
        assert looks.acquire(timeout=60), "the unlock looks for the request"
        may_ask.set()
        unlock.join()
        assert results[0].exit_code == 0, results[0].output
        has_columns(run, shards, "id", "v", "w")
        wait_until(lambda: shards.id(*second, 1) in merged_rows(shards), "the row behind the statement")


def renames_alone(rig: ShardRig, shards: Shards) -> None:
    """The first source's only shard gets a new name for a column: the other source has none that would have to."""
    with rig.run(shards) as run:
        run.catch_up()
        shards.alter("s1", 0, RENAME)
        has_columns(run, shards, "id", "w")
        shards.wait_in_step(run)


def test_a_source_whose_only_shard_gets_another_target(rig: ShardRig) -> None:
    shards = optimistic(rig)
    for source, table in (("s1", 1), ("s2", 0)):
        shards.run(source, f"DROP TABLE {shards.at(table)}")
    shards.shards[:] = [("s1", 0), ("s2", 1)]
    with rig.run(shards) as run:
        run.catch_up()
    shards.target.run(f"CREATE TABLE {shards.name}_all.other LIKE {shards.merged}")
    own = {"schema-pattern": f"{shards.name}_s", "target-schema": f"{shards.name}_all"}
    fold = {**own, "table-pattern": "t_0", "target-table": "t"}
    other = {**own, "table-pattern": "t_1", "target-table": "other"}
    shards.keys = {**shards.keys, "routes": {"fold": fold, "other": other}}
    shards.instance = {"route-rules": ["fold", "other"]}
    files = shards.files()
    error = stopped_run(files, rig.spark)
    assert isinstance(error, SyncError)
    assert (error.code, error.where.source) == ("SYNC-085", "s2")
    moved = f"WHERE id = {shards.id('s2', 1, 0)}"
    shards.target.run(f"INSERT INTO {shards.name}_all.other SELECT * FROM {shards.merged} {moved}")
    shards.target.run(f"DELETE FROM {shards.merged} {moved}")
    task, source = str(files.task_path), str(files.source_paths[1])
    ctl("binlog-schema", "update", task, f"{shards.name}_s", "t_1", "--from-source", "-s", source)
    renames_alone(rig, shards)


def test_a_source_that_ends_behind_the_drop_of_its_only_shard(rig: ShardRig, monkeypatch: pytest.MonkeyPatch) -> None:
    shards = optimistic(rig, tables=1)
    with rig.run(shards) as run:
        run.catch_up()
    drop = f"DROP TABLE {shards.at(0)}"
    assert ends_at("merged-register-before", shards.files(), rig.spark, monkeypatch, lambda _: shards.run("s2", drop))
    shards.shards.remove(("s2", 0))
    renames_alone(rig, shards)
