"""A COMMIT whose answer is lost: with a receipt it is looked up, without one only safe mode may apply it again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import MySQLdb
import pytest

from support.reference import RowChange
from support.row_batches import END, Target
from unshard.errors import SyncError, TargetError
from unshard.model.change import Op
from unshard.model.position import Location
from unshard.model.table import TableName
from unshard.sync.batch.plan import BatchShape
from unshard.sync.batch.row_counts import Account
from unshard.sync.checkpoint.store import CheckpointStore
from unshard.target.writer import KeptWriter
from unshard.testing.mariadb_server import MariadbServer

pytestmark = pytest.mark.server
CHANGES = [RowChange(TableName("in_doubt", "t"), Op.INSERT, after=(n, n)) for n in range(5)]


@pytest.fixture
def place(target_server: MariadbServer) -> Iterator[Target]:
    found = Target(target_server, "in_doubt", {"t": "id INT PRIMARY KEY, v INT"})
    yield found
    found.connection.close()
    target_server.run("DROP DATABASE in_doubt")


def lose_the_answer_of_a_commit(writer: KeptWriter | CheckpointStore) -> None:
    connection = writer.get()
    send = connection.query

    def query(sql: bytes) -> None:
        send(sql)
        if sql == b"COMMIT":
            raise MySQLdb.OperationalError(2013, "Lost connection to server during query")

    connection.query = query


def test_without_a_receipt_it_stops_and_safe_mode_applies_it_again(place: Target) -> None:
    plan = replace(place.batch(BatchShape(1, 100)), receipts=False)
    lose_the_answer_of_a_commit(KeptWriter(plan.target, 0))
    with pytest.raises(TargetError) as caught:
        place.run(plan, CHANGES)
    assert caught.value.retryable
    place.run(replace(plan, safe=True), CHANGES)
    assert place.rows("t") == [(n, n) for n in range(5)]


def test_with_a_receipt_it_is_found_applied(place: Target) -> None:
    plan = place.batch(BatchShape(1, 100))
    lose_the_answer_of_a_commit(KeptWriter(plan.target, 0))
    assert place.run(plan, CHANGES)["t"].inserted == 5
    assert place.rows("t") == [(n, n) for n in range(5)]


def test_what_is_owed_is_added_once_where_the_answer_of_a_move_is_lost(place: Target) -> None:
    store = CheckpointStore(place.server.endpoint, place.meta, "s1")
    store.claim()
    store.owe(Account(skipped={("other.t", "block-allow-list"): 3}))
    lose_the_answer_of_a_commit(store)
    store.move(Location(END, "0-1-9"), {})
    store.move(Location(END, "0-1-9"), {})
    store.drop()
    assert place.server.query(f"SELECT name, rule, changes, events FROM {place.meta.left_out}") == [
        ("other.t", "block-allow-list", 0, 3)
    ]


def test_without_a_receipt_nothing_is_written_for_a_source_that_was_taken_over(place: Target) -> None:
    plan = replace(place.batch(BatchShape(1, 100)), receipts=False)
    place.server.run(f"UPDATE {place.meta.batch} SET epoch = epoch + 1")
    with pytest.raises(SyncError, match="SYNC-001"):
        place.run(plan, CHANGES)
    assert place.rows("t") == []
