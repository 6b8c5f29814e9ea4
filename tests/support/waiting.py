"""The one way in which tests wait: until a condition holds. Nothing sleeps for a fixed time, or looks only once."""

from __future__ import annotations

import time
from collections.abc import Callable

PATIENCE_SECONDS = 180.0
"""Longer than anything takes on a busy machine: only what never comes takes so long."""
_LOOK_SECONDS = 0.02
_LONGEST = 10
"""A wait for something that moves lasts for so many times its seconds at most."""


class ExpiredWait(AssertionError):
    """What a test has waited for did not come. The text says at its end what was seen in its place."""


def wait_until(
    condition: Callable[[], bool],
    what: str,
    seconds: float = PATIENCE_SECONDS,
    told: Callable[[], str] = str,
    every: float = _LOOK_SECONDS,
    progress: Callable[[], object] = str,
) -> None:
    """Wait until the condition holds. `what` says what it stands for, `told` what is seen in its place.

    It is looked at `every` so many seconds. Raises ExpiredWait where it does not hold after `seconds`, which begin anew
    whenever `progress` has another value, and what the condition raises.
    """
    begun = now = time.monotonic()
    deadline, seen, late = begun + seconds, progress(), False
    while not condition():
        if late:
            raise ExpiredWait(f"not in {now - begun:.0f} s: {what}\n{told()}")
        if (moved := progress()) != seen:
            deadline, seen = min(now, begun + (_LONGEST - 1) * seconds) + seconds, moved
        time.sleep(every)
        now = time.monotonic()
        late = now >= deadline  # a process that did not run for so long looks once more
