"""The size of a source's next batch, which follows the backlog and the target's latency.

A batch should take a second or two: long enough that its fixed cost (a Spark job, the receipts) matters little, short
enough that the checkpoint, a graceful stop and the status keep up even with a slow target. Where there is no backlog a
batch takes what has come in, and the size has no effect.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

SMALLEST_BYTES = 256 << 10
LARGEST_BYTES = 64 << 20
FIRST_BYTES = 32 << 20

QUICK_SECONDS = 2.0
SLOW_SECONDS = 5.0
AIM_SECONDS = 2.5
FASTEST_GROWTH = 4.0


@dataclass(frozen=True, slots=True)
class Flow:
    """The budget of one source's next batch, in bytes of binlog. A transaction larger than the budget is one batch."""

    budget_bytes: int = FIRST_BYTES

    def after(self, size: int, seconds: float) -> Flow:
        """Return the budget after a batch of `size` bytes that took `seconds`, waits and retries included.

        It grows after a quick batch that used most of it, and shrinks after a slow one, both to the size that would
        have taken AIM_SECONDS. In between it stays, and also after a quick batch that took all there was.
        """
        within = seconds * min(1.0, self.budget_bytes / max(size, 1))  # a large transaction tells its rate
        if within > SLOW_SECONDS:
            return self._of(int(min(size, self.budget_bytes) * AIM_SECONDS / within))
        if seconds < QUICK_SECONDS and size * 2 > self.budget_bytes:
            return self._of(int(self.budget_bytes * min(FASTEST_GROWTH, AIM_SECONDS / max(seconds, 0.01))))
        return self

    def _of(self, wanted: int) -> Flow:
        return replace(self, budget_bytes=max(SMALLEST_BYTES, min(LARGEST_BYTES, wanted)))
