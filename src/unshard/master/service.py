"""The master: one method a verb, the heartbeat of workers, and the loop that leads.

Whole without HTTP: `web/master_app.py` puts routes onto it, `unshard run` calls it directly. Every verb raises
ClusterError CLUSTER-001 or CLUSTER-002 while this master doesn't lead.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from threading import Event, Thread
from typing import Any

from unshard.api.heartbeat import DesiredState, Heartbeat, SubtaskBrief
from unshard.api.verbs import (
    Binlog,
    BinlogSchema,
    CheckTask,
    Config,
    ConfigExport,
    Encrypt,
    ListMember,
    LogLevel,
    OfflineMember,
    OperateLeader,
    OperateSource,
    PauseRelay,
    PauseTask,
    PurgeRelay,
    QueryStatus,
    ResumeRelay,
    ResumeTask,
    ShardDdlLock,
    ShardDdlLockUnlock,
    StartRelay,
    StartTask,
    StopRelay,
    StopTask,
    TransferSource,
    UpdateSource,
    UpdateTask,
)
from unshard.checks.run import check_moved, check_task
from unshard.config.cipher import encrypt
from unshard.config.files import parse_source
from unshard.errors import ClusterError, UnshardError
from unshard.log import logger
from unshard.master.answers import Answer, answer, plain
from unshard.master.beginning import AtTime, Forget, Leave, Reset, at_time, forget, leave, reset
from unshard.master.cluster import Cluster, Links
from unshard.master.election import LEASE_SECONDS, Election
from unshard.master.files import ConfigFiles, SettingsOf
from unshard.master.liveness import Liveness
from unshard.master.members import LevelOf, Members, operate_leader
from unshard.master.orders import order_of
from unshard.master.records import Records
from unshard.master.relays import Relays
from unshard.master.sources import Ask, Sources, ask, transfer
from unshard.master.state import Bound, State, WorkerRow
from unshard.master.status import Statuses
from unshard.master.store import Store
from unshard.master.tasks import Check, Tasks
from unshard.master.updates import Moved, Updates
from unshard.metrics.events import EVENTS

WORKER_TTL_SECONDS = 8.0
_TICKS = 8
"""Looks at the lease and at the workers, per lease."""


class Master:
    """One master of a cluster; implements MasterLink. `start` makes it take part, `close` lets it go."""

    def __init__(
        self,
        store: Store,
        links: Links,
        name: str = "master",
        addr: str = "",
        *,
        lease_seconds: float = LEASE_SECONDS,
        worker_ttl_seconds: float = WORKER_TTL_SECONDS,
        check: Check = check_task,
        ask: Ask = ask,
        forget: Forget = forget,
        at_time: AtTime = at_time,
        reset: Reset = reset,
        leave: Leave = leave,
        moved: Moved = check_moved,
        own: Mapping[str, Any] | None = None,
        level_of: LevelOf | None = None,
        settings_of: SettingsOf | None = None,
    ) -> None:
        """`own`: its settings without secrets, to show. `level_of`, `settings_of`: how to reach the log level and the
        settings of other members."""
        self.own = dict(own or {})
        self.name, self.addr = name, addr
        self.election = Election(store, name, addr, lease_seconds)
        self.liveness = Liveness(worker_ttl_seconds)
        self.cluster = Cluster(store, self.election, self.liveness, links)
        self.tasks = Tasks(self.cluster, check, forget, at_time, reset)
        self.sources = Sources(self.cluster, ask)
        self.statuses = Statuses(self.cluster)
        self._relays = Relays(self.cluster)
        self._updates = Updates(self.cluster, ask, leave, moved)
        self._records = Records(self.cluster, self.statuses)
        self.members = Members(self.cluster)
        self._level_of = level_of
        self.files = ConfigFiles(self.cluster, self.own, settings_of)
        self._led = 0
        self._stop = Event()
        self._thread = Thread(target=self._lead, name="leader", daemon=True)

    def start(self) -> None:
        """Open the store, take part in the election. The first step is done when it returns."""
        self.cluster.store.open()
        self.step()
        self._thread.start()

    def advertise(self, addr: str) -> None:
        """The address at which others reach this master; before `start`."""
        self.addr = self.election.addr = addr

    def close(self) -> None:
        """Stop, and give the lease back."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()
        try:
            self.election.leave()
        except UnshardError as error:
            logger("master").warning("lease not given back", **error.to_dict())
        self.cluster.store.close()

    def step(self) -> None:
        """One look at the lease and at the workers. What fails is logged: the next look is soon."""
        asked = time.monotonic()
        try:
            self.election.step()
            self.cluster.trouble = self._slowness(time.monotonic() - asked)
            if self.election.epoch:
                self.cluster.seat()
        except UnshardError as error:
            self.cluster.trouble = f"{error.message}: {error.cause}" if error.cause else error.message
            logger("master").error("step failed", told=error.message, sampled=True, **error.to_dict())
        except Exception:  # noqa: BLE001 - a bug must not end the thread: the process would serve on and never lead
            logger("master").error("step failed by a bug", exc_info=True)
        epoch, self._led = self._led, self.election.epoch
        if self._led != epoch:
            if self._led:
                EVENTS.count("dm_master_start_leader_counter")
            logger("master").info("leads" if self._led else "follows", epoch=self._led)

    def _slowness(self, seconds: float) -> str:
        """What is to be said of a look at the lease that took so long; empty where it was quick enough."""
        lease = self.election.lease_seconds
        if seconds < lease / 2:
            return ""
        told = f"the masters' database takes {seconds:.1f} s for a look at the lease, which lasts {lease:g} s"
        logger("master").warning("database slow", told=told, hint="leader-lease may be longer", sampled=True)
        return told

    def beat(self, beat: Heartbeat) -> DesiredState:
        """A worker's sign of life; its orders. Raises ClusterError CLUSTER-011 for a name that another one has.

        Of two processes with one name and address the one that was started last has them.
        """
        cluster = self.cluster
        if self.liveness.is_replaced(beat):
            raise ClusterError("CLUSTER-011", values={"worker": beat.name, "addr": beat.addr})
        known = cluster.state.workers.get(beat.name)
        if known is None or known.addr != beat.addr:
            if known is not None and beat.name in self.liveness.online():
                raise ClusterError("CLUSTER-011", values={"worker": beat.name, "addr": known.addr})
            self.members.register(WorkerRow(beat.name, beat.addr))
        if beat.leaving:
            logger("master").info("worker leaves", worker=beat.name)
            self.liveness.heard(beat)
            cluster.seat()
            return DesiredState(ttl_seconds=self.liveness.ttl_seconds, leader=self.addr)
        back = beat.name not in self.liveness.online()
        self.liveness.heard(beat)
        if back:
            cluster.seat()
        bound = cluster.state.bound_to(beat.name)
        if bound is not None and bound.epoch == beat.epoch:
            self._keep(bound, beat)
        order = order_of(cluster.state, bound, held=bound.source in cluster.held) if bound is not None else None
        return DesiredState(ttl_seconds=self.liveness.ttl_seconds, leader=self.addr, order=order)

    def check_task(self, request: CheckTask) -> Answer:
        return self.tasks.check(request)

    def start_task(self, request: StartTask, *, checked: bool = False) -> Answer:
        return self.tasks.start(request, checked=checked)

    def stop_task(self, request: StopTask) -> Answer:
        return self.tasks.stop(request)

    def pause_task(self, request: PauseTask) -> Answer:
        return self.tasks.pause(request)

    def resume_task(self, request: ResumeTask) -> Answer:
        return self.tasks.resume(request)

    def query_status(self, request: QueryStatus) -> Answer:
        return self.statuses.query(request)

    def operate_source(self, request: OperateSource) -> Answer:
        names = (*request.source_id, *(parse_source(text).source_id for text in request.config))
        if request.op == "create":
            return self.sources.create(request)
        if request.op == "update":
            changed = [self._updates.source(UpdateSource(config=text)) for text in request.config]
            return answer(source for each in changed for source in each["sources"])
        if request.op == "stop":
            return self.sources.stop(names)
        return self.sources.show(names)

    def update_task(self, request: UpdateTask) -> Answer:
        return self._updates.task(request)

    def update_source(self, request: UpdateSource) -> Answer:
        return self._updates.source(request)

    def transfer_source(self, request: TransferSource) -> Answer:
        return transfer(self.cluster, request)

    def start_relay(self, request: StartRelay) -> Answer:
        return self._relays.start(request)

    def stop_relay(self, request: StopRelay) -> Answer:
        return self._relays.stop(request)

    def pause_relay(self, request: PauseRelay) -> Answer:
        return self._relays.pause(request)

    def resume_relay(self, request: ResumeRelay) -> Answer:
        return self._relays.resume(request)

    def purge_relay(self, request: PurgeRelay) -> Answer:
        return self._relays.purge(request)

    def list_member(self, request: ListMember) -> Answer:
        return self.members.show(request)

    def offline_member(self, request: OfflineMember) -> Answer:
        return self.members.offline(request)

    def operate_leader(self, request: OperateLeader) -> Answer:
        return operate_leader(self.cluster, request)

    def config(self, request: Config) -> Answer:
        return self.files.show(request)

    def config_export(self, request: ConfigExport) -> Answer:
        del request
        return self.files.export()

    def binlog(self, request: Binlog, who: str) -> Answer:
        """`who` stands in the record of what is given."""
        return self._records.binlog(request, who)

    def binlog_schema(self, request: BinlogSchema) -> Answer:
        return self._records.schema(request)

    def shard_ddl_lock(self, request: ShardDdlLock) -> Answer:
        return self._records.locks(request)

    def shard_ddl_lock_unlock(self, request: ShardDdlLockUnlock, who: str) -> Answer:
        """`who` stands in the lock's record."""
        return self._records.unlock(request, who)

    def encrypt(self, request: Encrypt) -> Answer:
        """Raises ConfigError where this master has no key."""
        return plain(ciphertext=encrypt(request.plaintext))

    def log_level(self, request: LogLevel) -> Answer:
        return self.members.log_level(request, self._level_of)

    def _keep(self, bound: Bound, beat: Heartbeat) -> None:
        """Write down what the worker says of its subtasks, where it is new, and of orders as they are now."""

        def news(state: State) -> list[SubtaskBrief]:
            has_a_say = state.bounds.get(bound.source) == bound and self.liveness.beat_of(beat.name) is beat
            return _news(state, bound.source, beat) if has_a_say else []

        self.cluster.keep(bound.source, news)

    def _lead(self) -> None:
        while not self._stop.wait(self.election.lease_seconds / _TICKS):
            self.step()


def _news(state: State, source: str, beat: Heartbeat) -> list[SubtaskBrief]:
    rows = ((brief, state.subtasks.get((brief.task, source))) for brief in beat.subtasks)
    return [brief for brief, row in rows if row and brief.revision >= row.revision and brief != row.brief]
