"""Runs tasks in threads of this process instead of Spark, with the same contract, for tests of single units."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

_WAIT_SECONDS = 60
_barriers: list[threading.Barrier] = []


def run_tasks(payloads: Sequence[bytes], task: Callable[[bytes], bytes], *, barrier: bool = False) -> list[bytes]:
    """Run `task` once for each payload, two at a time, or all together with `barrier`. Returns the results in order."""
    if not payloads:
        return []
    _barriers[:] = [threading.Barrier(len(payloads))]
    with ThreadPoolExecutor(len(payloads) if barrier else 2) as pool:
        return list(pool.map(task, payloads))


def wait() -> None:
    """Wait at the barrier of the running tasks. Raises threading.BrokenBarrierError if one of them never comes."""
    _barriers[0].wait(_WAIT_SECONDS)
