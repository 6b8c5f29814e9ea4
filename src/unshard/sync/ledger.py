"""The ledger: what became of every change, per target table. A batch closes only when the sums agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from unshard.errors import SyncError, Where
from unshard.model.change import Op
from unshard.target.ledger import COUNTS

_COLUMN = {Op.INSERT: "inserted", Op.INSERT_SET: "inserted", Op.UPDATE: "updated", Op.DELETE: "deleted"}


@dataclass(frozen=True, slots=True)
class Entry:
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

    def __add__(self, other: Entry) -> Entry:
        sums: dict[str, Any] = {name: getattr(self, name) + getattr(other, name) for name in COUNTS}
        rules = dict(Counter(self.rules) + Counter(other.rules)) if self.rules or other.rules else {}
        return Entry(**sums, example=self.example or other.example, rules=rules)

    @property
    def counts(self) -> dict[str, int]:
        """By name of the column in the target."""
        return {name: getattr(self, name) for name in COUNTS}

    @property
    def applied(self) -> int:
        return self.inserted + self.updated + self.deleted


Ledger = Mapping[int, Entry]
"""By target id."""


def entry_of(op: Op, rows: int, missing: int = 0, example: str = "") -> Entry:
    """The entry for one statement's worth of applied changes."""
    counts: dict[str, Any] = {_COLUMN[op]: rows}
    return Entry(**counts, missing=missing, example=example)


def add_up(ledgers: Iterable[Ledger]) -> dict[int, Entry]:
    total: dict[int, Entry] = {}
    for ledger in ledgers:
        for target, entry in ledger.items():
            total[target] = total.get(target, Entry()) + entry
    return total


@dataclass(frozen=True, slots=True)
class Seen:
    """What was seen before the exchange: changes that were shared out, by target id, and those left out by a rule."""

    changes: Mapping[int, int] = field(default_factory=dict)
    filtered: Mapping[tuple[int, str], int] = field(default_factory=dict)

    def __add__(self, other: Seen) -> Seen:
        changes, filtered = Counter(self.changes), Counter(self.filtered)
        changes.update(other.changes)
        filtered.update(other.filtered)
        return Seen(dict(+changes), dict(filtered))

    def left_out(self) -> dict[int, Entry]:
        """The ledger of what the rules left out."""
        return add_up(
            {target: Entry(decoded=count, filtered=count, rules={rule: count})}
            for (target, rule), count in self.filtered.items()
        )


@dataclass(frozen=True, slots=True)
class Report:
    """What a task says of its share: what was seen before the exchange, and its ledger.

    In a keep-own batch every task sees the whole range, so all must see the same; in a shuffled one the
    sightings of all reports add up.
    `error` is an `UnshardError.to_dict()` or None.
    """

    share: int
    seen: Seen
    ledger: Ledger
    seconds: Mapping[str, float]
    error: dict[str, Any] | None = None


def balance(reports: Iterable[Report], *, shuffled: bool, where: Where) -> dict[int, Entry]:
    """The batch's ledger. Raises SyncError SYNC-002 when a change is unaccounted for."""
    reports = list(reports)
    applied = add_up(report.ledger for report in reports)
    sightings = [report.seen + Seen() for report in reports]
    if shuffled:
        sightings = [sum(sightings, Seen())]
    kept = {target: entry.decoded for target, entry in applied.items() if entry.decoded}
    for seen in sightings:
        if seen.changes != kept:
            raise SyncError("SYNC-002", where, cause=f"seen {seen.changes}, shared out {kept}")
        if seen != sightings[0]:
            raise SyncError("SYNC-002", where, cause=f"one task saw {sightings[0]}, another {seen}")
    total = add_up([applied, *(seen.left_out() for seen in sightings[:1])])
    for target, entry in total.items():
        if entry.decoded != entry.filtered + entry.compacted + entry.applied:
            raise SyncError("SYNC-002", where, cause=f"target {target}: {entry}")
    return total
