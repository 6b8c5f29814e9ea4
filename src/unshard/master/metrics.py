"""Samples of what a master knows, read when `/metrics` is asked for. Who doesn't lead tells only that."""

from __future__ import annotations

from collections.abc import Iterator

from unshard.errors import ClusterError
from unshard.master.service import Master
from unshard.master.state import State
from unshard.metrics import Sample
from unshard.metrics.events import EVENTS, EventCounters

BEGAN_TO_LEAD = "dm_master_start_leader_counter"
OFFLINE, FREE, BOUND = 0, 1, 2
"""DM's numbers of a worker's state."""


def master_samples(master: Master, events: EventCounters = EVENTS) -> Iterator[Sample]:
    """Every series of this master. One that has just lost the lease has none of workers."""
    leads = bool(master.election.epoch)
    yield Sample("unshard_master_leader", {}, leads)
    yield Sample(BEGAN_TO_LEAD, {}, events.value(BEGAN_TO_LEAD))
    if leads:
        try:
            state = master.cluster.state
        except ClusterError:
            return
        yield from _cluster(state, master.liveness.online() | master.liveness.presumed())


def _cluster(state: State, online: frozenset[str]) -> Iterator[Sample]:
    served = {bound.worker for bound in state.bounds.values()}
    for worker in state.workers:
        number = OFFLINE if worker not in online else BOUND if worker in served else FREE
        yield Sample("dm_master_worker_state", {"worker": worker}, number)
    unbound = [name for name, source in state.sources.items() if source.enabled and name not in state.bounds]
    yield Sample("unshard_sources_unbound", {}, len(unbound))
