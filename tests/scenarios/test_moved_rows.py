"""Rows that move under their key between shards while a sharding DDL waits: none is lost, or the task says so."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.operated_tasks import ctl, stopped_run
from support.shard_runs import Shards, ends_at
from support.task_runs import TaskRun
from unshard.errors import UnshardError
from unshard.testing.mariadb_server import MariadbServer

pytestmark = [pytest.mark.server, pytest.mark.spark]
HELD, FREE = 0, 1


def _at_least_once(shards: Shards) -> None:
    shards.keys = {"delivery": "at-least-once"}


def _safe_mode(shards: Shards) -> None:
    shards.syncer = {"safe-mode": True}


def _one_by_one(shards: Shards) -> None:
    shards.syncer = {"compact": False}


MODES = {"one-by-one": _one_by_one, "at-least-once": _at_least_once, "safe-mode": _safe_mode}
"""With the last two a row of the target is written over, and nobody is told."""


@pytest.fixture
def shards(source_server: MariadbServer, target_server: MariadbServer, schema: str, tmp_path: Path) -> Shards:
    return Shards(schema, {"s1": source_server}, target_server, tmp_path)


WIRES = {
    "plain": ((), ("BEGIN",), ("COMMIT",)),
    "xa": ((), ("XA START 'moves'",), ("XA END 'moves'", "XA PREPARE 'moves'", "XA COMMIT 'moves'")),
    "compressed": (
        ("SET GLOBAL log_bin_compress = 1", "SET GLOBAL log_bin_compress_min_len = 10"),
        ("BEGIN",),
        ("COMMIT",),
    ),
    "minimal": (("SET SESSION binlog_row_image = MINIMAL",), ("BEGIN",), ("COMMIT",)),
}
"""How the log has a transaction: what its session says before, how it begins and ends."""


def move(
    shards: Shards,
    number: int,
    there: int,
    to: int,
    *,
    first: str = "INSERT",
    v: str = "v",
    wire: str = "plain",
    late: bool = True,
) -> None:
    """The row goes over in one transaction, which begins with that; the shards may differ in a last column.

    `late`: where the INSERT is first, the old row is updated before it is deleted.
    """
    row = f"WHERE id = {shards.id('s1', HELD, number)}"
    copy = f"INSERT INTO {shards.at(to)} (id, v) SELECT id, {v} FROM {shards.at(there)} {row}"
    if first == "DELETE":
        server = shards.sources["s1"]
        ((id, text),) = server.query(f"SELECT id, {v} FROM {shards.at(there)} {row}")
        copy = f"INSERT INTO {shards.at(to)} (id, v) VALUES ({id}, '{text}')"
    update = [f"UPDATE {shards.at(there)} SET v = 'goes' {row}"] if first == "INSERT" and late else []
    steps = [copy, *update, f"DELETE FROM {shards.at(there)} {row}"]
    before, begin, end = WIRES[wire]
    shards.sources["s1"].run(*before, *begin, *(steps if first == "INSERT" else reversed(steps)), *end)
    if wire == "compressed":
        shards.sources["s1"].run("SET GLOBAL log_bin_compress = 0")


@pytest.mark.parametrize(
    ("mode", "wire"),
    [("one-by-one", "minimal"), ("at-least-once", "xa")],
)
def test_a_row_that_came_and_went_while_its_shard_was_held(
    mode: str, wire: str, shards: Shards, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the process ends in the re-sync, which leaves its INSERT, UPDATE and DELETE out."""
    MODES[mode](shards)
    files = shards.files()
    with TaskRun(files, spark) as run:
        run.reach("sync")
        run.catch_up()
        shards.alter("s1", HELD, "ADD COLUMN c INT")
        shards.insert("s1", HELD, 1, c="1")
        shards.update("s1", HELD, 1, "v = 'moves'")
        move(shards, 1, HELD, FREE, wire=wire)
        run.catch_up()
    shards.alter("s1", FREE, "ADD COLUMN c INT")
    shards.insert("s1", HELD, 2, c="2")
    place = "sync-close-before" if mode == "one-by-one" else "sync-move-before"
    assert ends_at(place, files, spark, monkeypatch)
    with TaskRun(files, spark) as run:
        shards.settle(run)


