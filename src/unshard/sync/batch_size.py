"""How large the next batch may be: it follows the backlog and the target's latency. Pure.

A batch should take a second or two: long enough that its fixed cost (a Spark job, the receipts) doesn't weigh, short
enough that the checkpoint, a graceful stop and the status keep up also where the target is slow. Where there is no
backlog a batch takes what has come in, whatever this says.
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
    """The budget of one source's next batch, in bytes of binlog. A transaction larger than it is one batch."""

    budget_bytes: int = FIRST_BYTES

    def after(self, size: int, seconds: float) -> Flow:
        """The flow behind a batch of `size` bytes that took so long, waits and retries included.

        It grows behind a quick batch that used most of it, and shrinks behind a slow one, both to what would have
        taken AIM_SECONDS; in between, and behind a quick batch that took all there was, it stays.
        """
        within = seconds * min(1.0, self.budget_bytes / max(size, 1))  # a large transaction tells its rate
        if within > SLOW_SECONDS:
            return self._of(int(min(size, self.budget_bytes) * AIM_SECONDS / within))
        if seconds < QUICK_SECONDS and size * 2 > self.budget_bytes:
            return self._of(int(self.budget_bytes * min(FASTEST_GROWTH, AIM_SECONDS / max(seconds, 0.01))))
        return self

    def _of(self, wanted: int) -> Flow:
        return replace(self, budget_bytes=max(SMALLEST_BYTES, min(LARGEST_BYTES, wanted)))
