"""A stretch of the log of which some tables can't be read: they are left aside, of the others nothing is missed."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from unshard.errors import BinlogError, ShardError, Where
from unshard.model.position import Position
from unshard.model.table import TableName
from unshard.sync.sharding.moved_rows import MovedRows

A, B, C = (TableName("up", f"t_{letter}") for letter in "abc")


class Stretch(MovedRows):
    """Reads names in the place of keys."""

    unread: tuple[set[TableName], ...] = ()
    reads = 0

    def _members(self, look: Any, rows: Any) -> list[TableName]:
        return [A, B, C]

    def _read(self, look: Any, rows: Any, names: Sequence[TableName]) -> Any:
        self.reads += 1
        if any(bad <= set(names) for bad in self.unread):
            raise BinlogError("BINLOG-023", Where(position="bin.000001:7"))
        return list(names)


def read(*unread: set[TableName], strict: bool = False) -> tuple[list[Any], Stretch]:
    stretch = Stretch("s1", Any, Any, Any)  # type: ignore[arg-type]
    stretch.unread = unread
    group = SimpleNamespace(target=TableName("db", "t"))
    look: Any = SimpleNamespace(aside=set(), strict=strict, operators=(), group=group)
    rows: Any = SimpleNamespace(begin=Position("bin.000001", 4))
    return stretch._keys(look, rows), stretch


@pytest.mark.parametrize(
    ("unread", "left", "reads"),
    [
        ((), [A, B, C], 1),
        (({B},), [A, C], 5),
        (({A}, {B}, {C}), [], 4),
        (({A, B},), [], 4),
    ],
    ids=["none", "one", "all", "two that can be read alone"],
)
def test_what_can_be_read_is_read_together(unread: tuple[set[TableName], ...], left: list[Any], reads: int) -> None:
    found, stretch = read(*unread)
    assert (found, stretch.reads) == (left, reads)


def test_it_stops_where_a_row_would_be_written_over_unseen() -> None:
    with pytest.raises(ShardError, match="SHARD-032"):
        read({A, B}, strict=True)
