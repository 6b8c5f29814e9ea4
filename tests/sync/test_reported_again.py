"""A source that has reported its DDL, was taken out of the task and comes back reports it again."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from unshard.ddl.pieces import Rules
from unshard.model.position import Location, Position
from unshard.model.table import TableName
from unshard.shard.sequence import DdlItem
from unshard.sync.groups import ShardingGroups
from unshard.sync.journal import Journal
from unshard.sync.ownership import Ownership
from unshard.target.meta import MetaTables
from unshard.target.shard_locks import forget_source, load_keeper
from unshard.testing.servers import MariadbServer

pytestmark = pytest.mark.server
ONE, TARGET = TableName("up", "t_1"), TableName("db", "t")
RULES = Rules(lambda name: True, lambda schema: True, lambda name: TARGET, lambda schema: schema)
ITEM = DdlItem(Location(Position("b.000001", 4)), Location(Position("b.000001", 9)), ("ALTER",))


def started(journal: Journal) -> ShardingGroups:
    tables: Any = SimpleNamespace(held={})
    journal.claim()
    groups = ShardingGroups(journal, RULES, tables, lambda name: None)
    groups.restore({ONE})
    Ownership(journal, RULES, ("s1", "s2"), told=True).announce({ONE})
    return groups


def test_it_is_waited_for_and_told_again(target_server: MariadbServer, schema: str) -> None:
    journal = Journal(target_server.endpoint, MetaTables(schema, "task"), "s1")
    groups = started(journal)
    journal.in_one(groups.put(groups.keeper.group(TARGET).meet(ONE, ITEM)))

    def reports() -> list[str]:
        assert groups.next(ITEM.end) is None, "s2 has not said anything yet"
        keeper = journal.on_target(lambda c: load_keeper(c, journal.meta, TARGET))
        return [source for lock in keeper.locks for source in lock.reports]

    assert reports() == ["s1"]
    journal.in_one(lambda cursor: forget_source(cursor, journal.meta, "s1"))
    groups = started(journal)
    assert reports() == ["s1"]
    journal.drop()
