"""Operators and batches on TiDB: a batch is opened by those that are pending when its row is locked."""

from __future__ import annotations

from contextlib import closing

import pytest

from support.held_commits import HeldCommits
from support.stopped_threads import Aside
from support.waiting import wait_until
from unshard.model.position import Location, Position
from unshard.mysql.connection import rows
from unshard.sync.checkpoint.store import CheckpointStore
from unshard.target.meta import MetaTables
from unshard.target.operators import OperatorKind, give, load_operators, revert
from unshard.testing.tidb_server import TidbServer

pytestmark = pytest.mark.server
THERE = Position("b.000001", 50)


def test_a_batch_is_opened_by_the_operators_that_are_pending(tidb: TidbServer, schema: str) -> None:
    """Also where one is taken back while the batch waits for the lock."""
    store = CheckpointStore(tidb.endpoint, MetaTables(schema, "task"), "s1")
    store.claim()
    begin, end = Location(Position("b.000001", 4)), Location(Position("b.000001", 100))
    store.move(begin, {})

    def opened(*numbers: int) -> bool:
        return store.open(begin, end, {"kind": "rows", "operators": numbers, "left_out": []}, 1, numbers)

    with closing(tidb.connection()) as command, closing(tidb.connection()) as other:
        assert give(command, store.meta, "s1", OperatorKind.SKIP, THERE, (), "me")
        ((number,),) = rows(command, f"SELECT number FROM {store.meta.operator}")
        assert not opened()
        reverts = Aside(lambda aside: revert(HeldCommits(other, aside), store.meta, "s1", THERE, "me"))
        assert reverts.begun.wait(60)
        outcome: list[bool] = []
        opens = Aside(lambda _: outcome.append(opened(number)))
        waiting = "SELECT COUNT(*) FROM information_schema.DATA_LOCK_WAITS"
        wait_until(lambda: tidb.query(waiting) != [(0,)], "the batch waits")
        reverts.goes_on.set()
        assert (reverts.join(), opens.join()) == (None, None)
        assert outcome == [False]
        assert give(command, store.meta, "s1", OperatorKind.SKIP, THERE, (), "me")
        (pending,) = load_operators(command, store.meta, "s1")
        assert opened(pending.number)
        assert not revert(command, store.meta, "s1", THERE, "me")
    store.drop()
    tidb.run(f"DROP DATABASE {schema}")