@pytest.mark.parametrize(("mode", "first"), [("at-least-once", "INSERT"), ("safe-mode", "DELETE")])
@pytest.mark.scenarios
def test_a_row_that_was_there_before(mode: str, first: str, shards: Shards, spark: SparkSession) -> None:
    """Its new row is written over the old one, which waits to be deleted; across a stop of the task too."""
    MODES[mode](shards)
    moved = f"WHERE id = {shards.id('s1', HELD, 0)}"
    with TaskRun(shards.files(), spark) as run:
        run.reach("sync")
        run.catch_up()
        shards.alter("s1", HELD, "ADD COLUMN c INT")
        move(shards, 0, HELD, FREE, first=first, v="'moved'")
        run.catch_up()
    with TaskRun(shards.files(), spark) as run:
        shards.run("s1", f"UPDATE {shards.at(FREE)} SET v = 'stays' {moved}")
        run.catch_up()
        shards.alter("s1", FREE, "ADD COLUMN c INT")
        shards.run("s1", f"UPDATE {shards.at(FREE)} SET c = 5 {moved}")
        shards.settle(run)


def test_a_row_that_moves_between_two_ddl(shards: Shards, spark: SparkSession) -> None:
    """It is found by the structures that its shards had then: the key has another place in each."""
    _at_least_once(shards)
    with TaskRun(shards.files(), spark) as run:
        run.reach("sync")
        run.catch_up()
        shards.alter("s1", HELD, "ADD COLUMN c INT FIRST")
        shards.alter("s1", HELD, "ADD COLUMN d INT FIRST")
        move(shards, 0, HELD, FREE, first="DELETE")
        run.catch_up()
        shards.alter("s1", FREE, "ADD COLUMN c INT FIRST")
        shards.insert("s1", FREE, 1, c="1")
        run.catch_up()
        shards.alter("s1", FREE, "ADD COLUMN d INT FIRST")
        shards.wait_in_step(run)
        query = "SELECT id, v, c, d FROM {} ORDER BY id"
        rows = [row for n in (HELD, FREE) for row in shards.sources["s1"].query(query.format(shards.at(n)))]
        assert list(shards.target.query(query.format(shards.merged))) == sorted(rows)


@pytest.mark.parametrize(
    ("mode", "first", "wire"),
    [
        ("exactly-once", "INSERT", "plain"),
        pytest.param("at-least-once", "INSERT", "compressed", marks=pytest.mark.scenarios),
        ("at-least-once", "INSERT", "xa"),
        ("safe-mode", "INSERT", "plain"),
        pytest.param("safe-mode", "DELETE", "plain", marks=pytest.mark.scenarios),
        ("one-by-one", "DELETE", "plain"),
    ],
)
def test_rows_that_move_between_two_shards_that_both_wait(
    mode: str,
    first: str,
    wire: str,
    source_server: MariadbServer,
    target_server: MariadbServer,
    schema: str,
    tmp_path: Path,
    spark: SparkSession,
) -> None:
    """One batch has all of each row's life; one row gets another key behind its move."""
    shards = Shards(schema, {"s1": source_server}, target_server, tmp_path, tables=3)
    if mode in MODES:
        MODES[mode](shards)
    with TaskRun(shards.files(), spark) as run:
        run.reach("sync")
        run.catch_up()
        for table in (0, 1):
            shards.alter("s1", table, "ADD COLUMN c INT")
        for number in (1, 2, 3):
            shards.insert("s1", 0, number, c="1")
        shards.update("s1", 0, 0, "v = 'moves'")
        for number in (0, 1, 2):
            move(shards, number, 0, 1, first=first, v="'moved'", wire=wire, late=number == 2)
        shards.run("s1", f"UPDATE {shards.at(1)} SET id = 77 WHERE id = {shards.id('s1', 0, 1)}")
        run.catch_up()
        shards.alter("s1", 2, "ADD COLUMN c INT")
        shards.settle(run)


