"""Exactly once, proved by both servers' binlogs: what was done upstream stands downstream, each change once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from unshard.model.table import TableName
from unshard.testing.binlog_count import RowEvent, exactly_once, row_events
from unshard.testing.compare import assert_equal
from unshard.testing.throwaway import ThrowawayServer


def assert_exactly_once(source: ThrowawayServer, target: ThrowawayServer, names: Sequence[TableName]) -> None:
    """Hold equal rows, and every row change of the source in the target's binlog just once.

    For tables that are not compacted and bear their names on both sides, with their key in the first column, and
    whose dump was taken while no row had been changed yet, only inserted.
    """
    for name in names:
        assert_equal([(source, name)], (target, name))
    against = exactly_once(as_applied(row_events(source, names)), as_applied(row_events(target, names)))
    assert not against, "\n".join(against)


def as_applied(events: Counter[RowEvent]) -> Counter[RowEvent]:
    """A change of the key counts as a DELETE and an INSERT, as it is applied."""
    applied: Counter[RowEvent] = Counter()
    for event, times in events.items():
        if event.kind == "UPDATE" and event.before[0] != event.after[0]:
            applied[RowEvent(event.table, "DELETE", event.before, ())] += times
            applied[RowEvent(event.table, "INSERT", (), event.after)] += times
        else:
            applied[event] += times
    return applied
