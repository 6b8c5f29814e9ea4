"""A DDL on TiDB runs once: its job outlives the process, the session and the server that began it."""

from __future__ import annotations

import os
import secrets
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import MySQLdb
import pytest
from pyspark.sql import SparkSession

from support.shard_processes import REFUSED, Process
from support.task_runs import Command, TaskFiles, TaskRun
from support.waiting import wait_until
from unshard.errors import DdlError, SyncError
from unshard.model.table import TableName
from unshard.mysql.connection import rows
from unshard.target.ddl_jobs import TidbDdl, source_mark
from unshard.target.meta import MetaTables
from unshard.target.receipts import claim
from unshard.target.waits import standstill
from unshard.target.writer import writer
from unshard.testing.compare import assert_equal
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.tidb_server import TidbServer

pytestmark = pytest.mark.server

ROWS = 60_000


@pytest.fixture(scope="module")
def tidb() -> Iterator[TidbServer]:
    """A TiDB of this module's own: it is killed."""
    with TidbServer() as server:
        yield server


@contextmanager
def in_use(server: TidbServer, table: str) -> Iterator[None]:
    """A transaction has read the table: a job on it does not come to its end meanwhile, however quick it is."""
    connection = server.connection()
    try:
        rows(connection, "BEGIN")
        rows(connection, f"SELECT * FROM {table} LIMIT 1")
        yield
    finally:
        with suppress(MySQLdb.Error):  # the server may have been killed
            connection.close()


@dataclass
class Place:
    """A table that an index takes seconds on, and the DDL of the source that has claimed it."""

    server: TidbServer
    schema: str
    ddl: TidbDdl
    word: str = field(default_factory=lambda: secrets.token_hex(8))

    @property
    def statement(self) -> str:
        return f"ALTER TABLE `{self.schema}`.`t` ADD INDEX iv (v), ADD INDEX iw (w)"

    def jobs(self) -> list[str]:
        """The states of all jobs of the source, in their order."""
        mark = source_mark(self.ddl.meta, self.ddl.source)
        found = self.server.query(
            "SELECT STATE FROM information_schema.DDL_JOBS WHERE JOB_TYPE NOT LIKE '%%subjob%%' AND QUERY LIKE %s"
            " ORDER BY JOB_ID",
            (f"%{mark}%",),
        )
        return [str(state) for (state,) in found]

    def indexes(self) -> set[str]:
        found = self.server.query(
            "SELECT DISTINCT INDEX_NAME FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = %s", (self.schema,)
        )
        return {str(name) for (name,) in found} - {"PRIMARY"}

    def begin(self) -> tuple[threading.Thread, list[BaseException]]:
        """Run the statement in a thread; return once its job is under way. With what the thread fails with."""
        failed: list[BaseException] = []

        def run() -> None:
            try:
                self.ddl.run(self.word, self.statement)
            except (MySQLdb.Error, DdlError) as error:
                failed.append(error)

        thread = threading.Thread(target=run)
        with in_use(self.server, f"{self.schema}.t"):
            thread.start()
            wait_until(lambda: "running" in self.jobs(), "the job runs")
        return thread, failed

    def again(self) -> TidbDdl:
        """The DDL of the same owner on a new connection."""
        return replace(self.ddl, connection=writer(self.server.endpoint))


@pytest.fixture
def place(tidb: TidbServer, schema: str) -> Iterator[Place]:
    tidb.run(
        f"CREATE DATABASE {schema}",
        f"CREATE TABLE {schema}.t (id INT PRIMARY KEY AUTO_INCREMENT, v INT, w VARCHAR(60))",
        f"INSERT INTO {schema}.t (v, w) VALUES {','.join(f'({n}, REPEAT(CHAR(65), 50))' for n in range(1000))}",
    )
    while tidb.query(f"SELECT COUNT(*) FROM {schema}.t")[0][0] < ROWS:
        tidb.run(f"INSERT INTO {schema}.t (v, w) SELECT v, w FROM {schema}.t LIMIT 30000")
    connection = writer(tidb.endpoint)
    meta = MetaTables(f"meta_{schema}", "task")
    meta.create(connection)
    yield Place(tidb, schema, TidbDdl(connection, meta, "s1", claim(connection, meta, "s1").epoch))
    with suppress(MySQLdb.Error):
        connection.close()
    tidb.run(f"DROP DATABASE {schema}", f"DROP DATABASE meta_{schema}")


