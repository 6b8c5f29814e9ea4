"""Row events that a batch skips undecoded. Each of them is in the ledger, with the rule by which it is skipped."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from unshard.errors import Where
from unshard.model.table import TableName
from unshard.sync.batch.plan import BatchPlan
from unshard.sync.batch.row_counts import Account, Seen, check_events
from unshard.sync.changes.decode import decode_all

Why = Callable[[TableName], str]
"""Returns the rule, as the ledger names it, by which row events of a table are skipped."""


def pass_over(plan: BatchPlan, why: Why, where: Where) -> Account:
    """Return the account of a batch that has no tables. Raises SyncError SYNC-064, BinlogError as `decode_range`."""
    seen = sum((decode_all(plan, piece)[1] for piece in plan.ranges), Seen())
    check_events(seen, plan.row_events, where)
    return Account(skipped=by_rule(seen.skipped, why))


def by_rule(skipped: Mapping[TableName, int], why: Why) -> dict[tuple[str, str], int]:
    """Return the number of row events by name of the source table and by rule."""
    return {(str(table), why(table)): events for table, events in skipped.items()}
