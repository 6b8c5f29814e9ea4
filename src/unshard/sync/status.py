"""What a sync unit says of itself: the figures behind the status line and `query-status`."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from threading import Lock

from unshard.model.position import Location
from unshard.sync.ledger import Entry

WINDOW_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class SyncStatus:
    """One reading. `lag_seconds` is None until something was applied; `rows` counts applied changes.

    `safe_mode` tells why it is on; empty: it is off.
    """

    location: Location | None
    rows: int
    rows_per_second: float
    batches: int
    lag_seconds: float | None
    missing: int
    doing: str
    step_seconds: Mapping[str, float]
    safe_mode: str = ""


@dataclass(slots=True)
class Meter:
    """Gathers a unit's figures. Written by the unit's thread, read by any."""

    location: Location | None = None
    doing: str = "starting"
    rows: int = 0
    batches: int = 0
    missing: int = 0
    commit_time: float | None = None
    behind: bool = True
    safe_mode: str = ""
    steps: dict[str, float] = field(default_factory=dict)
    _recent: deque[tuple[float, int]] = field(default_factory=deque)
    _lock: Lock = field(default_factory=Lock)

    def applied(self, total: Mapping[int, Entry], commit_time: float, now: float) -> None:
        """A batch was closed whose last transaction was committed upstream at `commit_time` (unix seconds)."""
        with self._lock:
            rows = sum(entry.decoded for entry in total.values())
            self.rows += rows
            self.batches += 1
            self.missing += sum(entry.missing for entry in total.values())
            self.commit_time = commit_time
            self._recent.append((now, rows))

    def read(self, now: float) -> SyncStatus:
        """The figures at `now`. Lag is the age of what was applied last while anything is waiting behind it."""
        with self._lock:
            while self._recent and self._recent[0][0] < now - WINDOW_SECONDS:
                self._recent.popleft()
            rate = sum(rows for _, rows in self._recent) / WINDOW_SECONDS
            lag = None if self.commit_time is None else max(0.0, now - self.commit_time)
            if not self.behind:
                lag = 0.0
            return SyncStatus(
                self.location,
                self.rows,
                rate,
                self.batches,
                lag,
                self.missing,
                self.doing,
                dict(self.steps),
                self.safe_mode,
            )
