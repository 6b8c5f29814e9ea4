"""Limits the load that a comparison puts on the sources, by pauses between its queries.

After each query the comparison pauses in proportion to the time of the query. A query keeps at most one core of its
server busy, so a share of the time is at most that share of one core. Queries that ran in parallel since the last pause
count as if they had run one after the other.
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
    """The limit on the load of the sources: `rest` pauses after work on them. `percent` 0: no limit.

    `rested` is the time of all pauses, in seconds.
    """

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
