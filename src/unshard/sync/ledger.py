"""The ledger: what became of every change, per target table. A batch closes only when the sums agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from unshard.errors import SyncError, Where
from unshard.model.change import Op

_COLUMN = {Op.INSERT: "inserted", Op.UPDATE: "updated", Op.DELETE: "deleted"}


@dataclass(frozen=True, slots=True)
class Entry:
    """Counts of changes of one target table.

    decoded = compacted + inserted + updated + deleted, where a change of the key counts as two. `missing`
    are updates and deletes that found no row.
    """

    decoded: int = 0
    compacted: int = 0
    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    missing: int = 0

    def __add__(self, other: Entry) -> Entry:
        return Entry(*(a + b for a, b in zip(asdict(self).values(), asdict(other).values(), strict=True)))

    @property
    def applied(self) -> int:
        return self.inserted + self.updated + self.deleted


Ledger = Mapping[int, Entry]
"""By target id."""


def entry_of(op: Op, rows: int, missing: int) -> Entry:
    """The entry for one statement's worth of applied changes."""
    return Entry(**{_COLUMN[op]: rows}, missing=missing)


def add_up(ledgers: Iterable[Ledger]) -> dict[int, Entry]:
    total: dict[int, Entry] = {}
    for ledger in ledgers:
        for target, entry in ledger.items():
            total[target] = total.get(target, Entry()) + entry
    return total


@dataclass(frozen=True, slots=True)
class Report:
    """What a task says of its share: changes seen in the whole range (before the exchange), and its ledger.

    `seen` counts row images by target id; every task that decodes the whole range must see the same.
    `error` is an `UnshardError.to_dict()` or None.
    """

    share: int
    seen: Mapping[int, int]
    ledger: Ledger
    seconds: Mapping[str, float]
    error: dict[str, Any] | None = None


def balance(reports: Iterable[Report], source: str, place: str) -> dict[int, Entry]:
    """The batch's ledger. Raises SyncError SYNC-002 when a change is unaccounted for."""
    reports = list(reports)
    total = add_up(report.ledger for report in reports)
    for target, entry in total.items():
        if entry.decoded != entry.compacted + entry.applied:
            raise SyncError("SYNC-002", Where(source=source, position=place), cause=f"target {target}: {entry}")
    sightings = {tuple(sorted(Counter(report.seen).items())) for report in reports}
    seen = Counter(reports[0].seen) if reports else Counter()
    kept = Counter({target: entry.decoded for target, entry in total.items()})
    if len(sightings) > 1 or seen != kept:
        cause = f"seen {dict(seen)}, shared out {dict(kept)}, {len(sightings)} different counts"
        raise SyncError("SYNC-002", Where(source=source, position=place), cause=cause)
    return total
