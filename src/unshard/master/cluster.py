"""The leader's hand on the cluster: the state as it is now, changes of it, and the way to the workers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from threading import RLock, Thread

from unshard.api.heartbeat import SubtaskBrief, WorkerLink
from unshard.errors import ClusterError, UnshardError, Where
from unshard.log import logger
from unshard.master.election import Election
from unshard.master.liveness import Liveness
from unshard.master.scheduler import seat
from unshard.master.state import Bound, State
from unshard.master.store import Store, Writing

Links = Callable[[str], WorkerLink]
"""The link to the worker at an address."""

NOT_LEADING = frozenset({"CLUSTER-001", "CLUSTER-002"})
"""Errors that say that this is not the master to ask."""


class Cluster:
    """What all areas of the master share. Methods that change or read the state want this master to lead, and raise
    ClusterError CLUSTER-002 (another one does) or CLUSTER-001 (nobody does) else."""

    def __init__(self, store: Store, election: Election, liveness: Liveness, links: Links) -> None:
        self.store, self.election, self.liveness, self.links = store, election, liveness, links
        self._state = State()
        self._loaded = (0, 0)
        self._fresh = True
        self._lock = RLock()
        self._held: frozenset[str] = frozenset()
        self.trouble = ""
        """Why this master's last look at the lease came to nothing."""

    @property
    def state(self) -> State:
        """The state as the leader has it. It is whole: only a leader writes, and it takes it over with its epoch."""
        with self._lock:
            self._lead()
            return self._state

    @contextmanager
    def change(self) -> Iterator[Writing]:
        """Changes in one transaction, one at a time; `state` shows them once they are committed."""
        with self._lock:
            with self._writing(self._lead()) as writing:
                yield writing
                state = writing.state
            self._state = state

    def keep(self, source: str, news: Callable[[State], Sequence[SubtaskBrief]]) -> None:
        """Write down what a worker says of its subtasks: what `news` finds new to the state at hand.

        Each beat may bring some, so nothing of the store is read: it has what is at hand, for only a leader writes, and
        the lease's row is locked.
        """
        with self._lock:
            epoch = self._lead()
            briefs = news(self._state)
            if briefs:
                with self._writing(epoch) as writing:
                    writing.put_briefs(source, briefs)
                self._state = self._state.told(source, briefs)

    @contextmanager
    def _writing(self, epoch: int) -> Iterator[Writing]:
        try:
            with self.store.writing(epoch) as writing:
                yield writing
        except BaseException:
            self._fresh = False  # where a commit's answer is lost nobody knows what the store has: read it again
            raise

    @contextmanager
    def written(self) -> Iterator[None]:
        """What a verb does behind its change. Raises ClusterError CLUSTER-094 where this master leads no more by then.

        Whoever hears that another one leads gives the verb to that one, as if nothing had been done.
        """
        try:
            yield
        except ClusterError as error:
            if error.code not in NOT_LEADING:
                raise
            raise ClusterError("CLUSTER-094", cause=str(error.message)) from None

    def seat(self) -> None:
        """Bring sources and workers together, where anything has changed, and wake the workers that it concerns."""
        with self._lock:
            wanted = seat(self.state, self.liveness.online(), self.liveness.presumed())
            if not wanted:
                return
            lost = [self._state.bounds[source] for source in wanted.unbind]
            with self.change() as writing:
                for source in wanted.unbind:
                    writing.unbind(source)
                for source, worker in wanted.bind:
                    writing.bind(source, worker)
                for row in (row for source in wanted.home for row in self._state.of_source(source)):
                    if row.brief is not None and row.brief.lost_dump:
                        writing.put_subtask(replace(row, revision=row.newest + 1))
        for bound in lost:
            logger("master", source=bound.source).warning("worker lost", worker=bound.worker)
        for source, worker in wanted.bind:
            logger("master", source=source).info("bound", worker=worker)
        self.wake(worker for _, worker in wanted.bind)

    @property
    def held(self) -> frozenset[str]:
        """Sources whose tasks stand still for a moment, whatever is wanted of them."""
        return self._held

    @contextmanager
    def holding(self, source: str) -> Iterator[None]:
        """Raises ClusterError CLUSTER-016 where the source is being held already."""
        with self._lock:
            if source in self._held:
                raise ClusterError("CLUSTER-016", Where(source), "it is being moved already; wait for that")
            self._held |= {source}
        try:
            yield
        finally:
            with self._lock:
                self._held -= {source}

    def link(self, worker: str) -> WorkerLink:
        """The link to a worker by its name. Raises ClusterError CLUSTER-019 where it has been forgotten."""
        row = self.state.workers.get(worker)
        if row is None:
            raise ClusterError("CLUSTER-019", values={"type": "worker", "name": worker, "fault": "it is known no more"})
        return self.links(row.addr)

    def serving(self, source: str) -> Bound | None:
        """The bound of a source whose worker is alive."""
        bound = self.state.bounds.get(source)
        return bound if bound is not None and bound.worker in self.liveness.online() else None

    def wake(self, workers: Iterable[str]) -> None:
        """Have workers beat at once; one that can't be reached finds its orders at its next beat.

        Not waited for: a frozen one must not hold up the thread that renews the lease.
        """
        for worker in dict.fromkeys(workers):
            Thread(target=self._wake, args=(worker,), name=f"wake {worker}", daemon=True).start()

    def _wake(self, worker: str) -> None:
        with suppress(UnshardError, KeyError):
            self.link(worker).wake()

    def _lead(self) -> int:
        """The epoch, with the state of it at hand. Who begins to lead has heard no worker lately: all have time."""
        epoch = self.election.epoch
        if not epoch:
            leader = self.election.leader
            if leader is None or leader.name == self.election.name:
                raise ClusterError("CLUSTER-001", cause=self.trouble)
            raise ClusterError("CLUSTER-002", values={"leader": leader.name, "addr": leader.addr})
        term = (epoch, self.election.terms)
        if term != self._loaded:
            self._state = self.store.read()
            self.liveness.begin(self._state.workers)
            self._loaded, self._fresh = term, True
        if not self._fresh:
            self._state, self._fresh = self.store.read(), True
        return epoch
