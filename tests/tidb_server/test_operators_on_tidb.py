"""Operators and batches on TiDB: a batch is opened by those that are pending when its row is locked."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from support.held_commits import opened_during_revert
from unshard.model.position import Location, Position
from unshard.mysql.connection import rows
from unshard.sync.checkpoint.store import CheckpointStore
from unshard.target.meta import MetaTables
from unshard.target.operators import OperatorKind, give, load_operators, revert
from unshard.testing.tidb_server import TidbServer

pytestmark = pytest.mark.server
THERE = Position("b.000001", 50)


@pytest.fixture
def store(tidb: TidbServer, schema: str) -> Iterator[CheckpointStore]:
    found = CheckpointStore(tidb.endpoint, MetaTables(schema, "task"), "s1")
    found.claim()
    yield found
    tidb.run(f"DROP DATABASE {schema}")


def test_a_batch_is_opened_by_the_operators_that_are_pending(tidb: TidbServer, store: CheckpointStore) -> None:
    """Also where one is taken back while the batch waits for the lock."""
    begin, end = Location(Position("b.000001", 4)), Location(Position("b.000001", 100))
    store.move(begin, {})

    def opened(*numbers: int) -> bool:
        return store.open(begin, end, {"kind": "rows", "operators": numbers, "left_out": []}, 1, numbers)

    with closing(tidb.connection()) as command, closing(tidb.connection()) as other:
        assert give(command, store.meta, "s1", OperatorKind.SKIP, THERE, (), "me")
        ((number,),) = rows(command, f"SELECT number FROM {store.meta.operator}")
        assert not opened()
        assert not opened_during_revert(tidb, other, store, THERE, lambda: opened(number))
        assert give(command, store.meta, "s1", OperatorKind.SKIP, THERE, (), "me")
        (pending,) = load_operators(command, store.meta, "s1")
        assert opened(pending.number)
        assert not revert(command, store.meta, "s1", THERE, "me")
