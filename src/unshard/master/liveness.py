"""Which workers are alive, by what the leader hears itself: in memory, for a new leader hears anew."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from threading import Condition

from unshard.api.heartbeat import Heartbeat, SubtaskBrief

FORMER_LIVES = 8
"""How many processes of one worker's name are remembered as replaced."""


class Liveness:
    """The last beat of each worker, by this process's monotonic clock. Safe in threads.

    A worker counts from the moment its beat came in, and lets its source go when it has had no answer for as long
    since it *sent* one: so it has let go before it is given up here, as long as both clocks run at one speed.
    """

    def __init__(self, ttl_seconds: float, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.ttl_seconds = ttl_seconds
        self._monotonic = monotonic
        self._beats: dict[str, tuple[float, Heartbeat]] = {}
        self._newest: dict[str, tuple[str, int]] = {}
        self._former: dict[str, tuple[str, ...]] = {}
        self._presumed: frozenset[str] = frozenset()
        self._presumed_until = 0.0
        self._bell = Condition()

    def begin(self, known: Iterable[str]) -> None:
        """A new leader: the workers of the store have a ttl to be heard before they count as lost."""
        with self._bell:
            self._beats.clear()
            self._presumed = frozenset(known)
            self._presumed_until = self._monotonic() + self.ttl_seconds

    def heard(self, beat: Heartbeat) -> None:
        """One that a later beat of the same process has overtaken is passed over, also where that one said goodbye."""
        with self._bell:
            life, number = self._newest.get(beat.name, ("", 0))
            if beat.life and beat.life == life and beat.number <= number:
                return
            if life and life != beat.life:
                self._former[beat.name] = (*self._former.get(beat.name, ()), life)[-FORMER_LIVES:]
            self._newest[beat.name] = (beat.life, beat.number)
            if beat.leaving:
                self._drop(beat.name)
            else:
                self._beats[beat.name] = (self._monotonic(), beat)
            self._bell.notify_all()

    def is_replaced(self, beat: Heartbeat) -> bool:
        """Whether a process that was started later beats by the name of this one's, and is alive."""
        with self._bell:
            life, _ = self._newest.get(beat.name, ("", 0))
            former = beat.life != life and beat.life in self._former.get(beat.name, ())
        return former and beat.name in self.online()

    def forget(self, worker: str) -> None:
        with self._bell:
            self._newest.pop(worker, None)
            self._former.pop(worker, None)
            self._drop(worker)

    def _drop(self, worker: str) -> None:
        self._beats.pop(worker, None)
        self._presumed -= {worker}

    def online(self) -> frozenset[str]:
        with self._bell:
            oldest = self._monotonic() - self.ttl_seconds
            return frozenset(name for name, (at, _) in self._beats.items() if at > oldest)

    def presumed(self) -> frozenset[str]:
        """Workers not heard yet that a new leader still gives time."""
        with self._bell:
            if self._monotonic() >= self._presumed_until:
                return frozenset()
            return self._presumed - self._beats.keys()

    def beat_of(self, worker: str) -> Heartbeat | None:
        with self._bell:
            found = self._beats.get(worker)
            return found[1] if found is not None else None

    def brief(self, worker: str, epoch: int, task: str) -> SubtaskBrief | None:
        """What the worker last said of a task, as the one that serves by that epoch."""
        beat = self.beat_of(worker)
        if beat is None or beat.epoch != epoch:
            return None
        return next((brief for brief in beat.subtasks if brief.task == task), None)

    def wait(self, done: Callable[[], bool], seconds: float) -> bool:
        """Wait for beats until `done` says so; whether it did in time. `done` is called without a lock held."""
        deadline = self._monotonic() + seconds
        while not done():
            left = deadline - self._monotonic()
            if left <= 0:
                return False
            with self._bell:
                self._bell.wait(min(left, 0.1))
        return True
