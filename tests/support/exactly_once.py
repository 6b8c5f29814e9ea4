"""Exactly once, proved by the source's binlog and what the target keeps: each change was applied, and once."""

from __future__ import annotations

from collections.abc import Sequence

from unshard.model.table import TableName
from unshard.testing.applied_once import not_once
from unshard.testing.binlog_count import row_log
from unshard.testing.compare import assert_equal
from unshard.testing.throwaway_server import ThrowawayServer


def assert_exactly_once(source: ThrowawayServer, target: ThrowawayServer, names: Sequence[TableName]) -> None:
    """Hold equal rows, and every row change of the source applied to the target just once.

    For tables that are not compacted and bear their names on both sides, with their key in the first column, and
    whose dump was taken while no row had been changed yet, only inserted.
    """
    for name in names:
        assert_equal([(source, name)], (target, name))
    against = not_once(row_log(source, names), target, names)
    assert not against, "\n".join(against)
