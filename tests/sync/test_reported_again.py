"""A source that has reported its DDL, was taken out of the task and comes back reports it again."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from unshard.ddl.pieces import StatementRules
from unshard.model.position import Location, Position
from unshard.model.table import TableName
from unshard.shard.sequence import DdlItem
from unshard.sync.checkpoint.store import CheckpointStore
from unshard.sync.planning.target_tables import TargetTables
from unshard.sync.sharding.coordinator import Next, ShardingGroups
from unshard.sync.sharding.table_owners import Ownership
from unshard.target.meta import MetaTables
from unshard.target.sharding import announce, done, forget_source, join, load_keeper
from unshard.testing.mariadb_server import MariadbServer

pytestmark = pytest.mark.server
ONE, TARGET = TableName("up", "t_1"), TableName("db", "t")
RULES = StatementRules(lambda name: True, lambda schema: True, lambda name: TARGET, lambda schema: schema)
ITEM = DdlItem(Location(Position("b.000001", 4)), Location(Position("b.000001", 9)), ("ALTER",))


def started(store: CheckpointStore) -> ShardingGroups:
    tables: Any = SimpleNamespace(held={}, targets=TargetTables(lambda name: None))
    store.claim()
    groups = ShardingGroups(store, RULES, tables, lambda name: None)
    groups.restore({ONE})
    Ownership(store, RULES, ("s1", "s2"), told=True).announce({ONE})
    return groups


def test_it_is_waited_for_and_told_again(target_server: MariadbServer, schema: str) -> None:
    store = CheckpointStore(target_server.endpoint, MetaTables(schema, "task"), "s1")
    groups = started(store)
    store.in_one(groups.put(groups.keeper.group(TARGET).meet(ONE, ITEM)))

    def reports() -> list[str]:
        assert groups.next(ITEM.end) is None, "s2 has not said anything yet"
        keeper = store.on_target(lambda c: load_keeper(c, store.meta, TARGET))
        return [source for lock in keeper.locks for source in lock.reports]

    assert reports() == ["s1"]
    store.in_one(lambda cursor: forget_source(cursor, store.meta, "s1"))
    groups = started(store)
    assert reports() == ["s1"]
    store.drop()


def test_it_skips_what_the_others_have_run_without_it(target_server: MariadbServer, schema: str) -> None:
    store = CheckpointStore(target_server.endpoint, MetaTables(schema, "task"), "s1")
    groups = started(store)
    store.in_one(groups.put(groups.keeper.group(TARGET).meet(ONE, ITEM)))
    assert groups.next(ITEM.end) is None

    def without_it(cursor: Any) -> None:
        forget_source(cursor, store.meta, "s1")
        announce(cursor, store.meta, "s2", {TARGET: [ONE]}, ["s2"])
        for ddls in (ITEM.ddls, ("ALTER", "AGAIN")):
            join(cursor, store.meta, "s2", TARGET, ddls)
            done(cursor, store.meta, "s2", TARGET)

    store.in_one(without_it)
    groups = started(store)
    assert groups.next(ITEM.end) is None, "it reports"
    found = groups.next(ITEM.end)
    assert found is not None
    assert found[0] is Next.SKIP
    store.drop()
