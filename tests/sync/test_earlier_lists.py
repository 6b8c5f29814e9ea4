"""The block-allow lists by which a source has been followed, on record in the target."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from unshard.config.rules import BlockAllowRule
from unshard.model.position import Location, Position
from unshard.model.table import TableName
from unshard.sync.checkpoint.store import CheckpointStore
from unshard.sync.statements.earlier_lists import EarlierLists
from unshard.target.block_allow_lists import save_lists
from unshard.target.meta import MetaTables
from unshard.testing.mariadb_server import MariadbServer
from unshard.transform.source_rules import TableSelection

pytestmark = pytest.mark.server
ONE, TWO = TableName("one", "t"), TableName("two", "t")


@pytest.fixture
def store(target_server: MariadbServer, schema: str) -> Iterator[CheckpointStore]:
    made = CheckpointStore(target_server.endpoint, MetaTables(schema, "task"), "s1")
    made.claim()
    yield made
    made.drop()


def taking(*schemas: str) -> TableSelection:
    return TableSelection(BlockAllowRule(do_dbs=schemas))


def started(store: CheckpointStore, *schemas: str) -> EarlierLists:
    lists = EarlierLists(store, taking(*schemas))
    lists.restore()
    return lists


def move(store: CheckpointStore, offset: int) -> None:
    store.move(Location(Position("bin.000001", offset)), {})


def test_a_table_is_late_once_the_log_was_followed_without_it(store: CheckpointStore) -> None:
    move(store, 4)  # by an earlier version, which recorded no list
    assert not started(store, "one").leave_out(TWO)
    move(store, 5)
    wider = started(store, "one", "two")
    assert (wider.leave_out(ONE), wider.leave_out(TWO)) == (False, True)
    move(store, 6)
    assert started(store, "one", "two").leave_out(TWO), "a wider list brings no rows"
    move(store, 7)
    assert started(store, "two").leave_out(TWO)
    move(store, 8)
    back = started(store, "one", "two")
    assert (back.leave_out(ONE), back.leave_out(TWO)) == (True, True)
    assert store.lists == (), "it is on record already"


def test_a_list_under_which_nothing_was_passed_does_not_count(store: CheckpointStore) -> None:
    started(store, "one", "two")
    move(store, 4)
    started(store, "one")
    assert not started(store, "one", "two").leave_out(TWO)


def test_lists_of_an_earlier_attempt_do_not_count(store: CheckpointStore) -> None:
    store.in_one(lambda cursor: save_lists(cursor, store.meta, "s1", [taking("one").to_dict()]))
    assert not started(store, "two").leave_out(TWO)
    move(store, 4)
    assert not started(store, "two").leave_out(TWO)
