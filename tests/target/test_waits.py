"""For whom a task's sessions wait in the target, on a real server: the status names the holder and what helps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from threading import Thread
from typing import Any

import MySQLdb
import pytest

from support import waiting
from unshard.model.change import ValuesList
from unshard.model.position import Location, Position
from unshard.mysql.connection import Endpoint, rows
from unshard.sync.checkpoint.store import CheckpointStore
from unshard.target import waits
from unshard.target.bulk_insert import insert
from unshard.target.meta import MetaTables
from unshard.target.receipts import Applied, advance_statement, note_trouble
from unshard.target.waits import standstill
from unshard.target.writer import writer
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.mysql_server import MysqlServer

pytestmark = pytest.mark.server

wait_until = partial(waiting.wait_until, every=0.2)
"""What InnoDB tells of locks is renewed only when nobody has asked for 0.1 s."""


def place(offset: int) -> Location:
    return Location(Position("b.000001", offset))


@dataclass(slots=True)
class Batch:
    """An open batch of a source in two partitions, and its writers."""

    endpoint: Endpoint
    schema: str
    source: str
    store: CheckpointStore = field(init=False)
    threads: list[Thread] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.store = CheckpointStore(self.endpoint, MetaTables(self.schema, "task"), self.source)
        self.store.claim()
        self.store.open(place(4), place(99), {"kind": "rows"}, 2)

    def begin(self, connection: Any, part: int) -> int:
        """What every chunk begins with; the connection's number."""
        own = (self.store.meta, self.source, part, self.store.epoch, self.store.batch_id)
        rows(connection, "BEGIN")
        rows(connection, advance_statement(*own, Applied(0), Applied(1)))
        ((number,),) = rows(connection, "SELECT CONNECTION_ID()")
        return int(number)

    def write(self, part: int, id_: int) -> int:
        """A chunk that changes that row, by another thread; its connection's number."""
        update = f"UPDATE {self.schema}.t SET n = n + 1 WHERE id = %s"
        return self.in_thread(part, lambda connection: rows(connection, update, (id_,)))

    def upsert(self, part: int, count: int) -> int:
        """A chunk that writes so many rows, by another thread; its connection's number."""
        head, listed = f"INSERT INTO {self.schema}.t VALUES ", ",".join(f"({id},1)" for id in range(count))
        sql, values = f"{head}{listed} ON DUPLICATE KEY UPDATE n=n+1".encode(), (len(head), len(head) + len(listed), 2)
        return self.in_thread(part, lambda connection: insert(connection, sql, ValuesList(*values), 1 << 20))

    def in_thread(self, part: int, write: Callable[[Any], object]) -> int:
        connection = writer(self.endpoint)
        number = self.begin(connection, part)

        def run() -> None:
            with closing(connection), suppress(MySQLdb.Error):
                write(connection)
                rows(connection, "COMMIT")

        self.threads.append(Thread(target=run))
        self.threads[-1].start()
        return number

    def told(self) -> str:
        with closing(writer(self.endpoint)) as connection:
            return standstill(connection, self.store.meta, self.source, self.store.session)


@pytest.fixture
def batches(target_server: MariadbServer, schema: str) -> Iterator[Callable[[str], Batch]]:
    target_server.run(f"CREATE DATABASE {schema}", f"CREATE TABLE {schema}.t (id INT PRIMARY KEY, n INT)")
    target_server.run(f"INSERT INTO {schema}.t VALUES (1, 0), (2, 0)")
    made: list[Batch] = []

    def make(source: str) -> Batch:
        made.append(Batch(target_server.endpoint, schema, source))
        return made[-1]

    yield make
    for batch in made:
        for thread in batch.threads:
            thread.join()
        batch.store.drop()


def holds(connection: Any, schema: str, id_: int) -> int:
    """The connection has that row locked, in an open transaction; its number."""
    rows(connection, "BEGIN")
    rows(connection, f"SELECT 'a secret' FROM {schema}.t WHERE id = %s FOR UPDATE", (id_,))
    ((number,),) = rows(connection, "SELECT CONNECTION_ID()")
    return int(number)


def test_who_holds_a_row_is_named_until_it_is_free(
    batches: Callable[[str], Batch], target_server: MariadbServer, schema: str
) -> None:
    batch = batches("s'1")
    with closing(target_server.connection()) as other:
        holder = holds(other, schema, 1)
        assert batch.told() == ""
        waiter = batch.write(0, 1)
        wait_until(
            lambda: f"a lock that connection {holder} holds (root@" in batch.told(), "it is named", told=batch.told
        )
        told = batch.told()
        assert f"connection {waiter} of the target, ours, waits for " in told
        assert "s in an open transaction): have it commit, or `KILL" in told
        assert f"`KILL {holder}` in the target" in told
        rows(other, "COMMIT")
        wait_until(lambda: batch.told() == "", "nothing waits", told=batch.told)


