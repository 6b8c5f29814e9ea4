"""The liveness of workers, by their heartbeats.

The leader considers a worker alive if it has itself received a heartbeat recently. The heartbeats are kept in memory
only, because a new leader starts without them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from threading import Condition

from unshard.api.heartbeat import Heartbeat, SubtaskBrief
from unshard.api.status import ProcessError

FORMER_LIVES = 8
"""The number of replaced processes that are remembered for one worker's name."""


class Liveness:
    """The last heartbeat of each worker, by this process's monotonic clock. Safe in threads.

    A worker counts as alive for the TTL from the moment at which its heartbeat came in. A worker releases its source
    when it has had no answer for the same time since it *sent* a heartbeat. So a worker has released its source before
    it counts as lost here, if both clocks run at one speed.
    """

    def __init__(self, ttl_seconds: float, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.ttl_seconds = ttl_seconds
        self._monotonic = monotonic
        self._beats: dict[str, tuple[float, Heartbeat]] = {}
        self._newest: dict[str, tuple[str, int]] = {}
        self._former: dict[str, tuple[str, ...]] = {}
        self._refused: dict[str, tuple[int, float, int]] = {}
        self._presumed: frozenset[str] = frozenset()
        self._presumed_until = 0.0
        self._bell = Condition()

    def begin(self, known: Iterable[str]) -> None:
        """Begin as a new leader: the workers of the store have a ttl to beat before they count as lost."""
        with self._bell:
            self._beats.clear()
            self._refused.clear()
            self._presumed = frozenset(known)
            self._presumed_until = self._monotonic() + self.ttl_seconds

    def heard(self, beat: Heartbeat) -> None:
        """Record a beat. One older than a later beat of the same process is ignored, also after that one's goodbye."""
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
                self._count_refusal(beat)
            self._bell.notify_all()

    def is_replaced(self, beat: Heartbeat) -> bool:
        """Return whether a process that was started later sends heartbeats by the same name, and is alive."""
        with self._bell:
            life, _ = self._newest.get(beat.name, ("", 0))
            former = beat.life != life and beat.life in self._former.get(beat.name, ())
        return former and beat.name in self.online()

    def forget(self, worker: str) -> None:
        """Drop everything known of a worker: it is not online until its next heartbeat."""
        with self._bell:
            self._newest.pop(worker, None)
            self._former.pop(worker, None)
            self._drop(worker)

    def _drop(self, worker: str) -> None:
        self._beats.pop(worker, None)
        self._refused.pop(worker, None)
        self._presumed -= {worker}

    def _count_refusal(self, beat: Heartbeat) -> None:
        epoch, since, beats = self._refused.pop(beat.name, (0, 0.0, 0))
        if beat.refused and not beat.epoch:
            since, beats = (since, beats) if epoch == beat.refused else (self._monotonic(), 0)
            self._refused[beat.name] = beat.refused, since, beats + 1

    def refused_beats(self, worker: str, epoch: int, seconds: float = 0.0) -> int:
        """Return with how many beats in a row the worker has said that it can't begin with its order of that epoch.

        0 where the first of them is not `seconds` ago.
        """
        with self._bell:
            found, since, beats = self._refused.get(worker, (0, 0.0, 0))
            return beats if found == epoch and self._monotonic() - since >= seconds else 0

    def online(self) -> frozenset[str]:
        """Return the workers whose last heartbeat is not older than the TTL."""
        with self._bell:
            oldest = self._monotonic() - self.ttl_seconds
            return frozenset(name for name, (at, _) in self._beats.items() if at > oldest)

    def presumed(self) -> frozenset[str]:
        """Return the workers that have not beaten yet and to which a new leader still gives time."""
        with self._bell:
            if self._monotonic() >= self._presumed_until:
                return frozenset()
            return self._presumed - self._beats.keys()

    def presumed_seconds(self) -> float:
        """Return for how long `presumed` gives time yet, at least 0."""
        with self._bell:
            return max(0.0, self._presumed_until - self._monotonic())

    def beat_of(self, worker: str) -> Heartbeat | None:
        """Return the worker's last heartbeat, however old; None where there is none."""
        with self._bell:
            found = self._beats.get(worker)
            return found[1] if found is not None else None

    def refusal(self, worker: str, epoch: int) -> ProcessError | None:
        """Return why the worker can't carry out its order of that epoch; None where it can, as far as is known."""
        beat = self.beat_of(worker)
        return beat.refusal if beat is not None and beat.refused == epoch else None

    def brief(self, worker: str, epoch: int, task: str) -> SubtaskBrief | None:
        """Return the worker's last report of a task, if the worker serves by that epoch; else None."""
        beat = self.beat_of(worker)
        if beat is None or beat.epoch != epoch:
            return None
        return next((brief for brief in beat.subtasks if brief.task == task), None)

    def wait(self, done: Callable[[], bool], seconds: float) -> bool:
        """Wait for beats until `done` returns True; return whether it did in time. `done` is called without a lock."""
        deadline = self._monotonic() + seconds
        while not done():
            left = deadline - self._monotonic()
            if left <= 0:
                return False
            with self._bell:
                self._bell.wait(min(left, 0.1))
        return True