def test_a_job_goes_on_without_its_client_and_is_found_again(place: Place) -> None:
    wire = wire_of(place.ddl.connection)
    thread, failed = place.begin()
    wire.shutdown(socket.SHUT_RDWR)
    thread.join()
    wire.close()
    assert failed
    assert not isinstance(failed[0], DdlError)
    told: list[str] = []
    assert replace(place.again(), tell=told.append).was_done(place.word)
    assert told
    assert told[0].startswith("waits for")
    assert told[-1] == ""
    assert place.jobs() == ["synced"]
    assert place.indexes() == {"iv", "iw"}


def wire_of(connection: Any) -> socket.socket:
    """The socket of a connection, to be cut under a thread that waits for its answer."""
    return socket.socket(fileno=os.dup(connection.fileno()))


def test_the_status_tells_which_transactions_a_job_waits_for(place: Place) -> None:
    ours = place.ddl.connection.thread_id()
    with closing(place.server.connection()) as other, closing(writer(place.server.endpoint)) as asking:

        def told() -> str:
            return standstill(asking, place.ddl.meta, "s1", ours)

        rows(other, "BEGIN")
        rows(other, f"SELECT * FROM {place.schema}.t LIMIT 1")
        thread, failed = place.begin()
        assert "DDL job " in told()
        holder = f"it waits for transactions that have used its table: connection {other.thread_id()} (root@"
        wait_until(lambda: holder in told(), "told", told=told)
        assert "in an open transaction): have them commit, or `KILL` them" in told()
        rows(other, "COMMIT")
        thread.join()
        assert not failed
        assert told() == ""


def test_a_job_outlives_its_server(place: Place) -> None:
    thread, failed = place.begin()
    place.server.kill()
    thread.join()
    assert failed
    place.server.start()
    assert place.again().was_done(place.word)
    assert place.jobs() == ["synced"]
    assert place.indexes() == {"iv", "iw"}


def test_a_job_whose_session_is_killed_is_run_again_where_tidb_has_cancelled_it(place: Place) -> None:
    number = place.ddl.connection.thread_id()
    thread, failed = place.begin()
    place.server.run(f"KILL {number}")
    thread.join()
    assert failed
    ddl = place.again()
    if not ddl.was_done(place.word):
        assert place.indexes() == set()
        ddl.run(place.word, place.statement)
    assert ddl.was_done(place.word)
    assert place.jobs().count("synced") == 1
    assert place.indexes() == {"iv", "iw"}


def test_a_cancelled_job_stops_with_a_code_of_its_own(place: Place) -> None:
    with in_use(place.server, f"{place.schema}.t"):  # so the job can't end before it is cancelled
        thread, failed = place.begin()
        ((number,),) = place.server.query(
            "SELECT DISTINCT JOB_ID FROM information_schema.DDL_JOBS WHERE STATE = 'running' AND DB_NAME = %s",
            (place.schema,),
        )
        place.server.run(f"ADMIN CANCEL DDL JOBS {number}")
    thread.join()
    (error,) = failed
    assert isinstance(error, DdlError)
    assert error.code == "DDL-039"
    assert not place.again().was_done(place.word)


def test_a_process_that_has_lost_its_source_runs_nothing(place: Place) -> None:
    connection = writer(place.server.endpoint)
    claim(connection, place.ddl.meta, "s1")
    with pytest.raises(SyncError) as failure:
        place.ddl.run(place.word, place.statement)
    assert failure.value.code == "SYNC-001"
    assert place.jobs() == []
    connection.close()


def test_whoever_claims_a_source_waits_for_what_is_under_way(place: Place) -> None:
    thread, failed = place.begin()
    connection = writer(place.server.endpoint)
    told: list[str] = []
    epoch = claim(connection, place.ddl.meta, "s1").epoch
    heir = replace(place.ddl, connection=connection, epoch=epoch, tell=told.append)
    heir.wait_for_earlier()
    assert place.jobs() == ["synced"]
    assert told[0].startswith("waits for")
    thread.join()
    assert not failed
    connection.close()


