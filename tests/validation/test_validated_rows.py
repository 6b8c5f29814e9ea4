"""Rows that differ are found while the task runs, and are resolved once they are right."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from threading import Event

import pytest
from pyspark.sql import SparkSession

from support.task_runs import TaskRun
from support.validated_tasks import HeldLooks, ValidationRecords, validated, validators_of
from support.waiting import wait_until
from unshard.compare.executor.changed import look_first
from unshard.compare.executor.look import look_again
from unshard.compare.executor.rows import LOCKED
from unshard.compare.sides import SourceSide
from unshard.target.validation import pending_size
from unshard.target.validation_errors import ErrorKind, ErrorState
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.throwaway_server import ThrowawayServer

pytestmark = [pytest.mark.server, pytest.mark.spark]


@pytest.fixture
def stocked(database: str, source_server: MariadbServer) -> str:
    source_server.run(
        f"CREATE TABLE {database}.t (id INT PRIMARY KEY, v INT, w VARCHAR(20))",
        f"INSERT INTO {database}.t VALUES (1, 1, 'a'), (2, 2, 'b'), (3, 3, 'c'), (4, 4, 'd')",
    )
    return database


@pytest.mark.scenarios
def test_many_small_batches_are_looked_at_together(
    stocked: str, source_server: MariadbServer, target_server: ThrowawayServer, spark: SparkSession, tmp_path: Path
) -> None:
    """Batches come faster than looks; a look takes all that wait, and each key once."""
    files = validated(tmp_path, stocked, {"s1": source_server}, target_server)
    records = ValidationRecords(files)
    run = TaskRun(files, spark)
    held = HeldLooks(run)
    first_looks: list[int] = []
    with run:
        run.reach("sync")
        run.catch_up()
        records.settled()
        (validator,) = validators_of(run)
        own_run = validator.run

        def counted(payloads: Sequence[bytes], task: Callable[[bytes], bytes], *, barrier: bool = False) -> list[bytes]:
            if task is look_first:
                first_looks.append(len(payloads))
            return own_run(payloads, task, barrier=barrier)

        with held:
            for number in range(12):
                source_server.run(f"UPDATE {stocked}.t SET v = {100 + number}")
                run.catch_up()
            target_server.run(f"UPDATE {stocked}.t SET w = 'x' WHERE id = 2")
            waiting = records.ask(lambda c: pending_size(c, records.meta, "s1"))
            assert waiting.unseen >= 40, "four keys of each batch, but for those that a look has in hand"
            validator.run, validator._first = counted, None
        (found,) = records.new_errors(1)
        assert (found.key, found.columns) == (("2",), ("w",))
        assert len(first_looks) <= 2, "one for all that waited, and one for what was in hand"
        target_server.run(f"UPDATE {stocked}.t SET w = 'b' WHERE id = 2")
        records.new_errors(0)
        records.settled()


def test_a_row_that_differs_is_found_and_resolves_itself(
    stocked: str, source_server: MariadbServer, target_server: ThrowawayServer, spark: SparkSession, tmp_path: Path
) -> None:
    files = validated(tmp_path, stocked, {"s1": source_server}, target_server)
    records = ValidationRecords(files)
    run = TaskRun(files, spark)
    held = HeldLooks(run)
    with run:
        run.reach("sync")
        run.catch_up()
        records.settled()
        with held:
            source_server.run(
                f"UPDATE {stocked}.t SET v = v + 10 WHERE id < 4", f"DELETE FROM {stocked}.t WHERE id = 4"
            )
            run.catch_up()
            target_server.run(
                f"UPDATE {stocked}.t SET w = 'x' WHERE id = 1",
                f"DELETE FROM {stocked}.t WHERE id = 2",
                f"INSERT INTO {stocked}.t VALUES (4, 4, 'd')",
            )
        found = {one.key: one for one in records.new_errors(3)}
        assert (found[("1",)].kind, found[("1",)].columns) == (ErrorKind.CHANGED, ("w",))
        assert found[("1",)].row == {"id": "1", "v": "11", "w": "a"}
        assert found[("1",)].found == {"id": "1", "v": "11", "w": "x"}
        assert (found[("2",)].kind, found[("2",)].found) == (ErrorKind.MISSING, None)
        assert (found[("4",)].kind, found[("4",)].row) == (ErrorKind.EXTRA, None)
        assert found[("4",)].place == str(files.applied("s1"))
        target_server.run(
            f"UPDATE {stocked}.t SET w = 'a' WHERE id = 1", f"INSERT INTO {stocked}.t VALUES (2, 12, 'b')"
        )
        (left,) = records.new_errors(1)
        assert left.key == ("4",)
        with held:  # what is right meanwhile is resolved too, and a row that differs anew is a new error
            source_server.run(f"UPDATE {stocked}.t SET v = 0 WHERE id = 1")
            run.catch_up()
            target_server.run(f"DELETE FROM {stocked}.t WHERE id IN (1, 4)")
        wait_until(lambda: [one.key for one in records.errors(ErrorState.NEW)] == [("1",)], "new", told=records.told)
        (anew,) = records.errors(ErrorState.NEW)
        assert (anew.times, anew.kind) == (2, ErrorKind.MISSING)
        resolved = records.errors(ErrorState.RESOLVED)
        assert {one.key: one.settled_by for one in resolved} == {("2",): "a later look", ("4",): "a later look"}


def test_rows_that_are_right_or_do_not_change_are_no_errors(
    stocked: str, source_server: MariadbServer, target_server: ThrowawayServer, spark: SparkSession, tmp_path: Path
) -> None:
    files = validated(tmp_path, stocked, {"s1": source_server}, target_server)
    records = ValidationRecords(files)
    with TaskRun(files, spark) as run:
        run.reach("sync")
        run.catch_up()
        records.settled()
        target_server.run(f"UPDATE {stocked}.t SET w = 'x' WHERE id = 1")
        for number in range(20):
            source_server.run(f"UPDATE {stocked}.t SET v = {number} WHERE id = 2")
        run.catch_up()
        records.settled()
        assert records.errors() == []
        assert records.statuses()[0][2:] == ("Running", "")


def test_a_restart_loses_no_key_and_no_error(
    stocked: str, source_server: MariadbServer, target_server: ThrowawayServer, spark: SparkSession, tmp_path: Path
) -> None:
    files = validated(tmp_path, stocked, {"s1": source_server}, target_server)
    records = ValidationRecords(files)
    run = TaskRun(files, spark)
    held = HeldLooks(run)
    with run:
        run.reach("sync")
        run.catch_up()
        records.settled()
        with held:
            source_server.run(f"UPDATE {stocked}.t SET v = 7 WHERE id = 1")
            run.catch_up()
            target_server.run(f"DELETE FROM {stocked}.t WHERE id = 1")
        records.new_errors(1)
        with held:
            source_server.run(f"UPDATE {stocked}.t SET v = 8 WHERE id = 2")
            run.catch_up()
            target_server.run(f"DELETE FROM {stocked}.t WHERE id = 2")
            run.crew.stop.set()
    assert records.ask(lambda c: pending_size(c, records.meta, "s1")).rows >= 1
    target_server.run(f"INSERT INTO {stocked}.t VALUES (1, 7, 'a')")
    with TaskRun(files, spark):
        wait_until(lambda: [one.key for one in records.errors(ErrorState.NEW)] == [("2",)], "found", told=records.told)
        (resolved,) = records.errors(ErrorState.RESOLVED)
        assert resolved.key == ("1",)


def test_batches_applied_before_the_validators_first_round_are_judged(
    stocked: str, source_server: MariadbServer, target_server: ThrowawayServer, spark: SparkSession, tmp_path: Path
) -> None:
    files = validated(tmp_path, stocked, {"s1": source_server}, target_server)
    records = ValidationRecords(files)
    with TaskRun(files, spark) as run:
        run.reach("sync")
        run.catch_up()
        records.settled()
    source_server.run(f"UPDATE {stocked}.t SET v = 7 WHERE id = 1")
    run = TaskRun(files, spark)
    (validator,), released = validators_of(run), Event()
    own_side = validator.side

    def side() -> SourceSide:
        released.wait()
        return own_side()

    validator.side = side  # which the first round of the validator's thread asks for
    with run:
        try:
            run.reach("sync")
            run.catch_up()
            target_server.run(f"UPDATE {stocked}.t SET w = 'x' WHERE id = 1")
        finally:
            released.set()
        records.settled()
        (found,) = records.errors(ErrorState.NEW)
        assert (found.key, found.columns) == (("1",), ("w",))


@pytest.mark.parametrize("side", [pytest.param("source", marks=pytest.mark.scenarios), "target"])
def test_a_row_that_differs_is_found_after_its_table_was_locked(
    side: str,
    stocked: str,
    source_server: MariadbServer,
    target_server: ThrowawayServer,
    spark: SparkSession,
    tmp_path: Path,
) -> None:
    """It is locked when the row is looked at again, for longer than a statement waits."""
    files = validated(tmp_path, stocked, {"s1": source_server}, target_server)
    records = ValidationRecords(files)
    run = TaskRun(files, spark)
    (validator,) = validators_of(run)
    own_run, spoilt, locked = validator.run, Event(), Event()
    server = source_server if side == "source" else target_server
    with closing(server.connection()) as locker:

        def run_behind_a_lock(
            payloads: Sequence[bytes], task: Callable[[bytes], bytes], *, barrier: bool = False
        ) -> list[bytes]:
            if task is look_again and spoilt.is_set() and not locked.is_set():
                locked.set()
                locker.query(f"LOCK TABLES {stocked}.t WRITE")
            return own_run(payloads, task, barrier=barrier)

        def tells_of_the_lock() -> bool:
            reading = validator.reading()
            return reading is not None and reading.fault is not None and reading.fault.code == LOCKED

        validator.run = run_behind_a_lock
        held = HeldLooks(run)
        with run:
            run.reach("sync")
            run.catch_up()
            records.settled()
            with held:
                source_server.run(f"UPDATE {stocked}.t SET v = 7 WHERE id = 1")
                run.catch_up()
                target_server.run(f"UPDATE {stocked}.t SET w = 'x' WHERE id = 1")
                spoilt.set()
            try:
                wait_until(tells_of_the_lock, "the lock is told", told=records.told)
            finally:
                locker.query("UNLOCK TABLES")
            records.settled()
            (found,) = records.errors(ErrorState.NEW)
            assert (found.key, found.columns) == (("1",), ("w",))
