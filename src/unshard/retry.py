"""The retry policy, in one place: how often a failed operation is tried again, and after which pauses.

Pauses grow twofold up to LONGEST_PAUSE_SECONDS, with full jitter: each is drawn evenly from nothing to its ceiling, so
that connections which failed together don't come back together. What is worth another try at all is told by
`errors.is_retryable`, which for a server's own errors rests on `mysql.failures`.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

from unshard.errors import is_retryable
from unshard.log import logger
from unshard.metrics.events import count_own

ATTEMPTS = 15
"""About 40 s in all: time for a server to restart or to fail over."""

FIRST_PAUSE_SECONDS = 0.05
LONGEST_PAUSE_SECONDS = 10.0

T = TypeVar("T")


def pauses(longest: float = LONGEST_PAUSE_SECONDS) -> Iterator[float]:
    """The pause, in seconds, after each failure of a row of them; without end."""
    ceiling = FIRST_PAUSE_SECONDS
    while True:
        yield random.uniform(0, ceiling)
        ceiling = min(longest, ceiling * 2)


def retrying(
    operation: Callable[[], T],
    again: Callable[[Exception], bool] = is_retryable,
    attempts: int = ATTEMPTS,
    pause: Callable[[float], None] = time.sleep,
) -> T:
    """Call `operation` until it succeeds, fails for good, or has failed `attempts` times; then its error goes up."""
    waits = pauses()
    for _ in range(attempts - 1):
        try:
            return operation()
        except Exception as error:
            if not again(error):
                raise
            wait = next(waits)
            count_own("unshard_retries_total")
            logger("retry").warning("trying again", error=str(error), wait_seconds=round(wait, 2), sampled=True)
        pause(wait)
    return operation()
