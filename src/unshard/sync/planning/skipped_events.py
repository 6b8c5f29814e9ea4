"""Row events that a batch skips undecoded. Each of them is in the ledger, with the rule by which it is skipped.

An application may make tables with ever new names that no rule takes. So only MOST_TABLES tables of a source are in the
ledger, in the status and in the metrics by their names; the events of all others are counted together, by rule.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from unshard.errors import Where
from unshard.model.table import TableName
from unshard.sync.batch.plan import BatchPlan
from unshard.sync.batch.row_counts import Account, Seen, check_events
from unshard.sync.changes.decode import decode_all
from unshard.sync.checkpoint.store import CheckpointStore
from unshard.target.row_counts import tables_with_events

MOST_TABLES = 300

OTHERS = "other tables"
"""Stands for the further tables. The name of a table has a dot after that of its schema."""

Why = Callable[[TableName], str]
"""Returns the rule, as the ledger names it, by which row events of a table are skipped."""


class SkippedTables:
    """The names by which skipped row events are counted: a table that has one keeps it, the first ones get one.

    `recorded` returns the tables that the target has counts of; it is called once, before the first events are counted.
    """

    def __init__(self, why: Why, recorded: Callable[[], Iterable[str]]) -> None:
        self._why = why
        self._recorded = recorded
        self._names: set[str] | None = None

    def by_rule(self, skipped: Mapping[TableName, int]) -> dict[tuple[str, str], int]:
        """Return the number of row events by name and by rule."""
        found = Counter[tuple[str, str]]()
        for table, events in skipped.items():
            found[self._name(str(table)), self._why(table)] += events
        return dict(found)

    def _name(self, table: str) -> str:
        if self._names is None:
            self._names = set(self._recorded())
        if len(self._names) < MOST_TABLES:
            self._names.add(table)
        return table if table in self._names else OTHERS


def recorded_tables(store: CheckpointStore) -> set[str]:
    """Return tables whose skipped row events are counted by name, in the target or in what is owed to it."""
    owed = {name for name, _ in store.owed.skipped}
    recorded = store.on_target(lambda c: tables_with_events(c, store.meta, store.source, MOST_TABLES + 1))
    return {*owed, *recorded} - {OTHERS}


def pass_over(plan: BatchPlan, tables: SkippedTables, where: Where) -> Account:
    """Return the account of a batch that has no tables. Raises SyncError SYNC-064, BinlogError as `decode_range`."""
    seen = sum((decode_all(plan, piece)[1] for piece in plan.ranges), Seen())
    check_events(seen, plan.row_events, where)
    return Account(skipped=tables.by_rule(seen.skipped))
