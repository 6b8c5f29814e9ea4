"""Failures that pass, made on a real server by another session: the operation is done, once."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from threading import Event, Thread
from typing import Any

import pytest

from unshard.errors import TargetError, UnshardError, Where
from unshard.mysql.connection import rows
from unshard.target.transactions import on_target
from unshard.target.writer import KeptWriter
from unshard.testing.mariadb_server import MariadbServer

pytestmark = pytest.mark.server
WHERE = Where(source="s1")
PATIENCE_SECONDS = 90
_slots = itertools.count(1000)


@pytest.fixture(scope="module")
def server() -> Iterator[MariadbServer]:
    """One whose variables these tests may change."""
    with MariadbServer() as found:
        found.run(
            "CREATE DATABASE d",
            "CREATE TABLE d.t (id INT PRIMARY KEY, n INT NOT NULL)",
            "CREATE USER ours@'%' IDENTIFIED BY 'x'",
            "GRANT SELECT, INSERT, UPDATE, DELETE ON *.* TO ours@'%'",
        )
        yield found


@pytest.fixture
def kept(server: MariadbServer) -> Iterator[KeptWriter]:
    """A place for our connection, to a table that holds rows 1 and 2 with 0."""
    server.run("DELETE FROM d.t", "INSERT INTO d.t VALUES (1, 0), (2, 0)")
    endpoint = replace(server.endpoint, user="ours", password="x").with_session(innodb_lock_wait_timeout="1")
    found = KeptWriter(endpoint, next(_slots))
    yield found
    found.drop()


def add(connection: Any, *ids: int, between: Callable[[], None] = lambda: None) -> int:
    """One transaction that adds one to each row in turn; the connection's number."""
    rows(connection, "BEGIN")
    for id_ in ids:
        rows(connection, "UPDATE d.t SET n = n + 1 WHERE id = %s", (id_,))
        between()
    ((number,),) = rows(connection, "SELECT CONNECTION_ID()")
    rows(connection, "COMMIT")
    return int(number)


def counts(server: MariadbServer) -> list[int]:
    return [n for (n,) in server.query("SELECT n FROM d.t ORDER BY id")]


def test_a_lock_wait_is_waited_out_on_the_same_connection(server: MariadbServer, kept: KeptWriter) -> None:
    other = server.connection()
    rows(other, "BEGIN")
    rows(other, "SELECT * FROM d.t WHERE id = 2 FOR UPDATE")
    before = rows(kept.get(), "SELECT CONNECTION_ID()")[0][0]
    tried = []
    told: list[str] = []

    def operation(connection: Any) -> int:
        tried.append(1)
        if len(tried) == 2:
            other.close()
        return add(connection, 1, 2)

    assert on_target(kept, operation, WHERE, tell=told.append) == before
    assert re.match(r"tried again since \d\d:\d\d:\d\d UTC, attempt 2, the last error: 1205: Lock wait", told[0])
    assert len(tried) >= 2
    assert counts(server) == [1, 1]


def test_a_deadlock_made_by_another_session(server: MariadbServer, kept: KeptWriter) -> None:
    server.run("INSERT INTO d.t SELECT seq, 0 FROM d.t JOIN d.seq_3_to_500 WHERE id = 1")
    ours, theirs, tried = Event(), Event(), []

    def other() -> None:  # it has more to undo, so the server gives up ours
        connection = server.connection()
        rows(connection, "BEGIN")
        rows(connection, "UPDATE d.t FORCE INDEX (PRIMARY) SET n = 5 WHERE id > 1")  # a scan of all would lock row 1
        theirs.set()
        ours.wait(PATIENCE_SECONDS)
        rows(connection, "UPDATE d.t SET n = n + 10 WHERE id = 1")
        rows(connection, "COMMIT")
        connection.close()

    thread = Thread(target=other)
    thread.start()
    assert theirs.wait(PATIENCE_SECONDS)

    def operation(connection: Any) -> int:
        tried.append(1)
        return add(connection, 1, 2, between=ours.set)

    on_target(kept, operation, WHERE)
    thread.join()
    assert len(tried) > 1
    assert counts(server)[:2] == [11, 6]


def test_a_killed_connection_is_opened_again(server: MariadbServer, kept: KeptWriter) -> None:
    numbers: list[int] = []

    def operation(connection: Any) -> int:
        ((number,),) = rows(connection, "SELECT CONNECTION_ID()")
        numbers.append(int(number))
        return add(connection, 1, between=lambda: server.run(f"KILL {number}") if len(numbers) < 3 else None)

    assert on_target(kept, operation, WHERE) == numbers[-1]
    assert len(set(numbers)) == 3
    assert counts(server) == [1, 0]


def test_no_connection_left(server: MariadbServer, kept: KeptWriter) -> None:
    server.run("SET GLOBAL max_connections = 10")
    held: list[KeptWriter] = []

    def take_all() -> None:
        while True:
            held.append(KeptWriter(kept.endpoint, next(_slots)))
            held[-1].get()

    with pytest.raises(UnshardError) as refused:
        take_all()
    assert (refused.value.code, refused.value.cause[:4]) == ("TARGET-001", "1040")
    tried = []

    class Place:
        endpoint = kept.endpoint
        drop = kept.drop

        @staticmethod
        def get() -> Any:
            tried.append(1)
            if len(tried) == 3:
                for one in held:
                    one.drop()
            return kept.get()

    on_target(Place(), lambda c: add(c, 1), WHERE)
    assert len(tried) >= 3
    server.run("SET GLOBAL max_connections = 150")
    assert counts(server) == [1, 0]


def test_a_target_that_is_read_only_for_a_while(server: MariadbServer, kept: KeptWriter) -> None:
    kept.get()
    server.run("SET GLOBAL read_only = 1")
    tried = []

    def operation(connection: Any) -> int:
        tried.append(1)
        if len(tried) == 3:
            server.run("SET GLOBAL read_only = 0")
        return add(connection, 2)

    on_target(kept, operation, WHERE)
    assert len(tried) == 3
    assert counts(server) == [0, 1]


def test_a_refusal_stops_at_once(kept: KeptWriter) -> None:
    calls = []

    def operation(connection: Any) -> None:
        calls.append(1)
        rows(connection, "INSERT INTO d.t VALUES (1, 0)")

    with pytest.raises(TargetError, match="TARGET-004") as caught:
        on_target(kept, operation, WHERE)
    assert (len(calls), caught.value.where.source) == (1, "s1")


def test_a_server_that_has_become_read_only_is_connected_to_anew(server: MariadbServer, kept: KeptWriter) -> None:
    """Another server may have taken over its address."""
    before = rows(kept.get(), "SELECT CONNECTION_ID()")[0][0]
    server.run("SET GLOBAL read_only = ON")
    tried: list[Any] = []

    def operation(connection: Any) -> int:
        tried.append(rows(connection, "SELECT CONNECTION_ID()")[0][0])
        if len(tried) == 2:
            server.run("SET GLOBAL read_only = OFF")
        return add(connection, 1)

    try:
        assert on_target(kept, operation, WHERE) == tried[-1]
    finally:
        server.run("SET GLOBAL read_only = OFF")
    assert tried[0] == before != tried[1]
    assert counts(server) == [1, 0]