@pytest.mark.parametrize("mode", ["exactly-once", "at-least-once"])
@pytest.mark.scenarios
def test_a_row_that_goes_to_a_held_shard_and_comes_back(mode: str, shards: Shards, spark: SparkSession) -> None:
    if mode in MODES:
        MODES[mode](shards)
    with TaskRun(shards.files(), spark) as run:
        run.reach("sync")
        run.catch_up()
        shards.alter("s1", FREE, "ADD COLUMN c INT")
        move(shards, 0, HELD, FREE, wire="compressed")
        run.catch_up()
        move(shards, 0, FREE, HELD, wire="compressed")
        run.catch_up()
        shards.alter("s1", HELD, "ADD COLUMN c INT")
        shards.settle(run)


@pytest.mark.scenarios
def test_the_task_stops_at_the_new_shard_and_gets_past_it(shards: Shards, spark: SparkSession) -> None:
    """Exactly once the free shard's INSERT meets the old row, and is not written over it."""
    files = shards.files()
    with TaskRun(files, spark) as run:
        run.catch_up()
        shards.alter("s1", HELD, "ADD COLUMN c INT")
        run.catch_up()
    move(shards, 0, HELD, FREE)
    error = stopped_run(files, spark)
    assert isinstance(error, UnshardError)
    assert error.code == "SHARD-035", error
    lock, table = f"{shards.name}-`{shards.name}_all`.`t`", f"{shards.name}_s.t_{HELD} of s1"
    assert lock in str(error), error
    assert table in str(error), error
    assert "binlog skip" in str(error), error
    ctl("binlog", "skip", str(files.task_path), "-s", "s1")
    with TaskRun(files, spark) as run:
        shards.alter("s1", FREE, "ADD COLUMN c INT")
        _others_arrive(shards, run, 0)


@pytest.mark.parametrize("change", ["both have it", "its key is given away"])
def test_what_no_order_puts_right_stops_the_task(change: str, shards: Shards, spark: SparkSession) -> None:
    _safe_mode(shards)
    files, row = shards.files(), f"WHERE id = {shards.id('s1', HELD, 0)}"
    with TaskRun(files, spark) as run:
        run.catch_up()
        shards.alter("s1", HELD, "ADD COLUMN c INT")
        if change == "both have it":
            shards.update("s1", HELD, 0, "c = 1")
        else:
            shards.run("s1", f"UPDATE {shards.at(HELD)} SET id = 5 {row}")
        shards.run("s1", f"INSERT INTO {shards.at(FREE)} (id, v) VALUES ({shards.id('s1', HELD, 0)}, 'twice')")
        run.catch_up()
    shards.alter("s1", FREE, "ADD COLUMN c INT")
    error = stopped_run(files, spark)
    assert isinstance(error, UnshardError)
    assert error.code == "SHARD-031", error
    assert f"{shards.name}_s.t_{HELD}" in str(error), error
    ctl("binlog", "skip", str(files.task_path), "-s", "s1")
    with TaskRun(files, spark) as run:
        _others_arrive(shards, run, 0, 5)


@pytest.mark.scenarios
def test_shards_get_other_names_while_one_is_held(shards: Shards, spark: SparkSession) -> None:
    """What a shard does to its own rows under its new name is no move, and one to a shard's old name is."""
    with TaskRun(shards.files(), spark) as run:
        run.reach("sync")
        run.catch_up()
        shards.alter("s1", HELD, "ADD COLUMN c INT")
        for number in (1, 2, 3):
            shards.insert("s1", HELD, number, c="1")
        move(shards, 1, HELD, FREE)
        shards.run("s1", f"RENAME TABLE {shards.at(FREE)} TO {shards.at(5)}, {shards.at(HELD)} TO {shards.at(FREE)}")
        shards.run("s1", f"DELETE FROM {shards.at(FREE)} WHERE id = {shards.id('s1', HELD, 2)}")
        shards.run("s1", f"UPDATE {shards.at(FREE)} SET id = 7 WHERE id = {shards.id('s1', HELD, 3)}")
        run.catch_up()
        shards.run("s1", f"ALTER TABLE {shards.at(5)} ADD COLUMN c INT")
        shards.settle(run)


