"""How much a report measures: `full` for figures to quote, `quick` for a first look, `smallest` to test the command."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Size:
    """`share` is the part of each bench's rows, `runs` how often a bench is run, `whole` whether a matrix is complete.

    `minutes` is the time after which no further part is started.
    """

    name: str
    share: float
    runs: int
    latency_seconds: int
    whole: bool
    minutes: int

    def of(self, count: int, least: int = 1) -> int:
        """Return that share of a count, at least `least`."""
        return max(least, round(count * self.share))


SIZES = {
    size.name: size
    for size in (
        Size("full", 1.0, 3, 30, True, 50),
        Size("quick", 0.05, 3, 10, False, 10),
        Size("smallest", 0.01, 1, 7, False, 5),
    )
}
