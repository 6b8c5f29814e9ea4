"""The retry policy, in one place: exponential pauses with full jitter, bounded in number and length."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

FIRST_PAUSE_SECONDS = 0.05
LONGEST_PAUSE_SECONDS = 10.0

T = TypeVar("T")


def backoff(attempts: int) -> Iterator[float]:
    """The pauses, in seconds, to take after each of `attempts` failed tries."""
    for attempt in range(attempts):
        ceiling = min(LONGEST_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * 2**attempt)
        yield random.uniform(ceiling / 2, ceiling)


def retrying(
    operation: Callable[[], T],
    is_retryable: Callable[[Exception], bool],
    attempts: int = 8,
    pause: Callable[[float], None] = time.sleep,
) -> T:
    """Call `operation` until it succeeds, fails for good, or has failed `attempts` times; then its error goes up."""
    pauses = list(backoff(attempts - 1))
    for seconds in pauses:
        try:
            return operation()
        except Exception as error:
            if not is_retryable(error):
                raise
        pause(seconds)
    return operation()