@pytest.mark.spark
@pytest.mark.recovery
class TestByTheWholeCommand:
    """The same with `unshard run`, killed while TiDB works at an index."""

    @pytest.fixture
    def files(self, source_server: MariadbServer, tidb: TidbServer, schema: str, tmp_path: Path) -> Iterator[TaskFiles]:
        source_server.run(
            f"CREATE DATABASE {schema}",
            f"CREATE TABLE {schema}.t (id INT PRIMARY KEY, v INT, w VARCHAR(60))",
            f"INSERT INTO {schema}.t SELECT seq, seq, REPEAT('a', 50) FROM {schema}.seq_1_to_{ROWS}",
        )
        yield TaskFiles(tmp_path, schema, {"s1": source_server}, tidb, (schema,)).write()
        source_server.run(f"DROP DATABASE {schema}")

    @pytest.mark.parametrize("dies", ["process", "server", "both"])
    def test_it_is_killed_in_the_middle(
        self, files: TaskFiles, source_server: MariadbServer, tidb: TidbServer, schema: str, dies: str
    ) -> None:
        mark = source_mark(MetaTables(files.meta, files.name), "s1")
        asked = "SELECT STATE FROM information_schema.DDL_JOBS WHERE JOB_TYPE LIKE 'add index%%' AND QUERY LIKE %s"

        def states() -> list[str]:
            return [str(state) for (state,) in tidb.query(asked, (f"%{mark}%",))]

        with Command(files) as command:
            command.catch_up()
            with in_use(tidb, f"{schema}.t"):
                source_server.run(
                    f"ALTER TABLE {schema}.t ADD INDEX iv (v, w)", f"INSERT INTO {schema}.t VALUES (0, 0, 'behind it')"
                )
                wait_until(lambda: "running" in states(), "the job runs", told=lambda: command.text)
                if dies != "process":
                    tidb.kill()
                if dies != "server":
                    command.kill()
            if dies != "process":
                tidb.start()
            if dies == "server":
                command.catch_up()
        if dies != "server":
            with Command(files) as command:
                command.catch_up()
        assert states() == ["synced"]
        tidb.run(f"ADMIN CHECK TABLE {schema}.t")
        assert_equal([(source_server, TableName(schema, "t"))], (tidb, TableName(schema, "t")))


@pytest.mark.spark
@pytest.mark.recovery
def test_a_process_that_wakes_late_sends_its_ddl_in_vain(
    source_server: MariadbServer, tidb: TidbServer, spark: SparkSession, schema: str, tmp_path: Path
) -> None:
    source = source_server
    source.run(f"CREATE DATABASE {schema}", f"CREATE TABLE {schema}.t (id INT PRIMARY KEY, c INT)")
    source.run(f"INSERT INTO {schema}.t VALUES (1, 1)")
    files = TaskFiles(tmp_path, schema, {"s1": source}, tidb, (schema,)).write()
    zombie = Process(files, "s1", 0, crash_at="ddl-execute-before", crash_by="SIGSTOP")
    try:
        wait_until(lambda: files.applied("s1") is not None, "begun")
        source.run(f"ALTER TABLE {schema}.t DROP COLUMN c")
        wait_until(zombie.is_frozen, "stopped before the DDL")
        with TaskRun(files, spark) as heir:
            source.run(f"ALTER TABLE {schema}.t ADD COLUMN c INT", f"INSERT INTO {schema}.t VALUES (2, 2)")
            heir.catch_up()
            zombie.send(signal.SIGCONT)
            wait_until(lambda: zombie.ended is not None, "the zombie has ended")
            assert zombie.ended == REFUSED, zombie.text
            assert "SYNC-001" in zombie.text, zombie.text
            source.run(f"INSERT INTO {schema}.t VALUES (3, 3)")
            heir.catch_up()
    finally:
        zombie.send(signal.SIGCONT)
        zombie.kill()
    assert tidb.query(f"SELECT id, c FROM {schema}.t ORDER BY id") == [(1, None), (2, 2), (3, 3)]
