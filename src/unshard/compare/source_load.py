"""Limits the load that a comparison puts on the sources, by pauses between its queries.

After each query the comparison pauses in proportion to the time of the query. A query keeps at most one core of its
server busy, so a share of the time is at most that share of one core. Queries that ran in parallel since the last pause
count as if they had run one after the other.

The time of a query that waits for a lock is no load, and can't be told from work. So at most MOST_BUSY_SECONDS count.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Event

DEFAULT_PERCENT = 10
LIMITED_SECONDS = 0.5
"""Target time of a range where the load is limited; the bursts between two rests are short then."""

MOST_BUSY_SECONDS = 4 * LIMITED_SECONDS
"""Seconds of work that one rest is for, at most; more are told."""


@dataclass(slots=True)
class SourceLoad:
    """The limit on the load of the sources: `rest` pauses after work on them. `percent` 0: no limit.

    `rested` is the time of all pauses, in seconds. `tell` takes lines of progress.
    """

    percent: int
    stop: Event
    tell: Callable[[str], None] = lambda line: None
    rested: float = 0.0
    _begun: float = field(default_factory=time.monotonic)

    @property
    def limited(self) -> bool:
        """True if the load on the sources is limited."""
        return self.percent > 0

    def rest(self, busy: float) -> None:
        """Rest after `busy` seconds of work on a source, until they are the share of the time since the last rest."""
        if self.limited:
            now = time.monotonic()
            counted = min(busy, MOST_BUSY_SECONDS)
            left = self._begun + busy - counted + counted * 100 / self.percent - now
            if busy > counted:
                self.tell(f"a source took {busy:.1f} s, slow or behind a lock: resting for {max(left, 0.0):.0f} s")
            self.stop.wait(max(left, 0.0))
            self._begun = time.monotonic()
            self.rested += self._begun - now
