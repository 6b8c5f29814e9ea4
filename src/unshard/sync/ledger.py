"""The ledger: what became of every change, per target table. A batch closes only when the sums agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from unshard.errors import SyncError, Where
from unshard.model.change import Op

_COLUMN = {Op.INSERT: "inserted", Op.INSERT_SET: "inserted", Op.UPDATE: "updated", Op.DELETE: "deleted"}


@dataclass(frozen=True, slots=True)
class Entry:
    """Counts of changes of one target table.

    decoded = compacted + inserted + updated + deleted, where a change of the key counts as two. `missing`
    are updates and deletes that found no row, `example` what one of them looked for (SQL text).
    """

    decoded: int = 0
    compacted: int = 0
    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    missing: int = 0
    example: str = ""

    def __add__(self, other: Entry) -> Entry:
        return Entry(
            **{name: getattr(self, name) + getattr(other, name) for name in COUNTS},
            example=self.example or other.example,
        )

    @property
    def applied(self) -> int:
        return self.inserted + self.updated + self.deleted


COUNTS = ("decoded", "compacted", "inserted", "updated", "deleted", "missing")
"""The counts of an entry, which are columns of the ledger in the target as well."""

Ledger = Mapping[int, Entry]
"""By target id."""


def entry_of(op: Op, rows: int, missing: int = 0, example: str = "") -> Entry:
    """The entry for one statement's worth of applied changes."""
    return Entry(**{_COLUMN[op]: rows}, missing=missing, example=example)


def add_up(ledgers: Iterable[Ledger]) -> dict[int, Entry]:
    total: dict[int, Entry] = {}
    for ledger in ledgers:
        for target, entry in ledger.items():
            total[target] = total.get(target, Entry()) + entry
    return total


@dataclass(frozen=True, slots=True)
class Report:
    """What a task says of its share: changes seen before the exchange, by target id, and its ledger.

    In a keep-own batch every task sees the whole range, so all must see the same; in a shuffled one the
    sightings of all reports add up.
    `error` is an `UnshardError.to_dict()` or None.
    """

    share: int
    seen: Mapping[int, int]
    ledger: Ledger
    seconds: Mapping[str, float]
    error: dict[str, Any] | None = None


def balance(reports: Iterable[Report], *, shuffled: bool, where: Where) -> dict[int, Entry]:
    """The batch's ledger. Raises SyncError SYNC-002 when a change is unaccounted for."""
    reports = list(reports)
    total = add_up(report.ledger for report in reports)
    sightings = [Counter(report.seen) for report in reports]
    if shuffled:
        sightings = [sum(sightings, Counter())]
    kept = Counter({target: entry.decoded for target, entry in total.items()})
    for target, entry in total.items():
        if entry.decoded != entry.compacted + entry.applied:
            raise SyncError("SYNC-002", where, cause=f"target {target}: {entry}")
    for seen in sightings:
        if +seen != +kept:
            raise SyncError("SYNC-002", where, cause=f"seen {dict(seen)}, shared out {dict(kept)}")
    return total
