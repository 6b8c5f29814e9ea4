"""Optimistic mode under SIGKILL, and under random statements, rows, stops and starts: no row is lost."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.optimistic_runs import has_columns, holds, in_step, merged_rows, optimistic, upstream_rows, write
from support.seeds import seeds
from support.shard_rig import ShardRig
from support.shard_runs import ends_at, take_out
from support.task_runs import Command, TaskRun
from support.waiting import wait_until
from unshard.testing.mariadb_server import MariadbServer

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.recovery]

KILLS = ("ddl-execute-after", "sync-chunk-commit:1", "sync-move-after:2", "sync-close-before:1")
PATH = (
    "ADD COLUMN c INT NOT NULL DEFAULT 5",
    "ADD COLUMN d VARCHAR(9) NOT NULL",
    "MODIFY v VARCHAR(40) NOT NULL",
    "ADD KEY by_v (v), ADD COLUMN e DECIMAL(9,2)",
    "CHANGE v w VARCHAR(40) NOT NULL",
    "DROP COLUMN c",
    "ADD COLUMN c VARCHAR(9) NOT NULL DEFAULT 'new'",
    "MODIFY w VARCHAR(50)",
    "DROP KEY by_v",
    "DROP COLUMN d",
    "ADD UNIQUE KEY one (id, w)",
)


@pytest.fixture
def rig(
    schema: str,
    source_server: MariadbServer,
    second_source: MariadbServer,
    target_server: MariadbServer,
    tmp_path: Path,
    spark: SparkSession,
) -> ShardRig:
    return ShardRig(schema, {"s1": source_server, "s2": second_source}, target_server, tmp_path, spark)


@pytest.mark.faults
def test_every_death_leaves_all_rows(rig: ShardRig) -> None:
    shards = optimistic(rig, syncer={"batch": 2, "checkpoint-flush-interval": 600})
    with rig.run(shards) as run:
        run.catch_up()
    for number, place in enumerate(KILLS):
        for source, table in shards.shards:
            shards.alter(source, table, f"ADD COLUMN c_{number} INT NOT NULL DEFAULT {number}")
            shards.insert(source, table, 10 + number, **{f"c_{number}": "7"})
        if number:
            for source, table in shards.shards:
                shards.alter(source, table, f"DROP COLUMN c_{number - 1}")
        with Command(shards.files(), crash_at=place) as command:
            command.dies(place)
    with rig.run(shards) as run:
        has_columns(run, shards, "id", "v", f"c_{len(KILLS) - 1}")
        in_step(run, shards)


@pytest.mark.storms
def test_random_statements_rows_stops_and_starts(rig: ShardRig) -> None:
    """Of fixed seeds, or those that the environment asks for (`support.seeds`); a finding tells its seed."""
    for seed in seeds((1, 2, 3)):
        try:
            lives(replace(rig, name=f"{rig.name}_{seed}", folder=rig.folder / str(seed)), seed)
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise


def lives(rig: ShardRig, seed: int) -> None:
    """All shards go through `PATH`, each at its own time, under a task that is stopped and started."""
    chosen = random.Random(seed)
    shards = optimistic(rig, syncer={"batch": 3})
    at = dict.fromkeys(shards.shards, 0)
    numbers = dict.fromkeys(shards.shards, 0)
    run: TaskRun | None = rig.run(shards).start()
    assert run is not None
    run.catch_up()
    while any(place < len(PATH) for place in at.values()):
        shard = chosen.choice(list(at))
        for _ in range(chosen.randint(0, 3)):
            numbers[shard] += 1
            write(shards, *shard, numbers[shard])
        if at[shard] < len(PATH) and chosen.random() < 0.6:
            shards.alter(*shard, PATH[at[shard]])
            at[shard] += 1
        if chosen.random() < 0.15:
            if run is not None:
                run.stop()
                run = None
            else:
                run = rig.run(shards).start()
    if run is not None:
        run.stop()
    with rig.run(shards) as last:

        def equal() -> bool:
            if last.crew.errors:
                raise last.crew.errors[0]
            return holds(shards, {}) and not shards.held()

        def told() -> str:
            return f"{merged_rows(shards)}\n{upstream_rows(shards)}\n" + "\n".join(map(str, last.crew.readings()))

        wait_until(equal, "the rows of all shards", told=told)
        names = {row[0] for row in shards.target.query(f"SHOW COLUMNS FROM {shards.merged}")}
        assert names == {"id", "w", "e", "c"}


def test_the_next_source_goes_on_with_the_change_of_one_that_is_taken_out(
    rig: ShardRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It dies before the target has the change, and behind it; it comes back, and goes on where it was."""
    shards = optimistic(rig)
    files = shards.files()
    rest = replace(files, sources={"s2": rig.servers["s2"]})
    with TaskRun(files, rig.spark) as run:
        run.catch_up()
    for number, place in enumerate(("ddl-execute-before", "ddl-execute-after")):
        change = f"ADD COLUMN c_{number} INT NOT NULL DEFAULT 7"

        def meet(run: TaskRun, change: str = change, number: int = number) -> None:
            shards.alter("s1", 0, change)
            shards.insert("s1", 0, number + 1)

        assert ends_at(place, files.write(), rig.spark, monkeypatch, meet), place
        take_out(files, "s1")
        shards.alter("s2", 1, change)
        shards.insert("s2", 1, number + 1)
        with TaskRun(rest.write(), rig.spark) as run:
            has_columns(run, shards, "id", "v", *(f"c_{one}" for one in range(number + 1)))
            run.catch_up()
        with TaskRun(files.write(), rig.spark) as run:
            in_step(run, shards, {f"c_{number}": 7})
    for source, table in shards.shards:
        if (source, table) not in (("s1", 0), ("s2", 1)):
            shards.alter(source, table, "ADD COLUMN c_0 INT NOT NULL DEFAULT 7, ADD COLUMN c_1 INT NOT NULL DEFAULT 7")
    with TaskRun(files, rig.spark) as run:
        in_step(run, shards)


@pytest.mark.faults
def test_deaths_in_the_copy_of_shards_that_differ(rig: ShardRig) -> None:
    shards = optimistic(rig)
    for number, shard in enumerate(shards.shards):
        shards.alter(*shard, f"ADD COLUMN c_{number} INT NOT NULL DEFAULT {number}")
    files = shards.files()
    for place in ("load-piece-commit", "load-finish-before", "subtask-loaded"):
        with Command(files, crash_at=place) as command:
            command.dies(place)
        shards.insert(*shards.shards[-1], len(place), c_3="9")
    with TaskRun(files, rig.spark) as run:
        in_step(run, shards, {f"c_{number}": number for number in range(4)})
