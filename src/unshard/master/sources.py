"""Sources: made known, shown, let go, moved to another worker."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from unshard.api.status import Stage, UnitName
from unshard.api.verbs import OperateSource, TransferSource
from unshard.config.files import parse_source
from unshard.config.source import SourceConfig
from unshard.errors import ClusterError, UnshardError, Where
from unshard.master.answers import Answer, answer, of_source, plain
from unshard.master.cluster import Cluster
from unshard.master.files import kept
from unshard.master.orders import unread
from unshard.master.relays import known
from unshard.master.scheduler import worker_fault
from unshard.master.stages import WAIT_SECONDS, settle
from unshard.master.state import Bound, SourceRow, State, SubtaskRow
from unshard.master.status import ASK_SECONDS
from unshard.mysql.connection import session
from unshard.mysql.endpoint import to_endpoint
from unshard.mysql.flavour import identify

Ask = Callable[[SourceConfig], None]
_NO_WORKER = "source is added but there is no free worker to bound"


def ask(config: SourceConfig) -> None:
    """Whether the server can be reached with what the file says. Raises SourceError."""
    with session(to_endpoint(config.database), "source") as connection:
        identify(connection)


class Sources:
    """The verbs of sources. `ask` tries the server of a new one."""

    def __init__(self, cluster: Cluster, ask: Ask = ask) -> None:
        self._cluster, self._ask = cluster, ask

    def create(self, request: OperateSource) -> Answer:
        """Make sources known, all or none, and bind them. Raises ClusterError CLUSTER-006, 012; ConfigError."""
        configs = [(parse_source(text), text) for text in request.config]
        for config, _ in configs:
            self._ask(config)
        if request.worker and len(configs) != 1:
            raise ClusterError("CLUSTER-016", cause="a worker can be named for one source at a time")
        with self._cluster.change() as writing:
            state = writing.state
            names = [config.source_id for config, _ in configs]
            for name in names:
                if name in state.sources or names.count(name) > 1:
                    raise ClusterError("CLUSTER-006", Where(name))
            for config, text in configs:
                relay = Stage.RUNNING if config.enable_relay else Stage.STOPPED
                writing.put_source(SourceRow(config.source_id, kept(text), config.enable, relay))
            if request.worker:
                self._refuse_worker(state, request.worker)
                writing.bind(names[0], request.worker)
        with self._cluster.written():
            if request.worker:
                self._cluster.wake([request.worker])
            self._cluster.seat()
            self.wait_served(names)
            return answer(self._shown(name) for name in names)

    def show(self, names: Sequence[str]) -> Answer:
        state = self._cluster.state
        return answer(self._shown(name) for name in state.sources if not names or name in names)

    def stop(self, names: Sequence[str]) -> Answer:
        """Let sources go. Raises ClusterError CLUSTER-008, and 014 where tasks are on one of them."""
        with self._cluster.change() as writing:
            state = writing.state
            workers = {name: state.worker_of(name) for name in names}
            for name in names:
                _known(state, name)
                tasks = [row.task for row in state.of_source(name)]
                if tasks:
                    raise ClusterError("CLUSTER-014", Where(name), values={"tasks": ", ".join(tasks)})
                writing.drop_source(name)
        with self._cluster.written():
            self._cluster.wake(filter(None, workers.values()))
            self._cluster.seat()
        return answer(of_source(name, workers[name]) for name in names)

    def enable(self, name: str, *, enabled: bool) -> Answer:
        """Let the tasks of a source run, or none of them. Raises ClusterError CLUSTER-008."""
        with self._cluster.change() as writing:
            writing.put_source(replace(_known(writing.state, name), enabled=enabled))
        with self._cluster.written():
            state = self._cluster.state
        rows = [row for row in state.of_source(name) if row.stage is Stage.RUNNING]
        if not enabled:
            return answer(settle(self._cluster, rows, Stage.STOPPED))
        self._cluster.wake(filter(None, [state.worker_of(name)]))
        return answer([of_source(name, state.worker_of(name))])

    def wait_served(self, names: Sequence[str]) -> bool:
        """Wait until the worker of each source that has one shows that it has taken it."""

        def taken() -> bool:
            for name in names:
                bound = self._cluster.serving(name)
                beat = self._cluster.liveness.beat_of(bound.worker) if bound is not None else None
                if bound is not None and (beat is None or beat.epoch != bound.epoch):
                    return False
            return True

        return self._cluster.liveness.wait(taken, WAIT_SECONDS)

    def _refuse_worker(self, state: State, worker: str) -> None:
        fault = worker_fault(state, worker, self._cluster.liveness.online())
        if fault:
            raise ClusterError("CLUSTER-012", values={"worker": worker, "fault": fault})

    def _shown(self, name: str) -> Answer:
        worker = self._cluster.state.worker_of(name)
        faults = [str(error) for error in unread(self._cluster.state, [name], ())]
        return of_source(name, worker, "\n".join(faults or ([] if worker else [_NO_WORKER])))


def _known(state: State, name: str) -> SourceRow:
    row = state.sources.get(name)
    if row is None:
        raise ClusterError("CLUSTER-008", Where(name))
    return row


# A source moved to another worker by hand: its tasks end what they have in hand, move, and go on.


def transfer(cluster: Cluster, request: TransferSource) -> Answer:
    """Move the source. Raises ClusterError CLUSTER-008, 012, 013 for tasks that are not in Sync, 010.

    The pause is held in memory and written nowhere: a master that dies on the way leaves all as it was, and the next
    one lets the tasks go on where they are.
    """
    source, worker = request.source, request.worker
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
    """`synced`: tasks whose copy is over, whatever is on record of them."""
    known(state, request.source)
    fault = worker_fault(state, request.worker, cluster.liveness.online())
    if fault and state.worker_of(request.source) != request.worker:
        raise ClusterError("CLUSTER-012", values={"worker": request.worker, "fault": fault})
    for row in state.of_source(request.source):
        if row.stage is Stage.RUNNING and row.task not in synced and not _is_in_sync(row):
            raise ClusterError("CLUSTER-013", Where(request.source), values={"task": row.task})


def _found_in_sync(cluster: Cluster, source: str) -> frozenset[str]:
    """Tasks on record as in their copy of which the worker says, asked now, that they are in Sync."""
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
    beat = cluster.liveness.beat_of(bound.worker)
    if beat is None or bound.worker not in cluster.liveness.online():
        return True  # nobody to wait for
    settled = (Stage.PAUSED, Stage.STOPPED, Stage.FINISHED, Stage.NEW)
    return beat.epoch == bound.epoch and all(brief.stage in settled for brief in beat.subtasks)
