"""Lines that would come without end while something fails: ten a minute of each are enough."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock

import structlog
from structlog.typing import EventDict, WrappedLogger

MOST_A_MINUTE = 10
_MINUTE = 60.0


@dataclass(slots=True)
class Sampler:
    """Drops a line with `sampled=True` where ten of its kind (message, task, source) came within the minute.

    The next one that is written tells in `left_out` how many were dropped.
    """

    clock: Callable[[], float] = time.monotonic
    _seen: dict[tuple[object, ...], tuple[float, int]] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def __call__(self, log: WrappedLogger, method: str, event: EventDict) -> EventDict:
        del log, method
        if not event.get("sampled"):
            return event
        kind, now = (event["event"], event.get("task"), event.get("source")), self.clock()
        with self._lock:
            begun, count = self._seen.get(kind, (now, 0))
            left_out = 0
            if now - begun >= _MINUTE:
                begun, left_out, count = now, max(0, count - MOST_A_MINUTE), 0
            self._seen[kind] = (begun, count + 1)
        if count >= MOST_A_MINUTE:
            raise structlog.DropEvent
        return {**event, "left_out": left_out} if left_out else event
