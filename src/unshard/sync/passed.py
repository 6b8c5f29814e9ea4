"""Row events that are passed over undecoded: which they are, and why. Every one of them is in the ledger."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from unshard.errors import Where
from unshard.model.table import TableName
from unshard.sync.batch import BatchPlan
from unshard.sync.ledger import Account, Seen, check_events
from unshard.sync.pipeline import before_exchange

Why = Callable[[TableName], str]
"""The rule, as the ledger names it, by which row events of a table are passed over."""


def pass_over(plan: BatchPlan, why: Why, where: Where) -> Account:
    """What there is in a batch without tables. Raises SyncError SYNC-064, BinlogError as `decode_range`."""
    seen = sum((before_exchange(plan, pieces)[1] for pieces in plan.slices()), Seen())
    check_events(seen, plan.row_events, where)
    return Account(skipped=by_rule(seen.skipped, why))


def by_rule(skipped: Mapping[TableName, int], why: Why) -> dict[tuple[str, str], int]:
    """Row events by name of the source table and by rule."""
    return {(str(table), why(table)): events for table, events in skipped.items()}
