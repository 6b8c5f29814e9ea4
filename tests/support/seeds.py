"""The seeds of random tests: fixed ones, or those that the environment asks for."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence


def rounds(seconds: float) -> Iterator[int]:
    """Yield 0, 1 and so on until the seconds are over, but 0 in any case: for random tests that are given a time."""
    number, ends = 0, time.monotonic() + seconds
    while number == 0 or time.monotonic() < ends:
        yield number
        number += 1


def seeds(fixed: Sequence[int]) -> Iterator[int]:
    """Yield the seeds of a random test: the fixed ones, or what the environment asks for.

    UNSHARD_FUZZ_SEED alone is the one seed. With UNSHARD_FUZZ_SECONDS there are new ones for so long, from
    UNSHARD_FUZZ_SEED on, or from the clock's. At least one is yielded in any case.
    """
    seed, seconds = os.environ.get("UNSHARD_FUZZ_SEED", ""), float(os.environ.get("UNSHARD_FUZZ_SECONDS", "0"))
    if not seed and not seconds:
        yield from fixed
        return
    first = int(seed) if seed else int(time.time())
    yield from (first + number for number in rounds(seconds))
