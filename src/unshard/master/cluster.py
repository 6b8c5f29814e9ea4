"""The leader's access to the cluster: the present state, changes of it, and the links to the workers."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from threading import RLock, Thread

from unshard.api.heartbeat import SubtaskBrief, WorkerLink
from unshard.api.status import ProcessError
from unshard.errors import ClusterError, UnshardError, Where
from unshard.log import logger
from unshard.master.election import Election
from unshard.master.liveness import Liveness
from unshard.master.refusals import Refusals
from unshard.master.scheduler import seat
from unshard.master.state import Bound, State
from unshard.master.store import Store, Writing

Links = Callable[[str], WorkerLink]
"""Returns the link to the worker at an address."""

FIRST_BEAT_SECONDS = 10.0
"""Seconds that a command waits for workers that a new leader has not heard yet. The ttl may end the wait earlier."""

SPARE_BEAT_SECONDS = 2.0
"""The same for workers that a command may use but does not need. One of them may have been gone for long."""

NOT_LEADING = frozenset({"CLUSTER-001", "CLUSTER-002"})
"""Errors with which a master says that it does not lead."""


class Cluster:
    """The state and the links that all parts of the master share.

    Methods that change or read the state require that this master leads. Else they raise ClusterError CLUSTER-002
    (another one leads) or CLUSTER-001 (nobody does).
    """

    def __init__(self, store: Store, election: Election, liveness: Liveness, links: Links) -> None:
        self.store, self.election, self.liveness, self.links = store, election, liveness, links
        self.refusals = Refusals()
        self._state = State()
        self._loaded = (0, 0)
        self._fresh = True
        self._lock = RLock()
        self._held: frozenset[str] = frozenset()
        self.validation: dict[tuple[str, str], str] = {}
        """`SubtaskOrder.validation` by task and source: another text each time that the worker is to look."""
        self.trouble = ""
        """Why this master's last look at the lease failed, or that it was slow; "" where all went well."""

    @property
    def state(self) -> State:
        """The leader's state. It is complete: only a leader writes, and it reads all when its epoch begins."""
        with self._lock:
            self._lead()
            return self._state

    @contextmanager
    def change(self) -> Iterator[Writing]:
        """Make changes in one transaction, one at a time; `state` shows them once they are committed."""
        with self._lock:
            with self._writing(self._lead()) as writing:
                yield writing
                state = writing.state
            self._state = state

    def keep(self, source: str, news: Callable[[State], Sequence[SubtaskBrief]]) -> None:
        """Store what a worker reports of its subtasks: those reports that `news` finds new to the present state.

        Each beat may bring some, so the store is not read: the state in memory is that of the store, for only a leader
        writes, and the lease's row is locked.
        """
        with self._lock:
            epoch = self._lead()
            briefs = news(self._state)
            if briefs:
                with self._writing(epoch) as writing:
                    writing.put_briefs(source, briefs)
                self._state = self._state.told(source, briefs)

    def permit(self) -> Callable[[], None]:
        """Return a check for what a verb does outside of the store: it passes while the present leadership lasts.

        It asks the store, as `change` does: a master that was frozen or cut off may still take itself for the leader.
        Raises ClusterError CLUSTER-100 where another one has led since, or where the store can't tell.
        """
        with self._lock:
            epoch = self._lead()

        def check() -> None:
            try:
                with self.store.writing(epoch):
                    pass
            except ClusterError as error:
                told = ": ".join(filter(None, (error.message, error.cause)))
                raise ClusterError("CLUSTER-100", cause=told) from None

        return check

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
        """Run the part of a verb after its change. Raises ClusterError CLUSTER-094 where this master leads no more.

        With CLUSTER-001 or 002 the caller would give the verb to the new leader, as if nothing had been done.
        """
        try:
            yield
        except ClusterError as error:
            if error.code not in NOT_LEADING:
                raise
            raise ClusterError("CLUSTER-094", cause=str(error.message)) from None

    def seat(self) -> None:
        """Assign sources to workers, where anything has changed, and wake the workers that are concerned."""
        with self._lock:
            refused = {name: self.refusals.of(row).keys() for name, row in self.state.sources.items()}
            wanted = seat(self.state, self.liveness.online(), self.liveness.presumed(), refused)
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
        """Sources whose tasks are paused for a moment, whatever stage is wanted of them."""
        return self._held

    @contextmanager
    def holding(self, source: str) -> Iterator[None]:
        """Pause a source's subtasks during the block. Raises ClusterError CLUSTER-016 where this is done already."""
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
        """Return the link to a worker by its name. Raises ClusterError CLUSTER-019 where the worker is not known."""
        row = self.state.workers.get(worker)
        if row is None:
            raise ClusterError("CLUSTER-019", values={"type": "worker", "name": worker, "fault": "it is known no more"})
        return self.links(row.addr)

    def serving(self, source: str) -> Bound | None:
        """Return the bound of a source whose worker is alive; None where there is none."""
        bound = self.state.bounds.get(source)
        return bound if bound is not None and bound.worker in self.liveness.online() else None

    def unheard(self, sources: Iterable[str], workers: Iterable[str] = ()) -> frozenset[str]:
        """Return those of the sources' workers, and of `workers`, that a new leader has not heard and may yet hear."""
        presumed = self.liveness.presumed()
        if not presumed:
            return presumed
        state = self.state
        return presumed & {*workers, *(state.worker_of(source) for source in sources)}

    def await_beats(
        self, sources: Collection[str], workers: Collection[str] = (), seconds: float | None = None
    ) -> frozenset[str]:
        """Wait for the first beats of these workers after a change of leaders; return those that have not come.

        Returns at once where this master has led for longer than the ttl. `seconds`: by default FIRST_BEAT_SECONDS.
        """
        self.state  # noqa: B018 - the time of its workers begins with a new leader's first look
        wait = FIRST_BEAT_SECONDS if seconds is None else seconds
        self.liveness.wait(lambda: not self.unheard(sources, workers), wait)
        return self.unheard(sources, workers)

    def hear(self, sources: Collection[str], workers: Collection[str] = ()) -> None:
        """Wait as `await_beats`; called before anything is done. Raises ClusterError CLUSTER-099 where some don't come.

        A command would take them for dead: it would move sources off them, or tell that nothing runs.
        """
        silent = self.await_beats(sources, workers)
        if silent:
            raise self._unheard(silent)

    def unserved(self, source: str) -> ClusterError:
        """Return why no worker serves a source: there is none (CLUSTER-015), or it was not heard yet (CLUSTER-099)."""
        silent = self.unheard([source])
        return self._unheard(silent, source) if silent else ClusterError("CLUSTER-015", Where(source))

    def silence(self, worker: str) -> list[ClusterError]:
        """Return the error of a worker that a new leader has not heard yet; none of any other."""
        silent = self.unheard((), [worker])
        return [self._unheard(silent)] if silent else []

    def _unheard(self, workers: Collection[str], source: str | None = None) -> ClusterError:
        seconds = math.ceil(self.liveness.presumed_seconds())
        values = {"workers": ", ".join(sorted(workers)), "seconds": seconds}
        return ClusterError("CLUSTER-099", Where(source), values=values)

    def refusal(self, source: str) -> ProcessError | None:
        """Return why the worker of a source can't carry out its order; None where it can, as far as is known."""
        bound = self.serving(source)
        return self.liveness.refusal(bound.worker, bound.epoch) if bound is not None else None

    def wake(self, workers: Iterable[str]) -> None:
        """Make workers beat at once; one that can't be reached gets its orders at its next beat.

        Returns without waiting: a frozen worker must not hold up the thread that renews the lease.
        """
        for worker in dict.fromkeys(workers):
            Thread(target=self._wake, args=(worker,), name=f"wake {worker}", daemon=True).start()

    def _wake(self, worker: str) -> None:
        with suppress(UnshardError, KeyError):
            self.link(worker).wake()

    def _lead(self) -> int:
        """Return the epoch, with its state in memory. A new leader has heard no worker yet: all of them get time."""
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