def test_who_waits_for_another_source_of_the_task_is_told_so(batches: Callable[[str], Batch], schema: str) -> None:
    first, second = batches("s1"), batches("s2")
    with closing(writer(first.endpoint)) as connection:
        holder = first.begin(connection, 1)
        rows(connection, f"UPDATE {schema}.t SET n = n + 1 WHERE id = 2")
        second.write(1, 2)
        wanted = f"a lock that connection {holder} holds: it writes for s1, and this goes on behind it"
        wait_until(lambda: wanted in second.told(), "it is told", told=second.told)
        assert "KILL" not in second.told()
        assert first.told() == "", "the one who holds it waits for nobody"
        rows(connection, "COMMIT")


def test_without_the_privilege_it_says_which_is_missing(
    batches: Callable[[str], Batch], target_server: MariadbServer, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waits, "LONG_SECONDS", 0)
    user = f"u{schema}"
    target_server.run(f"CREATE USER {user}@'%' IDENTIFIED BY 'x'", f"GRANT ALL ON {schema}.* TO {user}@'%'")
    batch = batches("s1")
    batch.endpoint = replace(target_server.endpoint, user=user, password="x")
    with closing(target_server.connection()) as other:
        holds(other, schema, 1)
        waiter = batch.write(0, 1)
        wanted = f"connection {waiter} of the target, ours, has been at UPDATE {schema}.t for "
        wait_until(lambda: wanted in batch.told(), "its statement", told=batch.told)
        assert "can't be seen: GRANT PROCESS" in batch.told()


def test_what_is_tried_again_is_told_until_the_partition_goes_on(batches: Callable[[str], Batch], schema: str) -> None:
    batch = batches("s1")
    meta, own = batch.store.meta, (batch.store.epoch, batch.store.batch_id)
    with closing(writer(batch.endpoint)) as connection:
        note_trouble(connection, meta, "s1", 0, *own, "tried again since 12:00:00 UTC, attempt 3")
        assert batch.told() == "tried again since 12:00:00 UTC, attempt 3"
        note_trouble(connection, meta, "s1", 1, own[0] - 1, own[1], "a zombie's")
        assert "zombie" not in batch.told()
        batch.begin(connection, 0)
        rows(connection, "COMMIT")
    assert batch.told() == ""


def test_a_statement_of_ours_that_waits_for_a_transaction_is_told(
    batches: Callable[[str], Batch], target_server: MariadbServer, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waits, "LONG_SECONDS", 0)
    batch = batches("s1")
    with closing(target_server.connection()) as other:
        holder = holds(other, schema, 1)
        alter = f"ALTER TABLE {schema}.t ADD COLUMN c INT"
        batch.threads.append(Thread(target=lambda: batch.store.change(lambda c: rows(c, alter))))
        batch.threads[-1].start()
        if isinstance(target_server, MysqlServer):
            holds_it = f"for a lock that connection {holder} holds (root@"
            wait_until(lambda: holds_it in batch.told(), "who has it in use", told=batch.told)
        else:
            wait_until(lambda: f"connection {holder} (root@" in batch.told(), "who may have it in use", told=batch.told)
            assert f"s for a metadata lock: {alter} goes on when no transaction has the table in use" in batch.told()
        rows(other, "COMMIT")
    batch.threads[-1].join()
    assert batch.told() == ""


@pytest.mark.parametrize("count", [1, 30], ids=["text", "bulk"])
def test_a_statement_of_rows_that_waits_for_a_table_is_told(
    count: int,
    batches: Callable[[str], Batch],
    target_server: MariadbServer,
    schema: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(waits, "LONG_SECONDS", 0)
    batch = batches("s1")
    with closing(target_server.connection()) as other:
        rows(other, f"LOCK TABLES {schema}.t READ")
        waiter = batch.upsert(0, count)
        wanted = f"connection {waiter} of the target, ours, waits for "
        wait_until(lambda: wanted in batch.told(), "it is told", told=batch.told)
        lock = f"lock that connection {other.thread_id()} holds"
        if not isinstance(target_server, MysqlServer):  # which tells who holds a metadata lock
            lock = "metadata lock: INSERT INTO"
        assert lock in batch.told()
        rows(other, "UNLOCK TABLES")
    batch.threads[-1].join()
    assert batch.told() == ""


def test_no_value_of_a_statement_is_shown() -> None:
    assert waits._shape("UPDATE `a`.`b`\n SET c = 'x'") == "UPDATE `a`.`b`"
    assert waits._shape("INSERT INTO a.b (c) VALUES (5)") == "INSERT INTO a.b (c)"
    assert waits._shape("ALTER USER u IDENTIFIED BY PASSWORD(x)") == "ALTER USER u"
    assert waits._shape(None) == ""
