"""The lag of a source, in seconds of the source's own clock.

Two things show as of which moment the target has everything: the commit time of the last transaction that was applied,
and a *sighting*: at that time the source's log ended here, and the target has reached that position since. Lag is the
source's time now less that moment. It is 0 only while a fresh sighting says that nothing lies ahead, and unknown (None)
before anything shows the moment or the source's clock. Silence is never 0: a source that can't be asked may have gone
on.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from unshard.model.position import Position

FRESH_SECONDS = 6.0
"""How long a sighting may stand for the source's present state: some more than the time between two."""

MOST_SIGHTINGS = 2000


@dataclass(frozen=True, slots=True)
class Sighting:
    """An observation of the end of a source's log: `position`, when the source's clock said `time` (unix seconds).

    `seen` is our monotonic clock at that moment. The clock was read before the log: at that time nothing after
    `position` was committed.
    """

    position: Position
    time: float
    seen: float


@dataclass(slots=True)
class Lag:
    """The computation of one source's lag, from its sightings and the transactions that were applied.

    Not for two threads at once; `now` is of the monotonic clock that sightings have.
    """

    _as_of: float | None = None
    _newest: Sighting | None = None
    _away: bool = False
    _ahead: deque[Sighting] = field(default_factory=lambda: deque(maxlen=MOST_SIGHTINGS))

    def committed(self, time: float) -> None:
        """Note that the target has everything up to a transaction that the source committed at `time`.

        0: it isn't known.
        """
        if time:
            self._as_of = time if self._as_of is None else max(self._as_of, time)

    def sighted(self, sighting: Sighting | None) -> None:
        """Note the source's last answer about its position; None: it can't be asked. An older one changes nothing."""
        self._away = sighting is None
        if sighting is None or (self._newest is not None and sighting.seen <= self._newest.seen):
            return
        if self._ahead and self._ahead[-1].position == sighting.position:
            self._ahead.pop()
        self._ahead.append(sighting)
        self._newest = sighting

    @property
    def as_of(self) -> float:
        """The moment of the source up to which the target has everything; 0: it is unknown."""
        return self._as_of or 0.0

    def clock(self, now: float) -> float | None:
        """Return the source's clock in unix seconds, by its last answer; None: it never answered."""
        return None if self._newest is None else self._newest.time + now - self._newest.seen

    def read(self, applied: Position, now: float, *, behind: bool) -> float | None:
        """Return the lag of a target that has everything before `applied`, in seconds; None: it isn't known.

        `behind`: more is known to wait.
        """
        while self._ahead and self._ahead[0].position <= applied:
            self.committed(self._ahead.popleft().time)
        newest = self._newest
        if newest is None:
            return None
        fresh = not self._away and now - newest.seen <= FRESH_SECONDS
        if fresh and not behind and newest.position <= applied:
            return 0.0
        return None if self._as_of is None else max(0.0, newest.time + now - newest.seen - self._as_of)
