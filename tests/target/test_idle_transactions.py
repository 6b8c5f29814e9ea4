"""Who is frozen in a transaction: the target ends its session, its heir goes on, and what it did is done once."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from itertools import groupby, islice
from typing import Any

import MySQLdb
import pytest
from MySQLdb.cursors import Cursor

from support.stopped_threads import Aside
from support.waiting import wait_until
from unshard.errors import SyncError, Where
from unshard.model.position import Location, Position
from unshard.model.table import Table, TableName
from unshard.mysql.connection import Endpoint, Side, connect, rows
from unshard.mysql.target_session import IDLE_SECONDS as SECONDS
from unshard.mysql.target_session import begin_session
from unshard.retry import ATTEMPTS, pauses
from unshard.sync.checkpoint.store import CheckpointStore
from unshard.target import checkpoint
from unshard.target.checkpoint import TableCheckpoint
from unshard.target.meta import MetaTables
from unshard.target.transactions import on_target
from unshard.target.writer import KeptWriter
from unshard.testing.mariadb_server import MariadbServer

pytestmark = pytest.mark.server
_SLOT = 2000


def hurried(server: MariadbServer) -> Endpoint:
    """Sessions that are ended after a second, and wait as long for a row."""
    return server.endpoint.with_session(idle_transaction_timeout="1", innodb_lock_wait_timeout="1")


@pytest.fixture
def store(target_server: MariadbServer, schema: str) -> Iterator[CheckpointStore]:
    made = CheckpointStore(hurried(target_server), MetaTables(schema, "task"), "s1")
    made.claim()
    yield made
    made.drop()


def silent_in_a_transaction(store: CheckpointStore) -> Aside:
    """It holds the row of its source, as a process does that is frozen before its COMMIT."""

    def write(aside: Aside) -> None:
        def stand(_: Any) -> None:
            aside.begun.set()
            assert aside.goes_on.wait(60)

        store.in_one(stand)

    aside = Aside(write)
    assert aside.begun.wait(60)
    return aside


def test_the_heir_of_a_frozen_process_goes_on_and_the_frozen_one_writes_nothing(
    store: CheckpointStore, target_server: MariadbServer
) -> None:
    frozen = silent_in_a_transaction(store)
    heir = CheckpointStore(target_server.endpoint, store.meta, store.source)
    heir.claim()
    frozen.goes_on.set()
    error = frozen.join()
    assert isinstance(error, SyncError), error
    assert error.code == "SYNC-001", error
    heir.in_one(lambda _: None)
    heir.drop()


def test_who_only_was_silent_for_too_long_does_it_again_once(target_server: MariadbServer, schema: str) -> None:
    target_server.run(
        f"CREATE DATABASE {schema}", f"CREATE TABLE {schema}.t (n INT)", f"INSERT INTO {schema}.t SELECT 0"
    )
    kept, sessions = KeptWriter(hurried(target_server), _SLOT), []

    def operation(connection: Any) -> None:
        ((number,),) = rows(connection, "SELECT CONNECTION_ID()")
        sessions.append(number)
        if len(sessions) > 1:  # a busy machine is silent too
            rows(connection, "SET SESSION idle_transaction_timeout = 60")
        rows(connection, "BEGIN")
        rows(connection, f"UPDATE {schema}.t SET n = n + 1")
        if len(sessions) == 1:
            wait_until(lambda: not is_there(target_server, number), "the session is ended")
        rows(connection, "COMMIT")

    on_target(kept, operation, Where("s1"))
    kept.drop()
    assert len(sessions) == 2
    assert target_server.query(f"SELECT n FROM {schema}.t") == [(1,)]


def test_a_transaction_of_many_tables_is_not_silent_while_their_rows_are_made(
    store: CheckpointStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Structures of 10,000 tables are seconds of work: a statement is sent behind each few of them."""
    done: list[str] = []

    def form(table: Table, _: str) -> str:
        done.append(str(table.name))
        return json.dumps({"text": "x" * 30_000})

    def query(cursor: Cursor, text: bytes) -> Any:
        done.append("")
        return sent(cursor, text)

    sent = Cursor._query
    monkeypatch.setattr(checkpoint, "_form", form)
    monkeypatch.setattr(Cursor, "_query", query)
    names = [TableName("s", f"t{number}") for number in range(40)]
    store.move(Location(Position("bin.000001", 4)), {name: TableCheckpoint(Table(name, ())) for name in names})
    assert [one for one in done if one] == [str(name) for name in names]
    assert max(len(list(run)) for is_form, run in groupby(done, bool) if is_form) <= 3


