"""A sharding DDL that waits for longer than `shard-wait-alert` is told, once."""

from __future__ import annotations

from typing import Any

import pytest

from unshard.model.position import Location, Position
from unshard.model.table import TableName
from unshard.mysql.connection import Endpoint
from unshard.shard.group import ShardingGroup, TableState
from unshard.shard.group_keeper import ShardingGroupKeeper
from unshard.shard.sequence import DdlItem
from unshard.sync.checkpoint.store import CheckpointStore
from unshard.sync.sharding import coordinator
from unshard.sync.sharding.coordinator import ShardingGroups
from unshard.target.meta import MetaTables

ONE, TWO = TableName("up", "t_1"), TableName("up", "t_2")
ITEM = DdlItem(
    Location(Position("b.000001", 4)), Location(Position("b.000001", 9)), ("ALTER",), time="2026-01-01T00:00:00+00:00"
)


class Told:
    """Takes the place of a logger, and keeps what it is told."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def __call__(self, name: str, **fields: str) -> Told:
        return self

    def error(self, event: str, **fields: Any) -> None:
        self.lines.append(f"{event}: {fields['waits_for']}")


@pytest.mark.parametrize(("seconds", "times"), [(0.0, 0), (60.0, 1), (1e10, 0)])
def test_it_is_told_once(seconds: float, times: int, monkeypatch: pytest.MonkeyPatch) -> None:
    told = Told()
    monkeypatch.setattr(coordinator, "logger", told)
    unused: Any = None
    store = CheckpointStore(Endpoint("127.0.0.1", 1, "root"), MetaTables("meta", "task"), "s1")
    waiting = ShardingGroups(store, unused, unused, unused, seconds)
    group = ShardingGroup("s1", TableName("db", "t"), {ONE: TableState(), TWO: TableState()}).meet(ONE, ITEM)
    waiting.keeper = ShardingGroupKeeper("s1").with_group(group)
    for _ in range(2):
        waiting.alert()
    assert told.lines == ["a sharding DDL waits for too long: s1 has not met it in up.t_2"] * times
    assert [one.overdue for one in waiting.shown] == [bool(times)]
    assert waiting.waiting()["db.t"].overdue is bool(times)
