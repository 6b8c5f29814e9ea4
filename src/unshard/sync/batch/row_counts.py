"""The ledger: what became of every change, per target table. A batch closes only when the sums agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from unshard.errors import SyncError, Where
from unshard.model.change import Op
from unshard.model.table import TableName
from unshard.target.row_counts import COUNTS

K = TypeVar("K")

_COLUMN = {Op.INSERT: "inserted", Op.INSERT_SET: "inserted", Op.UPDATE: "updated", Op.DELETE: "deleted"}


@dataclass(frozen=True, slots=True)
class RowCounts:
    """Counts of changes of one target table.

    decoded = filtered + compacted + inserted + updated + deleted, where a change of the key counts as two, unless it
    is filtered. `rules` has the filtered ones by rule. `missing` are updates and deletes that found no row, `example`
    what one of them looked for (SQL text).
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
        """By name of the column in the target."""
        return {name: getattr(self, name) for name in COUNTS}

    @property
    def applied(self) -> int:
        return self.inserted + self.updated + self.deleted


Ledger = Mapping[int, RowCounts]
"""By target id."""


def entry_of(op: Op, rows: int, missing: int = 0, example: str = "") -> RowCounts:
    """The entry for one statement's worth of applied changes."""
    counts: dict[str, Any] = {_COLUMN[op]: rows}
    return RowCounts(**counts, missing=missing, example=example)


def add_up(ledgers: Iterable[Mapping[K, RowCounts]]) -> dict[K, RowCounts]:
    total: dict[K, RowCounts] = {}
    for ledger in ledgers:
        for target, entry in ledger.items():
            total[target] = total.get(target, RowCounts()) + entry
    return total


Filtered = Mapping[tuple[int, str], int]
"""Changes left out, by target id and rule; an UPDATE is one, also one that changes the key."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What was seen before the exchange: changes that were shared out, by target id, and those left out by a rule.

    `events` are row events decoded, `skipped` by source table those that were passed over undecoded.
    """

    changes: Mapping[int, int] = field(default_factory=dict)
    filtered: Filtered = field(default_factory=dict)
    events: int = 0
    skipped: Mapping[TableName, int] = field(default_factory=dict)

    def __add__(self, other: Seen) -> Seen:
        return Seen(
            _sum(self.changes, other.changes),
            _sum(self.filtered, other.filtered),
            self.events + other.events,
            _sum(self.skipped, other.skipped),
        )

    @property
    def met(self) -> int:
        """All row events."""
        return self.events + sum(self.skipped.values())

    def left_out(self) -> dict[int, RowCounts]:
        """The ledger of what the rules left out."""
        return add_up(
            {target: RowCounts(decoded=count, filtered=count, rules={rule: count})}
            for (target, rule), count in self.filtered.items()
        )


@dataclass(frozen=True, slots=True)
class Account:
    """What became of a batch: the ledger by name of the target table, and row events that were passed over.

    Those are `skipped`, by name of the source table and by rule.
    """

    tables: Mapping[str, RowCounts] = field(default_factory=dict)
    skipped: Mapping[tuple[str, str], int] = field(default_factory=dict)

    def __add__(self, other: Account) -> Account:
        return Account(add_up([self.tables, other.tables]), _sum(self.skipped, other.skipped))


def _sum(one: Mapping[K, int], other: Mapping[K, int]) -> dict[K, int]:
    """By key, without what comes to nothing."""
    return dict(Counter(one) + Counter(other))


@dataclass(frozen=True, slots=True)
class LedgerReport:
    """What a task says of its share: what was seen before the exchange, and its ledger.

    In a keep-own batch every task sees the whole range, so all must see the same; in a shuffled one the
    sightings of all reports add up.
    `error` is an `UnshardError.to_dict()` or None. `chunks` are by partition how many there have been in the batch.
    """

    share: int
    seen: Seen
    ledger: Ledger
    seconds: Mapping[str, float]
    error: dict[str, Any] | None = None
    chunks: Mapping[int, int] = field(default_factory=dict)


def balance(
    reports: Iterable[LedgerReport], *, shuffled: bool, row_events: int, where: Where
) -> tuple[dict[int, RowCounts], Mapping[TableName, int]]:
    """The batch's ledger, and the row events passed over by source table.

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
    """Raise SyncError SYNC-064 where the decoder met not just the row events that the index counted."""
    if seen.met != row_events:
        values = {"indexed": str(row_events), "decoded": str(seen.events), "skipped": str(seen.met - seen.events)}
        raise SyncError("SYNC-064", where, values=values)
