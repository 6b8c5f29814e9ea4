"""Gives a source whose worker refuses it to a free worker.

A worker refuses an order that it can't carry out, for example as a secret is not on its machine, and tries again with
each heartbeat. If it could not begin, none of the source's tasks runs there and no relay writes.

| the worker | then |
|---|---|
| has refused for REFUSED_BEATS heartbeats and a quarter of the ttl, and a free worker has not refused the source | \
the source is held, as `transfer` does: its tasks are to be paused |
| has refused twice more since then | the source is bound to the free worker, and is held no more |
| can begin now, or falls silent | it keeps the source, and is held no more |
| serves the source, and refuses a newer order | it keeps the source: its tasks run on by the order before |
| has the files of an unfinished copy | it keeps the source, as with `transfer` |

A worker that has refused a source does not get it again until its refusal is over (`refusals.py`), unless no other one
is left.
"""

from __future__ import annotations

from collections.abc import Iterator
from threading import Thread

from unshard.errors import UnshardError
from unshard.log import logger
from unshard.master.cluster import Cluster
from unshard.master.orders import unread
from unshard.master.scheduler import copies, stand_in, worker_fault
from unshard.master.settle import WAIT_SECONDS
from unshard.master.state import Bound

REFUSED_BEATS = 3
LONGEST_SECONDS = 10.0
"""Seconds for which a refusal has to last at most, whatever the ttl is."""


def begin_handovers(cluster: Cluster) -> None:
    """Begin to move each source that is due, each in a thread: the leader's thread must renew the lease."""
    for bound, worker in tuple(_due(cluster)):
        Thread(target=_try, args=(cluster, bound, worker), name=f"hand over {bound.source}", daemon=True).start()


def hand_over(cluster: Cluster, bound: Bound, worker: str) -> bool:
    """Move a source to `worker`; return whether it was moved. Raises ClusterError CLUSTER-016 if it is being moved.

    What the first worker is told meanwhile is to pause the tasks. If it begins with the source after all, at the last
    moment, they do not run before it hears that the source is not its own any more.
    """
    beats = cluster.liveness.refused_beats
    with cluster.holding(bound.source):
        known = beats(bound.worker, bound.epoch)
        cluster.wake([bound.worker])

        def has_tried() -> bool:
            found = beats(bound.worker, bound.epoch)
            return found < known or found >= known + 2  # the first of them may tell of an order from before

        if not known or not cluster.liveness.wait(has_tried, WAIT_SECONDS):
            return False
        with cluster.change() as writing:
            state = writing.state
            refuses = beats(bound.worker, bound.epoch) > known and bound.worker in cluster.liveness.online()
            fault = worker_fault(state, worker, cluster.liveness.online())
            if not refuses or fault or state.bounds.get(bound.source) != bound:
                return False
            writing.bind(bound.source, worker)
    logger("master", source=bound.source).warning("source refused: bound to another worker", by=bound.worker, to=worker)
    cluster.wake([worker, bound.worker])
    cluster.seat()
    return True


def _try(cluster: Cluster, bound: Bound, worker: str) -> None:
    try:
        hand_over(cluster, bound, worker)
    except UnshardError as error:  # the store may be away; it is tried again with the next step
        logger("master", source=bound.source).warning("source not handed over", to=worker, **error.to_dict())


def _due(cluster: Cluster) -> Iterator[tuple[Bound, str]]:
    """Yield the sources that have been refused for long enough, each with a free worker of its own."""
    state, liveness = cluster.state, cluster.liveness
    lasting = min(liveness.ttl_seconds / 4, LONGEST_SECONDS)
    refused = [
        bound
        for bound in state.bounds.values()
        if bound.source not in cluster.held
        and liveness.refused_beats(bound.worker, bound.epoch, lasting) >= REFUSED_BEATS
    ]
    if not refused:
        return
    free = {name for name in liveness.online() if not worker_fault(state, name, liveness.online())}
    for bound in refused:
        spares = free - cluster.refusals.of(state.sources[bound.source]).keys()
        if spares and not copies(state, bound.source) and not unread(state, [bound.source], ()):
            worker = stand_in(state, bound.source, spares)
            free.discard(worker)
            yield bound, worker
