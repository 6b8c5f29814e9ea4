"""The assignment of sources to workers. It is decided without I/O."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from unshard.api.status import Stage, UnitName
from unshard.master.state import Bound, State, SubtaskRow

_COPYING = frozenset({UnitName.DUMP.value, UnitName.LOAD.value})


@dataclass(frozen=True, slots=True)
class Assignment:
    """The changes of the assignment of sources to workers: the sources that lose their worker, then the pairs to bind.

    `unbind` has the sources, `bind` the (source, worker) pairs. `home`: sources that go back to the worker that has
    their dump; subtasks that could not continue without the dump do so there.
    """

    unbind: tuple[str, ...] = ()
    bind: tuple[tuple[str, str], ...] = ()
    home: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.unbind or self.bind)


def seat(
    state: State,
    online: Collection[str],
    presumed: Collection[str] = (),
    refused: Mapping[str, Collection[str]] | None = None,
) -> Assignment:
    """Assign sources to workers again.

    Bounds of live workers stay as they are. Only a source whose dump is on another worker that is back goes there: the
    two workers change places, as in DM. `online`: workers that beat. `presumed`: workers that a new leader has not
    heard yet and gives time; they keep their sources and get none. `refused`: by source, the workers that have refused
    it; they get it only where no other one is free.
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
        if other is not None and copies(state, other):
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
    for source in sorted(waiting, key=lambda name: (not copies(state, name), name)):
        if not spares:
            break
        worker = _best(state, source, _willing(spares, (refused or {}).get(source, ())), load)
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


def stand_in(state: State, source: str, spares: Collection[str]) -> str:
    """Return which of these free workers is to take a source over; there is at least one."""
    return _best(state, source, spares, Counter(_machine(state, bound.worker) for bound in state.bounds.values()))


def _willing(spares: Collection[str], refused: Collection[str]) -> Collection[str]:
    """Return the spares that have not refused, or all where each has."""
    return [worker for worker in spares if worker not in refused] or spares


def _best(state: State, source: str, spares: Collection[str], load: Mapping[str, int]) -> str:
    last = state.sources[source].last_worker
    wanted_elsewhere = {
        row.last_worker for row in state.sources.values() if row.name != source and row.name not in state.bounds
    }

    def rank(worker: str) -> tuple[bool, bool, int, str]:
        return (worker != last, worker in wanted_elsewhere, load.get(_machine(state, worker), 0), worker)

    return min(spares, key=rank)


def copies(state: State, source: str) -> bool:
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
