"""A writer that is frozen in a transaction on TiDB, which does not end its session: its heir does, and goes on.

The rows that the frozen one has locked come free when TiDB's locks run out, 20 s later. What it sends when it wakes is
refused by the receipts.
"""

from __future__ import annotations

import random
import signal
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from support.exactly_once import assert_exactly_once
from support.shard_processes import REFUSED, Process
from support.stopped_threads import Aside
from support.task_runs import TaskFiles, TaskRun
from support.waiting import wait_until
from unshard.errors import SyncError
from unshard.mysql.connection import rows
from unshard.mysql.target_session import IDLE_SECONDS
from unshard.retry import ATTEMPTS, pauses
from unshard.sync.checkpoint.store import CheckpointStore
from unshard.target import silent_sessions
from unshard.target.meta import MetaTables
from unshard.target.writer import writer
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.tidb_server import TidbServer
from unshard.testing.workload import Workload, WorkPlan

pytestmark = pytest.mark.server
LOCKS_LIVE_SECONDS = 20


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(silent_sessions, "IDLE_SECONDS", 1)


def test_the_heir_of_a_frozen_driver_goes_on_and_the_frozen_one_writes_nothing(tidb: TidbServer, schema: str) -> None:
    meta = MetaTables(schema, "task")
    store = CheckpointStore(tidb.endpoint, meta, "s1")
    store.claim()

    def stand_in_a_transaction(aside: Aside) -> None:
        def stand(_: Any) -> None:
            aside.begun.set()
            assert aside.goes_on.wait(600)

        store.in_one(stand)

    asleep = Aside(stand_in_a_transaction)
    assert asleep.begun.wait(60)
    heir = CheckpointStore(tidb.endpoint, meta, "s1")
    claims = Aside(lambda _: heir.claim())
    wait_until(lambda: not claims.thread.is_alive(), "it goes on, long before the other wakes")
    assert claims.join() is None
    asleep.goes_on.set()
    error = asleep.join()
    assert isinstance(error, SyncError), error
    assert error.code == "SYNC-001", error
    heir.in_one(lambda _: None)
    for one in (store, heir):
        one.drop()


def test_only_our_silent_sessions_are_ended(tidb: TidbServer, schema: str) -> None:
    tidb.run(
        f"CREATE DATABASE {schema}",
        f"CREATE TABLE {schema}.ours (id INT PRIMARY KEY)",
        f"CREATE DATABASE {schema}_theirs",
        f"CREATE TABLE {schema}_theirs.t (id INT PRIMARY KEY)",
    )
    ours, at_work, theirs, looks = (writer(tidb.endpoint) for _ in range(4))
    for connection, table in ((ours, "ours"), (at_work, "ours"), (theirs, "_theirs.t")):
        rows(connection, "BEGIN")
        name = f"{schema}.{table}" if table == "ours" else f"{schema}{table}"
        rows(connection, f"INSERT INTO {name} VALUES ({connection.thread_id() % 1000000})")

    def is_there(connection: Any) -> bool:
        asked = "SELECT 1 FROM information_schema.PROCESSLIST WHERE ID = %s"
        return bool(tidb.query(asked, (connection.thread_id(),)))

    def ended() -> bool:
        rows(at_work, "SELECT 1")
        silent_sessions.end_silent(looks, schema)
        return not is_there(ours)

    wait_until(ended, "the silent session is ended")
    assert is_there(at_work)
    assert is_there(theirs)
    for connection in (ours, at_work, theirs, looks):
        connection.close()


def test_an_heir_waits_for_longer_than_locks_live(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(random, "uniform", lambda low, high: (low + high) / 2)
    waits = ATTEMPTS * silent_sessions.CLAIM_WAIT_SECONDS + sum(islice(pauses(), ATTEMPTS - 1))
    assert waits > IDLE_SECONDS + LOCKS_LIVE_SECONDS


@pytest.fixture
def files(source_server: MariadbServer, tidb: TidbServer, schema: str, tmp_path: Path) -> TaskFiles:
    # the embedded store has a statement wait for all of that time, also for a lock that has run out meanwhile
    session = {"innodb_lock_wait_timeout": "3"}
    keys = {"target-database": {"host": "127.0.0.1", "port": tidb.port, "user": "root", "session": session}}
    syncer = {"compact": False, "batch": 20, "worker-count": 2}
    return TaskFiles(tmp_path, schema, {"s1": source_server}, tidb, (f"{schema}_1",), keys, syncer=syncer).write()


@pytest.mark.spark
@pytest.mark.recovery
@pytest.mark.parametrize("place", ["load-piece-commit", "sync-chunk-commit"])
def test_a_process_that_is_frozen_before_a_commit(
    place: str,
    source_server: MariadbServer,
    tidb: TidbServer,
    files: TaskFiles,
    schema: str,
    spark: SparkSession,
) -> None:
    work = Workload(source_server, WorkPlan(schema, threads=1, large_rows=100))
    work.create()
    work.fill(300)
    zombie = Process(files, "s1", 0, crash_at=place, crash_by="SIGSTOP")
    try:
        if place.startswith("sync"):
            wait_until(lambda: files.applied("s1") is not None, "it follows", told=lambda: zombie.text)
            work.run(transactions=20)
        wait_until(zombie.is_frozen, "frozen in a transaction", told=lambda: zombie.text)
        zombie.send_all(signal.SIGSTOP)
        with TaskRun(files, spark) as heir:
            heir.catch_up()
            work.run(transactions=20)
            wait_until(zombie.wakes_to_its_end, "the frozen one has ended", told=lambda: zombie.text)
            heir.catch_up()
        assert zombie.ended == REFUSED, zombie.text
        assert "SYNC-001" in zombie.text or "LOAD-007" in zombie.text, zombie.text
    finally:
        zombie.send_all(signal.SIGCONT)
        zombie.kill()
    assert_exactly_once(source_server, tidb, work.plan.names)
