"""One throttle for a target over all sources of a task: how many rows a second, and by how many connections.

The driver gives each batch a share of both, and the batch's tasks keep to it (`sync.steps.pacer`). Shares of batches
that run at the same time never add up to more than the limits; a batch waits until enough is left for its share. Other
processes keep to the limits by a record in the target (`target.rate_limiter`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from threading import Condition

from unshard.metrics.events import count_own
from unshard.sync.batch.plan import BatchPlan
from unshard.sync.batch.row_counts import LedgerReport
from unshard.target.rate_limiter import WAITED, RateLimiter

RunBatch = Callable[[BatchPlan], list[LedgerReport]]
_ROUNDING = 1e-6


@dataclass(frozen=True, slots=True)
class TargetLimits:
    """The limits of a target. 0: no limit."""

    rows_per_second: float = 0
    connections: int = 0


@dataclass(slots=True)
class Throttle:
    """The throttle of one target, shared by the threads of all sources of the task that write to it.

    `gate` limits the rate over all processes.
    """

    limits: TargetLimits
    gate: RateLimiter | None = None
    _granted: list[TargetLimits] = field(default_factory=list)
    _claimants: int = 0
    _changed: Condition = field(default_factory=Condition)

    def around(self, run: RunBatch) -> RunBatch:
        """Return a function that waits for a share of the limits, and calls `run` with the share in the plan."""

        def limited(plan: BatchPlan) -> list[LedgerReport]:
            with self.share() as share:
                return run(replace(_within(plan, share), gate=self.gate))

        return run if self.limits == TargetLimits() else limited

    @contextmanager
    def share(self) -> Iterator[TargetLimits]:
        """Take an even share of the limits until the end of the block; waits while others hold too much of them."""
        with self._changed:
            self._claimants += 1
            begun = time.monotonic()
            while not self._fits(share := self._even()):
                self._changed.wait()
            count_own(WAITED, time.monotonic() - begun)
            self._granted.append(share)
        try:
            yield share
        finally:
            with self._changed:
                self._granted.remove(share)
                self._claimants -= 1
                self._changed.notify_all()

    def _even(self) -> TargetLimits:
        rows, connections = self.limits.rows_per_second, self.limits.connections
        return TargetLimits(rows / self._claimants, max(1, connections // self._claimants) if connections else 0)

    def _fits(self, share: TargetLimits) -> bool:
        rows = share.rows_per_second + sum(one.rows_per_second for one in self._granted)
        connections = share.connections + sum(one.connections for one in self._granted)
        return rows <= self.limits.rows_per_second * (1 + _ROUNDING) and connections <= self.limits.connections


def _within(plan: BatchPlan, share: TargetLimits) -> BatchPlan:
    """Return the same batch with the same chunks, in fewer tasks where there are fewer connections than tasks."""
    limited = replace(plan, rows_per_second=share.rows_per_second, connections=share.connections)
    if share.connections:
        limited = replace(limited, shares=min(plan.shares, share.connections))
    return limited
