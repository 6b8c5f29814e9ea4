"""Limits the load that a comparison puts on the sources, by pauses between queries.

The pause after a query is proportional to the time of the query. A query keeps at most one core of its server busy, so
a share of the time is at most that share of one core. The times of all queries since the last pause are added up, also
of those that ran at the same time.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from threading import Event

DEFAULT_PERCENT = 10
LIMITED_SECONDS = 0.5
"""Target time of a range where the load is limited; the bursts between two rests are short then."""


@dataclass(slots=True)
class SourceLoad:
    """Rests after work on the sources. `percent` 0: never. `rested` is the time of all rests, in seconds."""

    percent: int
    stop: Event
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
            left = self._begun + busy * 100 / self.percent - now
            self.stop.wait(max(left, 0.0))
            self._begun = time.monotonic()
            self.rested += self._begun - now
