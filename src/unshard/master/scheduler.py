"""The assignment of sources to workers, and the liveness of workers.

The leader takes for alive whose beats it receives itself: in memory, for a new leader begins anew. Which worker gets a
source is decided without I/O.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from threading import Condition

from unshard.api.heartbeat import Heartbeat, SubtaskBrief
from unshard.api.status import Stage, UnitName
from unshard.master.state import Bound, State, SubtaskRow

FORMER_LIVES = 8
"""The number of replaced processes that are remembered for one worker's name."""


class Liveness:
    """The last beat of each worker, by this process's monotonic clock. Safe in threads.

    A worker counts as alive for a ttl from the moment at which its beat came in. It lets its source go when it has had
    no answer for as long since it *sent* one. So it has let go before it is given up here, if both clocks run at one
    speed.
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
        """Begin as a new leader: the workers of the store have a ttl to beat before they count as lost."""
        with self._bell:
            self._beats.clear()
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
        self._presumed -= {worker}

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

    def beat_of(self, worker: str) -> Heartbeat | None:
        """Return the worker's last heartbeat, however old; None where there is none."""
        with self._bell:
            found = self._beats.get(worker)
            return found[1] if found is not None else None

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


_COPYING = frozenset({UnitName.DUMP.value, UnitName.LOAD.value})


@dataclass(frozen=True, slots=True)
class Assignment:
    """The changes to make: sources that lose their worker, and (source, worker) pairs to bind after that.

    `unbind` are the former, `bind` the latter. `home`: sources that go back to the worker that has their dump; subtasks
    that could not go on without it do so.
    """

    unbind: tuple[str, ...] = ()
    bind: tuple[tuple[str, str], ...] = ()
    home: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.unbind or self.bind)


def seat(state: State, online: Collection[str], presumed: Collection[str] = ()) -> Assignment:
    """Assign sources to workers again.

    Bounds of live workers stay as they are. Only a source whose dump is on another worker that is back goes there: the
    two workers change places, as in DM. `online`: workers that beat. `presumed`: workers that a new leader has not
    heard yet and gives time; they keep their sources and get none.
    """
    alive = {*online, *presumed}
    bounds = {name: bound for name, bound in state.bounds.items() if bound.worker in alive and name in state.sources}
    lost = tuple(sorted(name for name, bound in state.bounds.items() if name not in bounds))
    spares = {name for name in online if name in state.workers} - {bound.worker for bound in bounds.values()}
    bind: list[tuple[str, str]] = []
    home = []
    for source, holder in _stranded(state, bounds, online):
        there = {bound.worker: name for name, bound in bounds.items()}
        other, left = there.get(holder), bounds[source].worker
        if other is not None and _copies(state, other):
            continue
        moved = [(source, holder)] if other is None else [(source, holder), (other, left)]
        bounds |= {name: replace(bounds[name], worker=worker) for name, worker in moved}
        bind += moved
        home.append(source)
        spares.discard(holder)
        if other is None and left in online:
            spares.add(left)
    load = Counter(_machine(state, bound.worker) for bound in bounds.values())
    waiting = [name for name in state.sources if name not in bounds]
    for source in sorted(waiting, key=lambda name: (not _copies(state, name), name)):
        if not spares:
            break
        worker = _best(state, source, spares, load)
        spares.remove(worker)
        load[_machine(state, worker)] += 1
        bind.append((source, worker))
    return Assignment(lost, tuple(bind), tuple(home))


def _stranded(state: State, bounds: Mapping[str, Bound], online: Collection[str]) -> list[tuple[str, str]]:
    """Return the sources whose load lacks its dump, each with the live worker that has the dump."""
    return [
        (row.source, row.brief.dump_at)
        for row in state.subtasks.values()
        if row.source in bounds
        and row.stage is Stage.RUNNING
        and row.brief is not None
        and row.brief.lost_dump
        and row.brief.dump_at in online
        and row.brief.dump_at != bounds[row.source].worker
    ]


def _best(state: State, source: str, spares: Collection[str], load: Mapping[str, int]) -> str:
    last = state.sources[source].last_worker
    wanted_elsewhere = {
        row.last_worker for row in state.sources.values() if row.name != source and row.name not in state.bounds
    }

    def rank(worker: str) -> tuple[bool, bool, int, str]:
        return (worker != last, worker in wanted_elsewhere, load.get(_machine(state, worker), 0), worker)

    return min(spares, key=rank)


def _copies(state: State, source: str) -> bool:
    """Return whether a copy of the source is unfinished: its files are on the worker that served it last."""
    return any(is_copying(row) for row in state.of_source(source))


def is_copying(row: SubtaskRow) -> bool:
    """Return whether the subtask's last report is of a dump or load that is not finished."""
    return row.brief is not None and row.brief.unit in _COPYING and row.brief.stage is not Stage.FINISHED


def _machine(state: State, worker: str) -> str:
    """Return the host of the worker's address; the whole address where that has none."""
    addr = state.workers[worker].addr if worker in state.workers else ""
    host, colon, _ = addr.removeprefix("http://").removeprefix("https://").rpartition(":")
    return host if colon else addr


def worker_fault(state: State, worker: str, online: Collection[str]) -> str:
    """Return why the worker can't take another source now; "" where it can."""
    if worker not in state.workers:
        return "there is no such worker"
    if worker not in online:
        return "it is offline"
    taken = state.bound_to(worker)
    return f"it serves source {taken.source}" if taken is not None else ""
