"""Tables of which the log has brought nothing yet: an incremental task reads a structure where it is first needed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from support.shard_rig import ShardRig
from support.shard_runs import ROW, Shards
from support.task_runs import TaskRun
from support.waiting import wait_until

pytestmark = [pytest.mark.server, pytest.mark.spark]


def begun(rig: ShardRig, mode: str, route: Mapping[str, str] | None = None, **given: Any) -> Shards:
    """Shards whose rows the target has already; the task goes on from now."""
    keys: dict[str, Any] = {"task-mode": "incremental", "shard-mode": mode, "shard-drop": "ignore"}
    if not mode:
        del keys["shard-drop"]
    if route is not None:
        keys["routes"] = {"fold": route}
    shards = rig.shards(keys=keys, **given)
    rig.target.run(f"CREATE DATABASE {rig.name}_all", f"CREATE TABLE {shards.merged} ({ROW})")
    for row, text in shards.expected():
        rig.target.run(f"INSERT INTO {shards.merged} VALUES ({row}, '{text}')")
    return shards


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("mode", ["pessimistic", "optimistic"])
def test_a_schema_is_dropped_whose_tables_were_never_written(mode: str, restarts: bool, rig: ShardRig) -> None:
    """Nobody waits for its tables any more."""
    route = {"schema-pattern": f"{rig.name}_s*", "table-pattern": "t_*"}
    shards = begun(rig, mode, {**route, "target-schema": f"{rig.name}_all", "target-table": "t"})
    last_year = f"`{rig.name}_s2`"
    shards.run("s1", f"CREATE DATABASE {last_year}")
    shards.run("s1", f"CREATE TABLE {last_year}.t_7 ({ROW})")
    files = replace(shards.files(), schemas=(f"{rig.name}_s", f"{rig.name}_s2")).write()
    with TaskRun(files, rig.spark) as run:
        run.catch_up()
        if not restarts:
            shards.run("s1", f"DROP DATABASE {last_year}")
            run.catch_up()
    if restarts:
        shards.run("s1", f"DROP DATABASE {last_year}")
    with TaskRun(files, rig.spark) as run:
        for table in (0, 1):
            shards.insert("s1", table, 1)
        run.catch_up()
        for table in (0, 1):
            shards.alter("s1", table, "ADD COLUMN c INT")
            shards.insert("s1", table, 2, c="7")
        shards.settle(run)
        shards.alter("s1", 0, "DROP COLUMN c")
        shards.alter("s1", 1, "DROP COLUMN c")
        wait_until(lambda: shards.merged_rows() == shards.expected(), "the column is dropped")


def test_a_table_is_alone_after_its_shards_were_dropped_with_their_schema(rig: ShardRig) -> None:
    """Without `shard-mode` an ALTER of it is run."""
    route = {"schema-pattern": f"{rig.name}_s*", "table-pattern": "t_*"}
    shards = begun(rig, "", {**route, "target-schema": f"{rig.name}_all", "target-table": "t"}, tables=1)
    last_year = f"`{rig.name}_s2`"
    shards.run("s1", f"CREATE DATABASE {last_year}")
    shards.run("s1", f"CREATE TABLE {last_year}.t_7 ({ROW})")
    filters = {"kept": {"schema-pattern": f"{rig.name}_s2", "events": ["drop database"], "action": "Ignore"}}
    shards.keys, shards.instance = {**shards.keys, "filters": filters}, {**shards.instance, "filter-rules": ["kept"]}
    files = replace(shards.files(), schemas=(f"{rig.name}_s", f"{rig.name}_s2")).write()
    with TaskRun(files, rig.spark) as run:
        run.catch_up()
        shards.run("s1", f"DROP DATABASE {last_year}")
        shards.alter("s1", 0, "ADD COLUMN c INT")
        shards.insert("s1", 0, 1, c="7")
        run.catch_up()
        assert shards.merged_rows() == shards.expected()