@pytest.mark.scenarios
def test_a_row_that_moved_to_a_shard_which_is_gone(shards: Shards, spark: SparkSession) -> None:
    """Rows of a shard that is dropped stay in the target; its next life has another structure."""
    _at_least_once(shards)
    with TaskRun(shards.files(), spark) as run:
        run.reach("sync")
        run.catch_up()
        shards.alter("s1", HELD, "ADD COLUMN c INT FIRST")
        move(shards, 0, HELD, FREE)
        moved = [(id, v, None) for id, v in shards.sources["s1"].query(f"SELECT id, v FROM {shards.at(FREE)}")]
        shards.run("s1", f"DROP TABLE {shards.at(FREE)}")
        shards.run("s1", f"CREATE TABLE {shards.at(FREE)} LIKE {shards.at(HELD)}")
        shards.insert("s1", FREE, 1, c="1")
        shards.insert("s1", HELD, 1, c="2")
        shards.wait_in_step(run)
        query = "SELECT id, v, c FROM {} ORDER BY id"
        rows = [row for n in (HELD, FREE) for row in shards.sources["s1"].query(query.format(shards.at(n)))]
        assert list(shards.target.query(query.format(shards.merged))) == sorted(rows + moved)


@pytest.mark.scenarios
def test_a_ddl_that_changes_the_key_itself(shards: Shards, spark: SparkSession) -> None:
    """That no row has moved is told by what both keys have; else nobody can tell whether it is one row."""
    _at_least_once(shards)
    files, change = shards.files(), "ADD COLUMN {} INT NOT NULL DEFAULT 0, DROP PRIMARY KEY, ADD PRIMARY KEY ({})"
    with TaskRun(files, spark) as run:
        run.catch_up()
        shards.alter("s1", HELD, change.format("c", "id, c"))
        shards.insert("s1", HELD, 1, c="1")
        shards.insert("s1", FREE, 1)
        shards.alter("s1", FREE, change.format("c", "id, c"))
        shards.settle(run)
        shards.alter("s1", HELD, change.format("d", "id, c, d"))
        move(shards, 0, HELD, FREE)
        run.catch_up()
    shards.alter("s1", FREE, change.format("d", "id, c, d"))
    error = stopped_run(files, spark)
    assert isinstance(error, UnshardError)
    assert error.code == "SHARD-032", error
    place = str(error.where.position)
    assert f"--binlog-pos {place}" in str(error), error
    ctl("binlog", "skip", str(files.task_path), "-s", "s1", "--binlog-pos", place)
    with TaskRun(files, spark) as run:
        _others_arrive(shards, run, 0)


def _others_arrive(shards: Shards, run: TaskRun, *numbers: int) -> None:
    """All but the rows of these numbers, which a human is to put right."""
    shards.insert("s1", FREE, 2, c="2")
    shards.wait_in_step(run)
    moved = [shards.id("s1", HELD, number) for number in numbers]
    rows = [row for row in shards.expected() if row[0] not in moved]
    assert [row for row in shards.merged_rows() if row[0] not in moved] == rows


@pytest.mark.scenarios
def test_a_row_that_moves_to_a_shard_that_is_copied_later(shards: Shards, spark: SparkSession) -> None:
    """Both copies have it. The load says so and stops, and writes one over the other where it is told to."""
    shards.insert("s1", 0, 7)
    with shards.copied_late("s1", 1, moves=7) as let:
        run = TaskRun(shards.files(), spark).start()
        let(run)
        error = run.error()
    assert isinstance(error, UnshardError)
    assert error.code == "LOAD-005"
    shards.keys = {"loaders": {"own": {"dir": str(shards.folder / "dump"), "on-duplicate-logical": "replace"}}}
    with TaskRun(shards.files(), spark) as run:
        shards.settle(run)
