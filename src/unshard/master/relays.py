"""The relay logs of sources: started, stopped, paused, purged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime

from pydantic import ValidationError

from unshard.api.heartbeat import PurgeWish
from unshard.api.status import Stage
from unshard.api.verbs import (
    Answer,
    PauseRelay,
    PurgeRelay,
    RelayRequest,
    ResumeRelay,
    StartRelay,
    StopRelay,
    answer,
    of_source,
)
from unshard.errors import ClusterError, UnshardError, Where
from unshard.master.beginning import parse_time
from unshard.master.cluster import Cluster
from unshard.master.state import SourceRow, State, known


class Relays:
    """The verbs of relay logs. Each stores the wanted stage; the source's worker gets it with its next orders."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def start(self, request: StartRelay) -> Answer:
        """Keep a relay log even while no task needs it. Raises ClusterError CLUSTER-008, 016."""
        self._refuse_workers(request)
        return self._want(request.sources, lambda row: replace(row, relay_stage=Stage.RUNNING), lambda *_: "")

    def stop(self, request: StopRelay) -> Answer:
        """Keep a relay log only while a task needs it. Raises ClusterError CLUSTER-008, 016."""
        self._refuse_workers(request)
        return self._want(request.sources, lambda row: replace(row, relay_stage=Stage.STOPPED), _goes_on)

    def pause(self, request: PauseRelay) -> Answer:
        """Pause relays, also for tasks. Raises ClusterError CLUSTER-008."""
        return self._want(request.sources, _paused, _waits)

    def resume(self, request: ResumeRelay) -> Answer:
        """Resume relays, after a pause or at once after an error. Raises ClusterError CLUSTER-008.

        A relay is kept as it was before the pause: always, or while a task reads it.
        """
        self._cluster.await_beats(request.sources)
        told = self._want(
            request.sources, _resumed, lambda _, row: "" if row.relay_stage is Stage.RUNNING else KEPT_FOR_TASKS
        )
        for source in request.sources:
            bound = self._cluster.serving(source)
            if bound is not None:
                with suppress(UnshardError):  # the order is stored; an absent worker gets it later
                    self._cluster.link(bound.worker).resume_relay()
        return told

    def purge(self, request: PurgeRelay) -> Answer:
        """Delete relay files that nobody needs. Raises ClusterError CLUSTER-008, 016, 099."""
        if not (request.filename or request.time):
            raise ClusterError("CLUSTER-016", cause="purge-relay wants a file's name or a time")
        wish = _wish(request)
        state = self._cluster.state
        for name in request.sources:
            known(state, name)
        self._cluster.hear(request.sources)
        return answer(self._purge(name, wish) for name in request.sources)

    def _refuse_workers(self, request: RelayRequest) -> None:
        """Raise ClusterError CLUSTER-016 for a worker that does not serve the source.

        DM's old form names workers. It means the same where it names the worker that serves the source; no other worker
        keeps the log.
        """
        state = self._cluster.state
        for source in request.sources:
            known(state, source)
            serves = state.worker_of(source)
            others = [worker for worker in request.workers if worker != serves]
            if others:
                cause = (
                    f"a relay log is kept by the worker that serves the source ({serves or 'none yet'}), "
                    f"not by {', '.join(others)}: leave the names out, transfer-source moves both"
                )
                raise ClusterError("CLUSTER-016", Where(source), cause)

    def _want(
        self,
        sources: Sequence[str],
        wanted: Callable[[SourceRow], SourceRow],
        told: Callable[[State, SourceRow], str],
    ) -> Answer:
        """Replace each source's row by what `wanted` makes of it; `told` returns the message for the source then."""
        with self._cluster.change() as writing:
            state = writing.state
            for name in sources:
                known(state, name)
            for name in sources:
                writing.put_source(wanted(state.sources[name]))
        with self._cluster.written():
            state = self._cluster.state
            workers = {name: state.worker_of(name) for name in sources}
            self._cluster.wake(filter(None, workers.values()))
            return answer(of_source(name, workers[name], told(state, state.sources[name])) for name in sources)

    def _purge(self, source: str, wish: PurgeWish) -> Answer:
        bound = self._cluster.serving(source)
        try:
            if bound is None:
                raise self._cluster.unserved(source)
            told = self._cluster.link(bound.worker).purge_relay(wish)
        except UnshardError as error:
            return of_source(source, bound.worker if bound is not None else "", str(error), good=False)
        return of_source(source, bound.worker, told)


def _wish(request: PurgeRelay) -> PurgeWish:
    """Return what a worker is to purge; a time without a zone is in UTC. Raises ClusterError CLUSTER-016."""
    time = 0.0
    if request.time:
        found = parse_time(request.time, "time")
        time = ((found if found.tzinfo is not None else found.replace(tzinfo=UTC)) - _EPOCH).total_seconds()
    try:
        return PurgeWish(before=request.filename, sub_dir=request.sub_dir, time=time)
    except ValidationError as error:
        faults = [_LIMITS[str(fault["loc"][0])] for fault in error.errors()]
        raise ClusterError("CLUSTER-016", cause="; ".join(faults)) from None


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LIMITS = {
    "before": "--filename takes the name of one file, of at most 512 characters",
    "sub_dir": "--sub-dir takes the name of one folder, without / and \\, of at most 128 characters",
    "time": "--time takes a time from 1970 on",
}

KEPT_FOR_TASKS = "it runs while a task reads it: start-relay keeps it also without one"


def _paused(row: SourceRow) -> SourceRow:
    kept = row.relay_kept if row.relay_stage is Stage.PAUSED else row.relay_stage is Stage.RUNNING
    return replace(row, relay_stage=Stage.PAUSED, relay_kept=kept)


def _resumed(row: SourceRow) -> SourceRow:
    if row.relay_stage is not Stage.PAUSED:
        return row
    return replace(row, relay_stage=Stage.RUNNING if row.relay_kept else Stage.STOPPED)


def _readers(state: State, source: str) -> str:
    return ", ".join(row.task for row in state.of_source(source) if row.stage is Stage.RUNNING)


def _goes_on(state: State, row: SourceRow) -> str:
    readers = _readers(state, row.name)
    return f"it runs on while a task reads it: {readers}" if readers else ""


def _waits(state: State, row: SourceRow) -> str:
    readers = _readers(state, row.name)
    return f"tasks that have come to its end wait until resume-relay: {readers}" if readers else ""
