"""The relay log of sources: kept or not, paused, purged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from unshard.api.stage import Stage
from unshard.api.verbs import PurgeRelay, RelayRequest
from unshard.errors import ClusterError, UnshardError, Where
from unshard.master.answers import Answer, answer, of_source
from unshard.master.cluster import Cluster
from unshard.master.state import State


class Relays:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def keep(self, request: RelayRequest, wanted: Stage) -> Answer:
        """`Running`: a relay log also while no task needs it, `Stopped`: only then. Raises ClusterError CLUSTER-008.

        DM's old way, a relay on workers by name, is the same where the worker is the one that serves the source; the
        log is kept by no other (CLUSTER-016).
        """
        state = self._cluster.state
        for source in request.sources:
            others = [worker for worker in request.workers if worker != state.worker_of(source)]
            if others:
                cause = f"a relay log is kept by the worker that serves the source, not by {', '.join(others)}"
                raise ClusterError("CLUSTER-016", Where(source), cause)
        return self.want(request.sources, wanted)

    def want(self, sources: Sequence[str], wanted: Stage) -> Answer:
        with self._cluster.change() as writing:
            state = writing.state
            for name in sources:
                known(state, name)
            for name in sources:
                writing.put_source(replace(state.sources[name], relay_stage=wanted))
        workers = {name: self._cluster.state.worker_of(name) for name in sources}
        self._cluster.wake(filter(None, workers.values()))
        return answer(of_source(name, workers[name]) for name in sources)

    def purge(self, request: PurgeRelay) -> Answer:
        state = self._cluster.state
        for name in request.sources:
            known(state, name)
        return answer(self._purge(name, request) for name in request.sources)

    def _purge(self, source: str, request: PurgeRelay) -> Answer:
        bound = self._cluster.serving(source)
        try:
            if bound is None:
                raise ClusterError("CLUSTER-015", Where(source))
            self._cluster.link(bound.worker).purge_relay(request.filename, request.sub_dir)
        except UnshardError as error:
            return of_source(source, bound.worker if bound is not None else "", str(error), good=False)
        return of_source(source, bound.worker)


def known(state: State, source: str) -> None:
    """Raises ClusterError CLUSTER-008."""
    if source not in state.sources:
        raise ClusterError("CLUSTER-008", Where(source))
