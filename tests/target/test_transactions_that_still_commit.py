"""A transaction of the driver is tried again while its first attempt still commits, whose connection was lost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from support.stopped_threads import Aside
from support.waiting import wait_until
from unshard.model.position import Location, Position
from unshard.mysql.connection import rows
from unshard.sync.batch.row_counts import Account
from unshard.sync.checkpoint.store import CheckpointStore
from unshard.target.meta import MetaTables
from unshard.testing.hold import stands_still
from unshard.testing.mariadb_server import MariadbServer

pytestmark = pytest.mark.server
BEGIN, END = (Location(Position("b.000001", offset), "") for offset in (4, 100))
SKIPPED = Account(skipped={("d.t", "a rule"): 3})


@pytest.fixture
def store(target_server: MariadbServer, schema: str) -> Iterator[CheckpointStore]:
    """The store of a source whose checkpoint is at 4."""
    target_server.run(f"CREATE DATABASE {schema}")
    found = CheckpointStore(target_server.endpoint, MetaTables(schema, "task"), "s1")
    found.claim()
    found.move(BEGIN, {})
    yield found
    found.leave()


def test_a_batch_is_closed_once(store: CheckpointStore, target_server: MariadbServer) -> None:
    """The second attempt, on another connection, waits for the first one's COMMIT and changes nothing."""
    assert store.open(BEGIN, END, {"kind": "rows"}, 1)

    def first(aside: Aside) -> None:
        def held(_: Any) -> None:
            aside.begun.set()
            assert aside.goes_on.wait(60)

        store.close(END, {}, SKIPPED, also=held)

    closing = Aside(first)
    assert closing.begun.wait(60)
    again = CheckpointStore(store.endpoint, store.meta, store.source, store.epoch, store.batch_id)
    second = Aside(lambda _: again.close(END, {}, SKIPPED))
    wait_until(lambda: stands_still(target_server), "the second attempt waits")
    closing.goes_on.set()
    assert (closing.join(), second.join()) == (None, None)
    again.leave()
    found = store.checkpoint()
    assert found is not None
    assert found.location == END
    asked = f"SELECT name, rule, events FROM {store.meta.left_out}"
    assert store.on_target(lambda connection: rows(connection, asked)) == [("d.t", "a rule", 3)]
