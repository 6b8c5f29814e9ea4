"""Sources: added, shown, removed, moved to another worker; their relay logs: started, stopped, paused, purged.

When a user moves a source to another worker, its tasks finish their batch, move, and go on.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import replace

from unshard.api.heartbeat import PurgeWish
from unshard.api.status import Stage, UnitName
from unshard.api.verbs import (
    Answer,
    OperateSource,
    PauseRelay,
    PurgeRelay,
    RelayRequest,
    ResumeRelay,
    StartRelay,
    StopRelay,
    TransferSource,
    answer,
    of_source,
    plain,
)
from unshard.config.files import parse_source
from unshard.config.source import SourceConfig
from unshard.errors import ClusterError, UnshardError, Where
from unshard.master.beginning import parse_time
from unshard.master.cluster import WAIT_SECONDS, Cluster, settle
from unshard.master.files import kept
from unshard.master.orders import unread
from unshard.master.scheduler import worker_fault
from unshard.master.state import Bound, SourceRow, State, SubtaskRow, known
from unshard.master.status import ASK_SECONDS
from unshard.mysql.connection import session
from unshard.mysql.endpoint import to_endpoint
from unshard.mysql.flavour import identify

Ask = Callable[[SourceConfig], None]
_NO_WORKER = "source is added but there is no free worker to bound"


def ask(config: SourceConfig) -> None:
    """Try to reach the server with what the file says. Raises SourceError."""
    with session(to_endpoint(config.database), "source") as connection:
        identify(connection)


class Sources:
    """The verbs of sources. `ask` tries the server of a new one."""

    def __init__(self, cluster: Cluster, ask: Ask = ask) -> None:
        self._cluster, self._ask = cluster, ask

    def create(self, request: OperateSource) -> Answer:
        """Add sources, all or none, and bind them. Raises ClusterError CLUSTER-006, 012; ConfigError."""
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
        """Return the named sources, all where none is named, each with its worker and what is wrong with its file."""
        state = self._cluster.state
        return answer(self._shown(name) for name in state.sources if not names or name in names)

    def stop(self, names: Sequence[str]) -> Answer:
        """Remove sources. Raises ClusterError CLUSTER-008, and 014 where one of them has tasks."""
        with self._cluster.change() as writing:
            state = writing.state
            workers = {name: state.worker_of(name) for name in names}
            for name in names:
                known(state, name)
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
            writing.put_source(replace(known(writing.state, name), enabled=enabled))
        with self._cluster.written():
            state = self._cluster.state
        rows = [row for row in state.of_source(name) if row.stage is Stage.RUNNING]
        if not enabled:
            return answer(settle(self._cluster, rows, Stage.STOPPED))
        self._cluster.wake(filter(None, [state.worker_of(name)]))
        return answer([of_source(name, state.worker_of(name))])

    def wait_served(self, names: Sequence[str]) -> bool:
        """Wait until the worker of each source that has one shows that it serves the source."""

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


def transfer(cluster: Cluster, request: TransferSource) -> Answer:
    """Move the source. Raises ClusterError CLUSTER-008, 012, 013 for tasks that are not in Sync, 010.

    The pause is kept in memory only: a master that dies in between leaves everything as it was, and the next one lets
    the tasks go on where they are.
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
    beat = cluster.liveness.beat_of(bound.worker)
    if beat is None or bound.worker not in cluster.liveness.online():
        return True  # nobody to wait for
    settled = (Stage.PAUSED, Stage.STOPPED, Stage.FINISHED, Stage.NEW)
    return beat.epoch == bound.epoch and all(brief.stage in settled for brief in beat.subtasks)


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
        """Delete relay files that nobody needs. Raises ClusterError CLUSTER-008, 016."""
        if not (request.filename or request.time):
            raise ClusterError("CLUSTER-016", cause="purge-relay wants a file's name or a time")
        time = parse_time(request.time, "time").timestamp() if request.time else 0
        wish = PurgeWish(before=request.filename, sub_dir=request.sub_dir, time=time)
        state = self._cluster.state
        for name in request.sources:
            known(state, name)
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
                raise ClusterError("CLUSTER-015", Where(source))
            told = self._cluster.link(bound.worker).purge_relay(wish)
        except UnshardError as error:
            return of_source(source, bound.worker if bound is not None else "", str(error), good=False)
        return of_source(source, bound.worker, told)


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
