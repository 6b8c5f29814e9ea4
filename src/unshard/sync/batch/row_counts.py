"""The ledger of a batch: it counts every change by its outcome, by target table.

A batch closes only when the sums agree.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from unshard.errors import SyncError, Where
from unshard.model.change import Op
from unshard.model.table import TableName
from unshard.target.meta import COUNTS

if TYPE_CHECKING:  # only validated tasks report keys, and few values are clamped
    from unshard.sync.batch.key_report import KeyReport
    from unshard.transform.latest_time import ClampedValue

K = TypeVar("K")

_COLUMN = {Op.INSERT: "inserted", Op.INSERT_SET: "inserted", Op.UPDATE: "updated", Op.DELETE: "deleted"}


@dataclass(frozen=True, slots=True)
class RowCounts:
    """The number of changes of a target table, by their outcome.

    decoded = filtered + compacted + inserted + updated + deleted, where a change of the key counts as two, unless it is
    filtered. `rules`: the filtered changes by rule. `missing`: updates and deletes that found no row. `example`: the
    condition of one of these, as SQL.
    """

    decoded: int = 0
    compacted: int = 0
    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    missing: int = 0
    example: str = ""
    filtered: int = 0
    rules: Mapping[str, int] = field(default_factory=dict)

    def __add__(self, other: RowCounts) -> RowCounts:
        sums: dict[str, Any] = {name: getattr(self, name) + getattr(other, name) for name in COUNTS}
        return RowCounts(**sums, example=self.example or other.example, rules=_sum(self.rules, other.rules))

    @property
    def counts(self) -> dict[str, int]:
        """The counts by name of the column in the target."""
        return {name: getattr(self, name) for name in COUNTS}

    @property
    def applied(self) -> int:
        """The number of changes that were applied."""
        return self.inserted + self.updated + self.deleted


Ledger = Mapping[int, RowCounts]
"""The counts by target id."""


def entry_of(op: Op, rows: int, missing: int = 0, example: str = "") -> RowCounts:
    """Return the counts of one statement's applied changes."""
    counts: dict[str, Any] = {_COLUMN[op]: rows}
    return RowCounts(**counts, missing=missing, example=example)


def add_up(ledgers: Iterable[Mapping[K, RowCounts]]) -> dict[K, RowCounts]:
    """Return the sum of ledgers, by their keys."""
    total: dict[K, RowCounts] = {}
    for ledger in ledgers:
        for target, entry in ledger.items():
            total[target] = total.get(target, RowCounts()) + entry
    return total


Filtered = Mapping[tuple[int, str], int]
"""Changes that are left out, by target id and rule; an UPDATE is one, also if it changes the key."""


@dataclass(frozen=True, slots=True)
class Seen:
    """Counts of the changes and row events before the exchange.

    Args:
        changes: by target id, the changes that were distributed.
        filtered: the changes that a rule excluded.
        events: the row events that were decoded.
        skipped: by source table, the row events that were skipped undecoded.
        keys: the changed keys, for continuous validation where it is on; each task reports a part of them.
        clamped: the values that were clamped; of tasks that decode the same ranges only the first reports them.
    """

    changes: Mapping[int, int] = field(default_factory=dict)
    filtered: Filtered = field(default_factory=dict)
    events: int = 0
    skipped: Mapping[TableName, int] = field(default_factory=dict)
    keys: tuple[KeyReport, ...] = field(default=(), compare=False)
    clamped: tuple[ClampedValue, ...] = field(default=(), compare=False)

    def __add__(self, other: Seen) -> Seen:
        return Seen(
            _sum(self.changes, other.changes),
            _sum(self.filtered, other.filtered),
            self.events + other.events,
            _sum(self.skipped, other.skipped),
            self.keys + other.keys,
            self.clamped + other.clamped,
        )

    @property
    def met(self) -> int:
        """The number of all row events."""
        return self.events + sum(self.skipped.values())

    def left_out(self) -> dict[int, RowCounts]:
        """Return the ledger of what the rules left out."""
        return add_up(
            {target: RowCounts(decoded=count, filtered=count, rules={rule: count})}
            for (target, rule), count in self.filtered.items()
        )


@dataclass(frozen=True, slots=True)
class Account:
    """The row counts of a batch.

    `tables`: the counts by name of the target table. `skipped`: the row events that were skipped undecoded, by name of
    the source table and by rule.
    """

    tables: Mapping[str, RowCounts] = field(default_factory=dict)
    skipped: Mapping[tuple[str, str], int] = field(default_factory=dict)

    def __add__(self, other: Account) -> Account:
        return Account(add_up([self.tables, other.tables]), _sum(self.skipped, other.skipped))


def _sum(one: Mapping[K, int], other: Mapping[K, int]) -> dict[K, int]:
    """Return the sums by key, without those that are 0."""
    return dict(Counter(one) + Counter(other))


@dataclass(frozen=True, slots=True)
class LedgerReport:
    """The report of one task of a batch.

    `seen`: its counts before the exchange. If each task keeps its own partitions, each decodes the whole range, so all
    must count the same; in a shuffled batch the counts of all reports add up. `ledger`: the row counts of its
    partitions. `seconds`: its time by step. `error` is an `UnshardError.to_dict()` or None. `chunks`: by partition, how
    many chunks there have been in the batch.
    """

    share: int
    seen: Seen
    ledger: Ledger
    seconds: Mapping[str, float]
    error: dict[str, Any] | None = None
    chunks: Mapping[int, int] = field(default_factory=dict)


def applied_chunks(reports: Iterable[LedgerReport]) -> dict[int, int]:
    """Return, by partition, how many chunks of the batch are applied. A partition without rows need not be there."""
    found: dict[int, int] = {}
    for report in reports:
        for part, count in report.chunks.items():
            found[part] = max(found.get(part, 0), count)
    return found


def balance(
    reports: Iterable[LedgerReport], *, shuffled: bool, row_events: int, where: Where
) -> tuple[dict[int, RowCounts], Mapping[TableName, int]]:
    """Return the batch's ledger, and the row events that were skipped by source table.

    `row_events` is how many the index counted. Raises SyncError SYNC-002 when a change is unaccounted for, SYNC-064
    when a row event is.
    """
    reports = list(reports)
    applied = add_up(report.ledger for report in reports)
    sightings = [report.seen + Seen() for report in reports]
    if shuffled:
        sightings = [sum(sightings, Seen())]
    kept = {target: entry.decoded for target, entry in applied.items() if entry.decoded}
    for seen in sightings:
        check_events(seen, row_events, where)
        if seen.changes != kept:
            raise SyncError("SYNC-002", where, cause=f"seen {seen.changes}, shared out {kept}")
        if seen != sightings[0]:
            raise SyncError("SYNC-002", where, cause=f"one task saw {sightings[0]}, another {seen}")
    total = add_up([applied, sightings[0].left_out()])
    for target, entry in total.items():
        if entry.decoded != entry.filtered + entry.compacted + entry.applied:
            raise SyncError("SYNC-002", where, cause=f"target {target}: {entry}")
    return total, sightings[0].skipped


def check_events(seen: Seen, row_events: int, where: Where) -> None:
    """Raise SyncError SYNC-064 unless the decoder met exactly the row events that the index counted."""
    if seen.met != row_events:
        values = {"indexed": str(row_events), "decoded": str(seen.events), "skipped": str(seen.met - seen.events)}
        raise SyncError("SYNC-064", where, values=values)
