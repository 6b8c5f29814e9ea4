"""Receipts on a real server: claim, open, advance, close, and what a zombie meets."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import MySQLdb
import pytest

from unshard.errors import SyncError
from unshard.model.position import Position
from unshard.mysql.connection import rows
from unshard.target import receipts
from unshard.target.forget import forget_task
from unshard.target.meta import MetaTables
from unshard.target.receipts import Applied
from unshard.target.upstream import open_batch_gtid
from unshard.testing.mariadb_server import MariadbServer

pytestmark = pytest.mark.server
BATCH = receipts.OpenBatch(1, Position("b.000001", 4), Position("b.000001", 99), {"kind": "rows", "end_gtid": ""})


@pytest.fixture
def meta(target_server: MariadbServer, schema: str) -> MetaTables:
    return MetaTables(schema, "task")


@pytest.fixture
def connection(target_server: MariadbServer, meta: MetaTables) -> Iterator[Any]:
    found = target_server.connection()
    meta.create(found)
    meta.create(found)
    yield found
    found.close()


def advance(connection: Any, meta: MetaTables, epoch: int, chunk: int) -> int:
    with connection.cursor() as cursor:
        cursor.execute(receipts.advance_statement(meta, "s'1", 0, epoch, 1, Applied(chunk - 1), Applied(chunk)))
        return int(cursor.rowcount)


def test_each_claim_raises_the_epoch(connection: Any, meta: MetaTables) -> None:
    epochs = [receipts.claim(connection, meta, "s'1").epoch for _ in range(3)]
    assert epochs == [epochs[0], epochs[0] + 1, epochs[0] + 2]


def test_a_task_that_was_forgotten_has_no_epoch_of_its_former_life(connection: Any, meta: MetaTables) -> None:
    former = receipts.claim(connection, meta, "s'1")
    forget_task(connection, meta.schema, meta.task)
    meta.create(connection)
    assert receipts.claim(connection, meta, "s'1").epoch > former.epoch


def test_a_chunk_advances_once(connection: Any, meta: MetaTables) -> None:
    claim = receipts.claim(connection, meta, "s'1")
    receipts.open_batch(connection, meta, "s'1", claim.epoch, BATCH, 2)
    assert advance(connection, meta, claim.epoch, 1) == 1
    assert advance(connection, meta, claim.epoch, 1) == 0
    assert advance(connection, meta, claim.epoch, 3) == 0
    assert receipts.applied(connection, meta, "s'1", 0, claim.epoch, 1) == Applied(1)


def test_an_open_batch_outlives_its_driver_with_its_chunks(connection: Any, meta: MetaTables) -> None:
    first = receipts.claim(connection, meta, "s'1")
    receipts.open_batch(connection, meta, "s'1", first.epoch, BATCH, 1)
    advance(connection, meta, first.epoch, 1)
    second = receipts.claim(connection, meta, "s'1")
    assert second.open_batch == BATCH
    assert receipts.applied(connection, meta, "s'1", 0, second.epoch, 1) == Applied(1)
    assert advance(connection, meta, second.epoch, 2) == 1


def test_a_batch_of_which_nothing_is_applied_is_taken_back(connection: Any, meta: MetaTables) -> None:
    first = receipts.claim(connection, meta, "s'1")
    receipts.open_batch(connection, meta, "s'1", first.epoch, BATCH, 2)
    second = receipts.claim(connection, meta, "s'1")
    assert (second.open_batch, second.batch_id) == (None, 1)
    assert advance(connection, meta, first.epoch, 1) == 0
    receipts.open_batch(connection, meta, "s'1", second.epoch, replace(BATCH, batch_id=2), 2)
    assert receipts.applied(connection, meta, "s'1", 1, second.epoch, 2) == Applied(0)
    assert advance(connection, meta, second.epoch, 1) == 0, "of the batch before"


@pytest.mark.parametrize("reached", [Applied(0, 1), Applied(1)])
def test_a_batch_that_is_begun_stays_open(connection: Any, meta: MetaTables, reached: Applied) -> None:
    first = receipts.claim(connection, meta, "s'1")
    receipts.open_batch(connection, meta, "s'1", first.epoch, BATCH, 2)
    with connection.cursor() as cursor:
        cursor.execute(receipts.advance_statement(meta, "s'1", 1, first.epoch, 1, Applied(0), reached))
    assert receipts.claim(connection, meta, "s'1").open_batch == BATCH


def test_an_open_statement_stays_open(connection: Any, meta: MetaTables) -> None:
    first = receipts.claim(connection, meta, "s'1")
    statement = replace(BATCH, plan={"kind": "ddl", "end_gtid": ""})
    receipts.open_batch(connection, meta, "s'1", first.epoch, statement, 0)
    assert receipts.claim(connection, meta, "s'1").open_batch == statement


def test_a_zombie_can_neither_advance_nor_open_nor_close(connection: Any, meta: MetaTables) -> None:
    first = receipts.claim(connection, meta, "s'1")
    receipts.open_batch(connection, meta, "s'1", first.epoch, BATCH, 1)
    assert advance(connection, meta, first.epoch, 1) == 1
    second = receipts.claim(connection, meta, "s'1")
    assert advance(connection, meta, first.epoch, 2) == 0
    with pytest.raises(SyncError, match="SYNC-001"):
        receipts.applied(connection, meta, "s'1", 0, first.epoch, 1)
    with pytest.raises(SyncError, match="SYNC-001"):
        receipts.open_batch(connection, meta, "s'1", first.epoch, BATCH, 1)
    with connection.cursor() as cursor, pytest.raises(SyncError, match="SYNC-001"):
        receipts.mark_done(cursor, meta, "s'1", first.epoch, 1)
    with connection.cursor() as cursor:
        receipts.mark_done(cursor, meta, "s'1", second.epoch, 1)
    assert receipts.claim(connection, meta, "s'1").open_batch is None


def test_an_older_order_of_the_same_master_does_not_take_the_source_back(connection: Any, meta: MetaTables) -> None:
    old, new = (receipts.Order(7, epoch, worker) for epoch, worker in ((3, "worker-1"), (4, "worker-2")))
    first = receipts.claim(connection, meta, "s'1", old)
    assert receipts.claim(connection, meta, "s'1", old).epoch == first.epoch + 1  # a restart of the same
    heir = receipts.claim(connection, meta, "s'1", new)
    with pytest.raises(SyncError, match=r"order 3 of its master .*; worker-2 has it by the later order 4") as caught:
        receipts.claim(connection, meta, "s'1", old)
    assert caught.value.code == "SYNC-071"
    assert receipts.owns(connection, meta, "s'1", heir.epoch)
    by_hand = receipts.claim(connection, meta, "s'1")
    with pytest.raises(SyncError, match="`unshard run` has it"):
        receipts.claim(connection, meta, "s'1", old)
    assert receipts.claim(connection, meta, "s'1", new).epoch == by_hand.epoch + 1
    assert receipts.claim(connection, meta, "other", old).epoch


def test_a_master_with_another_store_is_not_locked_out(connection: Any, meta: MetaTables) -> None:
    receipts.claim(connection, meta, "s'1", receipts.Order(7, 400, "worker-1"))
    made_anew = receipts.Order(8, 1, "worker-1")
    assert receipts.claim(connection, meta, "s'1", made_anew).epoch


def test_a_task_of_an_earlier_version_gets_what_orders_need(connection: Any, meta: MetaTables) -> None:
    receipts.claim(connection, meta, "s'1")
    with connection.cursor() as cursor:
        cursor.execute(f"ALTER TABLE {meta.batch} DROP COLUMN cluster, DROP COLUMN order_epoch, DROP COLUMN worker")
    meta.create(connection)
    receipts.claim(connection, meta, "s'1", receipts.Order(7, 4, "worker-2"))
    with pytest.raises(SyncError, match="worker-2"):
        receipts.claim(connection, meta, "s'1", receipts.Order(7, 3, "worker-1"))


def test_nobody_claims_while_a_transaction_without_a_receipt_writes(
    connection: Any, meta: MetaTables, target_server: MariadbServer
) -> None:
    """Delivery at least once: what a frozen process has begun to write ends before another process goes on."""
    first = receipts.claim(connection, meta, "s'1")
    writer, other = target_server.connection(), target_server.connection()
    rows(writer, "BEGIN")
    assert receipts.owns(writer, meta, "s'1", first.epoch)
    rows(other, "SET SESSION innodb_lock_wait_timeout = 1")
    with pytest.raises(MySQLdb.OperationalError, match="1205"):
        rows(other, f"UPDATE {meta.batch} SET epoch = epoch + 1")
    rows(writer, "COMMIT")
    second = receipts.claim(other, meta, "s'1")
    rows(writer, "BEGIN")
    assert not receipts.owns(writer, meta, "s'1", first.epoch)
    assert receipts.owns(writer, meta, "s'1", second.epoch)
    for one in (writer, other):
        one.close()


def test_a_writer_without_a_receipt_that_falls_silent_is_ended_for_its_successor(
    connection: Any, meta: MetaTables, target_server: MariadbServer
) -> None:
    """By the limit of idle transactions that each session with the target gets, of one second here."""
    first = receipts.claim(connection, meta, "s'1")
    writer = target_server.connection()
    rows(writer, "SET SESSION idle_transaction_timeout = 1")
    rows(writer, "BEGIN")
    assert receipts.owns(writer, meta, "s'1", first.epoch)
    assert receipts.claim(connection, meta, "s'1").epoch == first.epoch + 1
    with pytest.raises(MySQLdb.OperationalError):
        rows(writer, "COMMIT")


def test_a_batch_is_in_the_target_once_it_is_begun(connection: Any, meta: MetaTables) -> None:
    """A server that takes the source's place needs what the target has, not what was only planned."""
    claim = receipts.claim(connection, meta, "s'1")
    assert open_batch_gtid(connection, meta, "s'1") == ""
    batch = replace(BATCH, plan={"kind": "rows", "end_gtid": "0-1-9"})
    receipts.open_batch(connection, meta, "s'1", claim.epoch, batch, 2)
    assert open_batch_gtid(connection, meta, "s'1") == ""
    advance(connection, meta, claim.epoch, 1)
    assert open_batch_gtid(connection, meta, "s'1") == "0-1-9"
    statement = replace(batch, batch_id=2, plan={"kind": "ddl", "end_gtid": "0-1-10"})
    with connection.cursor() as cursor:
        receipts.mark_done(cursor, meta, "s'1", claim.epoch, 1)
    receipts.open_batch(connection, meta, "s'1", claim.epoch, statement, 0)
    assert open_batch_gtid(connection, meta, "s'1") == "0-1-10"