def is_there(server: MariadbServer, session: int) -> bool:
    return bool(server.query(f"SELECT 1 FROM information_schema.PROCESSLIST WHERE ID = {session}"))


@pytest.mark.parametrize(
    ("side", "given", "seconds"),
    [
        ("target", {}, SECONDS),
        ("target", {"idle_transaction_timeout": "0"}, 0),
        ("target", {"Idle_Transaction_Timeout": "600"}, 600),
        ("source", {}, 0),
    ],
)
def test_each_session_with_the_target_asks_for_it(
    target_server: MariadbServer, side: Side, given: dict[str, str], seconds: int
) -> None:
    assert asked_for(target_server, side, given) == seconds


@pytest.mark.parametrize(("servers", "seconds"), [(10, 10), (600, SECONDS)])
def test_a_shorter_time_of_the_server_stays(target_server: MariadbServer, servers: int, seconds: int) -> None:
    target_server.run(f"SET GLOBAL idle_transaction_timeout = {servers}")
    try:
        assert asked_for(target_server, "target", {}) == seconds
    finally:
        target_server.run("SET GLOBAL idle_transaction_timeout = 0")


def asked_for(server: MariadbServer, side: Side, given: dict[str, str]) -> int:
    connection = connect(server.endpoint.with_session(**given), side)
    ((seconds,),) = rows(connection, "SELECT @@session.idle_transaction_timeout")
    connection.close()
    return int(seconds)


class Session:
    """A server that greets so, and answers with an error where one is given, to all or to statements with a word."""

    def __init__(self, greeting: str, error: int = 0, word: str = "") -> None:
        self.greeting, self.error, self.word = greeting, error, word
        self.said: list[str] = []

    def get_server_info(self) -> str:
        return self.greeting

    def query(self, statement: str) -> None:
        self.said.append(statement)
        if self.error and self.word in statement:
            raise MySQLdb.OperationalError(self.error, "Unknown system variable")


@pytest.mark.parametrize(
    ("greeting", "asked"),
    [
        ("9.7.0", []),
        ("5.7.25-TiDB-v7.5.1", []),
        ("8.0.11-TiDB-v7.6.0", ["tidb_idle_transaction_timeout"]),
        ("8.0.11-TiDB-v8.5.2", ["tidb_idle_transaction_timeout"]),
        ("5.5.5-10.11.6-MariaDB", ["idle_transaction_timeout"]),
    ],
)
def test_servers_that_can_do_it_are_asked(greeting: str, asked: list[str]) -> None:
    session = Session(greeting)
    begin_session(session, ())
    assert [word for said in session.said for word in said.split() if "idle" in word.partition("=")[0]][:1] == [
        f"@@session.{name}" if "tidb" in name else name for name in asked
    ]
    session = Session(greeting)
    begin_session(session, tuple((name, "600") for name in asked))
    assert "idle" not in "".join(session.said)


def test_a_server_that_can_not_do_it_is_worked_with() -> None:
    begin_session(Session("10.2.1-MariaDB", 1193), ())
    with pytest.raises(MySQLdb.OperationalError):
        begin_session(Session("11.8.2-MariaDB", 2013), ())


def test_a_tidb_that_no_longer_retries_by_itself_is_not_told_so() -> None:
    session = Session("8.0.11-TiDB-v9.9.0", 1193, "tidb_retry_limit")
    begin_session(session, ())
    assert ["tidb_retry_limit" in said for said in session.said] == [True, False]
    assert "tidb_txn_mode = 'pessimistic'" in session.said[1]
    with pytest.raises(MySQLdb.OperationalError):
        begin_session(Session("8.0.11-TiDB-v9.9.0", 1193), ())


def test_an_heir_waits_for_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    """One second a lock wait is the least that a server can be told to take."""
    monkeypatch.setattr(random, "uniform", lambda low, high: (low + high) / 2)
    assert ATTEMPTS * 1.0 + sum(islice(pauses(), ATTEMPTS - 1)) > SECONDS
