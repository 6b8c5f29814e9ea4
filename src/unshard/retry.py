"""The retry policy, in one place: how often a failed operation is tried again, and after which pauses.

Pauses grow twofold up to LONGEST_PAUSE_SECONDS, with full jitter: each is drawn evenly from nothing to its ceiling, so
that connections which failed together don't come back together. Which errors are worth another try is decided by
`errors.is_retryable`, which for a server's own errors rests on `mysql.failures`.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Event
from typing import TypeVar

from unshard.errors import is_retryable

ATTEMPTS = 15
"""About 40 s in all: time for a server to restart or to fail over."""

FIRST_PAUSE_SECONDS = 0.05
LONGEST_PAUSE_SECONDS = 10.0

T = TypeVar("T")

_GIVE_UP: ContextVar[Event | None] = ContextVar("give_up", default=None)


def pauses(longest: float = LONGEST_PAUSE_SECONDS) -> Iterator[float]:
    """Yield the pause in seconds after each failure in a row, without end."""
    ceiling = FIRST_PAUSE_SECONDS
    while True:
        yield random.uniform(0, ceiling)
        ceiling = min(longest, ceiling * 2)


@contextmanager
def given_up_by(event: Event) -> Iterator[None]:
    """Let this thread try nothing again once `event` is set, and end a pause under way."""
    token = _GIVE_UP.set(event)
    try:
        yield
    finally:
        _GIVE_UP.reset(token)


def given_up() -> bool:
    """Return whether the caller has to give up; for one that waits by itself."""
    event = _GIVE_UP.get()
    return event is not None and event.is_set()


def rest(seconds: float) -> None:
    """Pause. Returns early where the caller has to give up."""
    event = _GIVE_UP.get()
    if event is None:
        time.sleep(seconds)
    else:
        event.wait(seconds)


def retrying(
    operation: Callable[[], T],
    again: Callable[[Exception], bool] = is_retryable,
    attempts: int = ATTEMPTS,
    pause: Callable[[float], None] = rest,
) -> T:
    """Call `operation` until it succeeds, fails for good, or has failed `attempts` times; then its error goes up.

    So it does at once where the caller has to give up (`given_up_by`).
    """
    waits, give_up = pauses(), _GIVE_UP.get()
    for _ in range(attempts - 1):
        try:
            return operation()
        except Exception as error:
            if not again(error):
                raise
            wait = next(waits)
            from unshard.log import logger  # not above: a Spark worker process rarely tries again
            from unshard.metrics.events import count_own

            count_own("unshard_retries_total")
            logger("retry").warning("trying again", error=str(error), wait_seconds=round(wait, 2), sampled=True)
            pause(wait)
            if give_up is not None and give_up.is_set():
                raise
    return operation()
