"""Moves a source to another worker: its tasks finish their batch, move, and go on."""

from __future__ import annotations

from collections.abc import Collection

from unshard.api.status import Stage, UnitName
from unshard.api.verbs import Answer, TransferSource, plain
from unshard.errors import ClusterError, UnshardError, Where
from unshard.master.cluster import Cluster
from unshard.master.scheduler import worker_fault
from unshard.master.settle import WAIT_SECONDS
from unshard.master.state import Bound, State, SubtaskRow, known
from unshard.master.status import ASK_SECONDS


def transfer(cluster: Cluster, request: TransferSource) -> Answer:
    """Move the source. Raises ClusterError CLUSTER-008, 012, 013 for tasks that are not in Sync, 010, 099.

    The pause is kept in memory only: a master that dies in between leaves everything as it was, and the next one lets
    the tasks go on where they are.
    """
    source, worker = request.source, request.worker
    cluster.hear([source], [worker])
    synced = _found_in_sync(cluster, source)
    _refuse(cluster, cluster.state, request, synced)
    bound = cluster.state.bounds.get(source)
    if bound is not None and bound.worker == worker:
        return plain()
    with cluster.holding(source):
        if cluster.serving(source) is not None and bound is not None:
            cluster.wake([bound.worker])
            if not cluster.liveness.wait(lambda: _rests(cluster, bound), WAIT_SECONDS):
                values = {"wanted": "Paused", "found": "Running", "seconds": f"{WAIT_SECONDS:g}"}
                raise ClusterError("CLUSTER-010", Where(source), values=values)
        with cluster.change() as writing:
            _refuse(cluster, writing.state, request, synced)
            writing.bind(source, worker)
    with cluster.written():
        cluster.wake([worker, *([bound.worker] if bound is not None else [])])
        cluster.seat()
    return plain()


def _refuse(cluster: Cluster, state: State, request: TransferSource, synced: Collection[str]) -> None:
    """Raise the error of an impossible move. `synced`: tasks whose copy is over, whatever is on record of them."""
    known(state, request.source)
    fault = worker_fault(state, request.worker, cluster.liveness.online())
    if fault and state.worker_of(request.source) != request.worker:
        raise ClusterError("CLUSTER-012", values={"worker": request.worker, "fault": fault})
    for row in state.of_source(request.source):
        if row.stage is Stage.RUNNING and row.task not in synced and not _is_in_sync(row):
            raise ClusterError("CLUSTER-013", Where(request.source), values={"task": row.task})


def _found_in_sync(cluster: Cluster, source: str) -> frozenset[str]:
    """Return tasks that are on record as in their copy and that the worker, asked now, reports to be in Sync."""
    rows = [row for row in cluster.state.of_source(source) if not _is_in_sync(row)]
    bound = cluster.serving(source)
    if not rows or bound is None:
        return frozenset()
    try:
        told = cluster.link(bound.worker).report(None, ASK_SECONDS).sub_task_status
    except UnshardError:
        return frozenset()  # the record counts
    return frozenset(one.name for one in told if one.unit is UnitName.SYNC)


def _is_in_sync(row: SubtaskRow) -> bool:
    return row.brief is None or row.brief.unit in ("", UnitName.SYNC.value, UnitName.NONE.value)


def _rests(cluster: Cluster, bound: Bound) -> bool:
    if cluster.unheard([bound.source]):
        return False  # this master has begun to lead anew meanwhile: the tasks may run there
    beat = cluster.liveness.beat_of(bound.worker)
    if beat is None or bound.worker not in cluster.liveness.online():
        return True  # nobody to wait for
    settled = (Stage.PAUSED, Stage.STOPPED, Stage.FINISHED, Stage.NEW)
    if beat.refused == bound.epoch and not beat.epoch:
        return True  # it could not begin
    return beat.epoch == bound.epoch and all(brief.stage in settled for brief in beat.subtasks)
