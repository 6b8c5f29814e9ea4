"""Sources: added, shown, removed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from unshard.api.status import Stage
from unshard.api.verbs import Answer, OperateSource, answer, of_source
from unshard.config.files import parse_source
from unshard.config.source import SourceConfig
from unshard.errors import ClusterError, Where
from unshard.master.cluster import SPARE_BEAT_SECONDS, Cluster
from unshard.master.orders import unread
from unshard.master.passwords import kept
from unshard.master.scheduler import worker_fault
from unshard.master.settle import WAIT_SECONDS, refused, refused_by, settle
from unshard.master.state import SourceRow, State, known
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
    """The verbs of sources. `ask` tries to connect to the server of a new source."""

    def __init__(self, cluster: Cluster, ask: Ask = ask) -> None:
        self._cluster, self._ask = cluster, ask

    def create(self, request: OperateSource) -> Answer:
        """Add sources, all or none, and bind them. Raises ClusterError CLUSTER-006, 012, 099; ConfigError."""
        configs = [(parse_source(text), text) for text in request.config]
        self._cluster.state  # noqa: B018 - only the leader connects: another master may not reach the servers
        for config, _ in configs:
            self._ask(config)
        if request.worker and len(configs) != 1:
            raise ClusterError("CLUSTER-016", cause="a worker can be named for one source at a time")
        if request.worker:
            self._cluster.hear((), [request.worker])
        else:
            self._cluster.await_beats((), self._cluster.state.workers, SPARE_BEAT_SECONDS)
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
        """Let the tasks of a source run, or none of them. Raises ClusterError CLUSTER-008, 099."""
        self._cluster.hear([name])
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
        """Wait until the worker of each source that has one shows that it serves the source, or why it can't."""

        def taken() -> bool:
            for name in names:
                bound = self._cluster.serving(name)
                beat = self._cluster.liveness.beat_of(bound.worker) if bound is not None else None
                if bound is not None and (beat is None or bound.epoch not in (beat.epoch, beat.refused)):
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
        faults = faults or [why for why in [refused(self._cluster, name)] if why]
        faults += refused_by(self._cluster, name, but=worker)
        return of_source(name, worker, "\n".join(faults or ([] if worker else [_NO_WORKER])))
