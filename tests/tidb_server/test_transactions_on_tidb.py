"""Transactions of rows on TiDB: optimistic at first; what fails there is done again with locks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import MySQLdb
import pytest

from support.stopped_threads import Aside
from support.waiting import wait_until
from unshard.errors import SyncError, Where
from unshard.model.position import Location, Position
from unshard.mysql.connection import rows
from unshard.sync.checkpoint.store import CheckpointStore
from unshard.target import waits
from unshard.target.meta import MetaTables
from unshard.target.receipts import Applied, advance_statement
from unshard.target.transactions import in_transaction
from unshard.target.writer import writer
from unshard.testing.tidb_server import TidbServer

pytestmark = pytest.mark.server


@pytest.fixture
def table(tidb: TidbServer, schema: str) -> Iterator[str]:
    tidb.run(f"CREATE DATABASE {schema}", f"CREATE TABLE {schema}.t (id INT PRIMARY KEY, n INT NOT NULL UNIQUE)")
    tidb.run(f"INSERT INTO {schema}.t VALUES (1, 10)")
    yield f"{schema}.t"
    tidb.run(f"DROP DATABASE {schema}")


class Attempts:
    """A transaction of `statements`; `between` is done by others before its first COMMIT."""

    def __init__(self, connection: Any, *statements: str, between: tuple[TidbServer, str] | None = None) -> None:
        self.connection, self.statements, self.between = connection, statements, between
        self.begun: list[bytes] = []

    def __call__(self, begin: bytes) -> int:
        self.begun.append(begin)
        self.connection.query(begin)
        changed = 0
        for statement in self.statements:
            self.connection.query(statement.encode())
            changed += self.connection.affected_rows()
        if self.between and len(self.begun) == 1:
            server, other = self.between
            server.run(other)
        self.connection.query(b"COMMIT")
        return changed


def test_without_another_s_change_nothing_is_locked(tidb: TidbServer, table: str) -> None:
    with closing(writer(tidb.endpoint)) as connection:
        attempts = Attempts(
            connection, f"UPDATE {table} SET n = 11 WHERE id = 1", f"INSERT INTO {table} VALUES (2, 20)"
        )
        assert in_transaction(connection, attempts) == 2
    assert attempts.begun == [b"BEGIN OPTIMISTIC"]
    assert tidb.query(f"SELECT * FROM {table} ORDER BY id") == [(1, 11), (2, 20)]


def test_a_row_that_another_has_changed_meanwhile_is_met_once_more(tidb: TidbServer, table: str) -> None:
    """As of a receipt: the second attempt finds that it is not there to be moved on."""
    with closing(writer(tidb.endpoint)) as connection:
        other = (tidb, f"UPDATE {table} SET n = 99 WHERE id = 1")
        attempts = Attempts(connection, f"UPDATE {table} SET n = 11 WHERE id = 1 AND n = 10", between=other)
        assert in_transaction(connection, attempts) == 0
    assert attempts.begun == [b"BEGIN OPTIMISTIC", b"BEGIN"]
    assert tidb.query(f"SELECT * FROM {table}") == [(1, 99)]


@pytest.mark.parametrize("other", ["", "INSERT INTO {} VALUES (2, 20)"])
def test_a_duplicate_is_told_by_its_statement(tidb: TidbServer, table: str, other: str) -> None:
    with closing(writer(tidb.endpoint)) as connection:
        between = (tidb, other.format(table)) if other else None
        row = "(2, 20)" if other else "(2, 10)"
        attempts = Attempts(connection, f"INSERT INTO {table} VALUES {row}", between=between)
        with pytest.raises(MySQLdb.IntegrityError) as told:
            in_transaction(connection, attempts)
        assert told.value.args[0] == 1062
        rows(connection, "ROLLBACK")
    assert attempts.begun == [b"BEGIN OPTIMISTIC", b"BEGIN"]
    assert tidb.query(f"SELECT COUNT(*) FROM {table}") == [(2 if other else 1,)]


def test_what_is_given_up_is_not_done_again_without_need(tidb: TidbServer, table: str) -> None:
    """An answer that is lost leaves it open whether it was committed: the caller asks its receipt."""
    with closing(writer(tidb.endpoint)) as connection:
        attempts = Attempts(connection, "KILL TIDB CONNECTION_ID()")
        with pytest.raises(MySQLdb.Error):
            in_transaction(connection, attempts)
        assert attempts.begun == [b"BEGIN OPTIMISTIC"]


def test_an_error_of_ours_counts_when_it_is_met_with_locks(tidb: TidbServer, table: str) -> None:
    begun: list[bytes] = []

    def refused(begin: bytes) -> int:
        begun.append(begin)
        connection.query(begin)
        raise SyncError("SYNC-001", Where(source="s1"))

    with closing(writer(tidb.endpoint)) as connection, pytest.raises(SyncError):
        in_transaction(connection, refused)
    assert begun == [b"BEGIN OPTIMISTIC", b"BEGIN"]


def test_rows_whose_foreign_keys_are_checked_are_locked(tidb: TidbServer, table: str) -> None:
    with closing(writer(tidb.endpoint)) as connection:
        attempts = Attempts(connection, f"UPDATE {table} SET n = 11 WHERE id = 1")
        in_transaction(connection, attempts, may_be_optimistic=False)
    assert attempts.begun == [b"BEGIN"]


def test_for_whom_a_commit_waits_is_told(tidb: TidbServer, table: str, schema: str) -> None:
    store = CheckpointStore(tidb.endpoint, MetaTables(schema, "task"), "s1")
    store.claim()
    store.open(Location(Position("b.1", 4)), Location(Position("b.1", 9)), {"kind": "rows"}, 1)
    receipt = advance_statement(store.meta, "s1", 0, store.epoch, store.batch_id, Applied(0), Applied(1))
    with closing(tidb.connection()) as other, closing(writer(tidb.endpoint)) as connection:
        rows(other, "BEGIN")
        rows(other, f"SELECT * FROM {table} FOR UPDATE")
        ((number,),) = rows(connection, "SELECT CONNECTION_ID()")
        ((holder,),) = rows(other, "SELECT CONNECTION_ID()")
        attempts = Attempts(connection, receipt, f"UPDATE {table} SET n = 11 WHERE id = 1")
        writes = Aside(lambda _: in_transaction(connection, attempts))

        def told() -> str:
            with closing(writer(tidb.endpoint)) as asking:
                return waits.standstill(asking, store.meta, "s1", store.session)

        waits_for = (
            rf"connection {number} of the target, ours, waits for \d+ s for a lock that connection {holder} holds"
        )
        wait_until(lambda: re.search(waits_for, told()) is not None, "told", told=told)
        rows(other, "COMMIT")
        assert writes.join() is None
    assert tidb.query(f"SELECT n FROM {table}") == [(11,)]
    store.drop()
