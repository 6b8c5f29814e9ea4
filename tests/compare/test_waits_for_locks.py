"""`unshard compare` of tables that somebody has locked: the wait is told, and ends."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from support.comparisons import compared, compared_and_told
from support.task_runs import TaskFiles
from support.waiting import wait_until
from unshard.cli.compare_subject import CompareWish
from unshard.compare import chase, lock_patience
from unshard.compare.executor import rows as reading
from unshard.compare.executor.rows import locked_error
from unshard.compare.lock_patience import LockPatience
from unshard.compare.result import CompareVerdict, ComparisonOutcome
from unshard.errors import Where, disclose
from unshard.testing.throwaway_server import ThrowawayServer

LOCKED = "COMPARE-026"
TOLD_IN_SECONDS = 30.0


@pytest.fixture
def files(files: TaskFiles, schema: str) -> TaskFiles:
    """Table `t`, which tests lock, and `u` behind it; the same rows on both ends."""
    for server in (files.sources["s1"], files.target):
        server.run(
            f"USE {schema}",
            "CREATE TABLE t (id INT PRIMARY KEY, v INT)",
            "CREATE TABLE u LIKE t",
            *(f"INSERT INTO {name} VALUES (1, 1), (2, 2), (3, 3)" for name in "tu"),
        )
    return files


def server_of(files: TaskFiles, side: str) -> ThrowawayServer:
    return files.sources["s1"] if side == "source" else files.target


@pytest.mark.server
@pytest.mark.parametrize("side", ["source", "target"])
@pytest.mark.parametrize("chunk_rows", [0, pytest.param(1, marks=pytest.mark.scenarios)])
def test_a_wait_is_told_and_the_comparison_goes_on_once_the_lock_is_gone(
    files: TaskFiles, side: str, chunk_rows: int
) -> None:
    (schema,), server = files.schemas, server_of(files, side)
    lines: list[str] = []

    def compare() -> ComparisonOutcome:
        return compared_and_told(files, None, lines.append, chunk_rows=chunk_rows)

    def told() -> list[str]:
        return [line for line in lines if f"{schema}.t" in line and "lock" in line]

    with ThreadPoolExecutor(1) as threads:
        with closing(server.connection()) as connection, connection.cursor() as cursor:
            cursor.execute(f"LOCK TABLES {schema}.t WRITE")
            found = threads.submit(compare)
            try:
                wait_until(lambda: bool(told()), "the wait is told", TOLD_IN_SECONDS, lambda: str(lines))
            finally:
                cursor.execute("UNLOCK TABLES")
        outcome = found.result()
    assert f"{side} 127.0.0.1:{server.port}" in told()[0]
    assert outcome.exit_code == 0, outcome.to_dict()


@pytest.mark.server
@pytest.mark.parametrize("side", ["source", "target"])
@pytest.mark.parametrize("chunk_rows", [0, pytest.param(1, marks=pytest.mark.scenarios)])
def test_a_lock_that_stays_is_an_error_of_its_table(
    files: TaskFiles, side: str, chunk_rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rest of the table is left then, and other tables are compared."""
    monkeypatch.setattr(reading, "TABLE_LOCK_SECONDS", 1)
    monkeypatch.setattr(lock_patience, "LOCK_SECONDS", 3.0)
    (schema,), server = files.schemas, server_of(files, side)
    with closing(server.connection()) as connection, connection.cursor() as cursor:
        cursor.execute(f"LOCK TABLES {schema}.t WRITE")
        mend = files.folder / "mend.sql"
        found = compared(files, None, CompareWish(sql=mend), chunk_rows=chunk_rows)
    locked, free = found.tables
    assert [error.code for error in locked.errors] == [LOCKED], locked.to_dict()
    (error,) = locked.errors
    assert error.message == (
        f"the {side} 127.0.0.1:{server.port} has {schema}.t locked, and its rows could not be read for 3 s"
    )
    assert "1205" in error.cause
    assert (locked.verdict, free.verdict) == (CompareVerdict.UNKNOWN, CompareVerdict.EQUAL)
    assert found.exit_code == 2


@pytest.mark.server
def test_an_alter_table_that_waits_for_a_transaction_is_such_a_lock(
    files: TaskFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "TABLE_LOCK_SECONDS", 1)
    monkeypatch.setattr(lock_patience, "LOCK_SECONDS", 3.0)
    (schema,), server = files.schemas, files.target
    waits = "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE INFO LIKE 'ALTER%' AND STATE LIKE '%lock%'"
    with ThreadPoolExecutor(1) as threads, closing(server.connection()) as reader, reader.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute(f"SELECT * FROM {schema}.t")
        altered = threads.submit(server.run, f"ALTER TABLE {schema}.t ADD w INT")
        try:
            wait_until(lambda: server.query(waits) == [(1,)], "the ALTER waits")
            found = compared(files, None)
        finally:
            reader.rollback()
        altered.result()
    assert [error.code for error in found.tables[0].errors] == [LOCKED], found.to_dict()


@pytest.mark.server
def test_a_table_that_is_locked_while_rows_are_looked_at_again(
    files: TaskFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "TABLE_LOCK_SECONDS", 1)
    monkeypatch.setattr(lock_patience, "LOCK_SECONDS", 3.0)
    (schema,) = files.schemas
    files.target.run(f"DELETE FROM {schema}.t WHERE id = 2", f"DELETE FROM {schema}.u WHERE id = 2")
    look = chase.KeyChase.look
    with closing(files.sources["s1"].connection()) as connection, connection.cursor() as cursor:

        def look_behind_a_lock(self: chase.KeyChase, *args: object) -> None:
            cursor.execute(f"LOCK TABLES {schema}.t WRITE")
            look(self, *args)  # type: ignore[arg-type]

        monkeypatch.setattr(chase.KeyChase, "look", look_behind_a_lock)
        found = compared(files, None)
    locked, free = found.tables
    assert [error.code for error in locked.errors] == [LOCKED], locked.to_dict()
    assert (locked.verdict, free.verdict) == (CompareVerdict.UNKNOWN, CompareVerdict.DIFFERENT)


def test_tasks_are_run_again_only_while_there_is_patience() -> None:
    assert reading.TABLE_LOCK_SECONDS <= 5
    now = [1_000.0]
    ran: list[list[bytes]] = []
    lines: list[str] = []
    error = locked_error("source", "db:3306", Where("s1", "a.t"), "1205: Lock wait timeout exceeded")

    def run(payloads: Sequence[bytes], task: Callable[[bytes], bytes], *, barrier: bool = False) -> list[bytes]:
        now[0] += 5.0
        ran.append(list(payloads))
        return [task(one) for one in payloads]

    def task(payload: bytes) -> bytes:
        locked = payload == b"locked" or (payload == b"late" and len(ran) < 3)
        return json.dumps({"error": error.to_dict()} if locked else {"value": payload.decode()}).encode()

    patience = LockPatience(run, lines.append, lambda: False, seconds=20.0, clock=lambda: now[0])
    assert [disclose(one) for one in patience([b"late", b"free"], task)] == ["late", "free"]
    assert ran == [[b"late", b"free"], [b"late"], [b"late"]]
    assert len(lines) == 2
    assert "a.t" in lines[0]
    assert "source db:3306" in lines[0]

    ran[:] = [[], [], []]
    patience([b"locked", b"free"], task)
    assert len(ran) - 3 <= 5
    assert now[0] <= 1_000.0 + 15 + 30
    ran[:] = [[], [], []]
    patience([b"locked"], task)
    assert len(ran) - 3 == 1  # it has been waited for
