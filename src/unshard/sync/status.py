"""What a sync unit says of itself: the figures behind the status line and `query-status`."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from threading import Lock

from unshard.model.position import Location
from unshard.sync.lag import Lag, Sighting
from unshard.sync.ledger import Account, Entry

WINDOW_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class SyncStatus:
    """One reading. `lag_seconds` is None while it is unknown (`sync.lag`); `rows` counts applied changes.

    `tables` has by target table what became of its changes, as the ledger in the target, `skipped` by source table and
    rule the row events that were passed over. `safe_mode` tells why it is
    on; empty: it is off.
    """

    location: Location | None
    rows: int
    rows_per_second: float
    batches: int
    lag_seconds: float | None
    missing: int
    doing: str
    step_seconds: Mapping[str, float]
    tables: Mapping[str, Entry]
    safe_mode: str = ""
    skipped: Mapping[tuple[str, str], int] = field(default_factory=dict)


@dataclass(slots=True)
class Meter:
    """Gathers a unit's figures. Written by the unit's thread, read by any."""

    location: Location | None = None
    doing: str = "starting"
    rows: int = 0
    batches: int = 0
    missing: int = 0
    behind: bool = True
    safe_mode: str = ""
    tables: dict[str, Entry] = field(default_factory=dict)
    skipped: Counter[tuple[str, str]] = field(default_factory=Counter)
    steps: dict[str, float] = field(default_factory=dict)
    _lag: Lag = field(default_factory=Lag)
    _recent: deque[tuple[float, int]] = field(default_factory=deque)
    _lock: Lock = field(default_factory=Lock)

    def passed(self, account: Account) -> None:
        """A stretch of the log was passed over: nothing of it is for the target."""
        with self._lock:
            self.skipped.update(account.skipped)

    def applied(self, account: Account, commit_time: float, now: float) -> None:
        """A batch was closed: what became of it, and the upstream's commit time of its end (unix seconds)."""
        total = account.tables
        with self._lock:
            self.skipped.update(account.skipped)
            for table, entry in total.items():
                self.tables[table] = self.tables.get(table, Entry()) + entry
            rows = sum(entry.decoded for entry in total.values())
            self.rows += rows
            self.batches += 1
            self.missing += sum(entry.missing for entry in total.values())
            self._lag.committed(commit_time)
            self._recent.append((now, rows))

    def read(self, now: float, sighting: Sighting | None) -> SyncStatus:
        """The figures at `now` (monotonic), with what the source said last of itself; None: it can't be asked."""
        with self._lock:
            self._lag.sighted(sighting)
            while self._recent and self._recent[0][0] < now - WINDOW_SECONDS:
                self._recent.popleft()
            rate = sum(rows for _, rows in self._recent) / WINDOW_SECONDS
            lag = None
            if self.location is not None:
                lag = self._lag.read(self.location.position, now, behind=self.behind)
            return SyncStatus(
                location=self.location,
                rows=self.rows,
                rows_per_second=rate,
                batches=self.batches,
                lag_seconds=lag,
                missing=self.missing,
                doing=self.doing,
                step_seconds=dict(self.steps),
                tables=dict(self.tables),
                safe_mode=self.safe_mode,
                skipped=dict(self.skipped),
            )
