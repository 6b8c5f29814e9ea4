"""The pauses that keep a task to its share of the target's rate (`sync.batch.throttle`)."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock

from unshard.retry import rest


@dataclass(slots=True)
class Pacer:
    """A limiter that keeps the threads of a task to a rate, in rows a second."""

    rate: float
    sleep: Callable[[float], None] = rest
    clock: Callable[[], float] = time.monotonic
    _lock: Lock = field(default_factory=Lock)
    _free_at: float = 0.0

    def wait(self, rows: int, seconds: float) -> None:
        """Wait as long as the rate requires for `rows` that were just written in `seconds`."""
        with self._lock:
            now = self.clock()
            self._free_at = max(self._free_at, now - seconds) + rows / self.rate
            pause = self._free_at - now
        if pause > 0:
            from unshard.metrics.events import count_own  # only a limited target is waited for
            from unshard.target.rate_limiter import WAITED

            count_own(WAITED, pause)
            self.sleep(pause)
