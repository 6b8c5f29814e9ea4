"""The lag of each task over the last hour, in memory: by minute, so that it shows whether it decreases."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from unshard.web.page.figures import TaskFigures, duration

MINUTES = 60
"""So many are kept of a task."""
AGO = 5
"""Minutes: the lag is compared with what it was so long ago."""
MOST_LAGGING = 2000
_LEAST_SECONDS = 5
_LEAST_SHARE = 0.2
"""A change below one of these is none."""
_WIDTH, _HEIGHT = 120, 28


@dataclass(frozen=True, slots=True)
class LagTrend:
    """The largest lag in each of the last minutes, the oldest first; None while unknown."""

    minutes: tuple[int | None, ...]

    @property
    def before(self) -> int | None:
        """The lag AGO minutes before the last one; None while unknown."""
        return self.minutes[-1 - AGO] if len(self.minutes) > AGO else None

    def words(self, now: int | None) -> str:
        """Return how the lag `now` differs from the one before; empty while either is unknown."""
        if now is None or self.before is None:
            return ""
        change = now - self.before
        if abs(change) < max(_LEAST_SECONDS, _LEAST_SHARE * max(now, self.before)):
            return "→ steady"
        return f"{'▲ rising' if change > 0 else '▼ falling'} ({AGO} min ago: {duration(self.before)})"

    @property
    def path(self) -> str:
        """The line of a picture that is `size` large, with gaps where the lag is unknown; empty for less than two."""
        known = [lag for lag in self.minutes if lag is not None]
        if len(known) < 2:
            return ""
        top, first, found, pen = max(*known, 1), MINUTES - len(self.minutes), [], "M"
        for at, lag in enumerate(self.minutes, first):
            if lag is None:
                pen = "M"
                continue
            x, y = at * _WIDTH / (MINUTES - 1), 2 + (1 - lag / top) * (_HEIGHT - 4)
            found.append(f"{pen}{x:.0f} {y:.1f}")
            pen = "L"
        return "".join(found)

    @property
    def size(self) -> tuple[int, int]:
        """Width and height, in pixels."""
        return _WIDTH, _HEIGHT


@dataclass(slots=True)
class LagTrends:
    """The lag of each task over time. Not for two threads at once."""

    _minutes: dict[str, deque[tuple[int, int | None]]] = field(default_factory=dict)

    def keep(self, tasks: Iterable[TaskFigures], at: float) -> Mapping[str, LagTrend]:
        """Add the lag of each task at `at` (unix time); tasks that ended are dropped."""
        minute, there = int(at // 60), {one.name: one.lag for one in tasks}
        self._minutes = {name: kept for name, kept in self._minutes.items() if name in there}
        for name, lag in there.items():
            if name not in self._minutes and len(self._minutes) >= MOST_LAGGING:
                continue
            kept = self._minutes.setdefault(name, deque(maxlen=MINUTES))
            last = kept[-1][0] if kept else minute - 1
            if last >= minute:
                old = kept.pop()[1]
                lag = old if lag is None else lag if old is None else max(old, lag)
            kept.extend((missed, None) for missed in range(max(last + 1, minute - MINUTES), minute))
            kept.append((max(last, minute), lag))
        return {name: LagTrend(tuple(lag for _, lag in kept)) for name, kept in self._minutes.items()}
