"""The master of a cluster: one method for each command, the heartbeats of workers, and the leader's main loop.

It is complete without HTTP: `web/master_app.py` serves it over HTTP, `unshard run` calls it directly. While this master
doesn't lead, every command raises ClusterError CLUSTER-001 or CLUSTER-002. The only samples for `/metrics` are then
those that show whether it leads.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from threading import Event, Thread
from typing import Any

from unshard.api.heartbeat import DesiredState, Heartbeat, SubtaskBrief
from unshard.api.verbs import (
    Answer,
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
    Validation,
    answer,
    plain,
)
from unshard.checks.run import check_moved, check_task
from unshard.config.encryption import encrypt
from unshard.config.files import parse_source
from unshard.errors import ClusterError, UnshardError
from unshard.log import logger
from unshard.master.beginning import AtTime, Forget, Leave, Reset, at_time, forget, leave, reset
from unshard.master.cluster import Cluster, Links
from unshard.master.election import LEASE_SECONDS, Election
from unshard.master.files import ConfigFiles, SettingsOf
from unshard.master.handover import begin_handovers
from unshard.master.liveness import Liveness
from unshard.master.members import LevelOf, Members, operate_leader
from unshard.master.orders import order_of
from unshard.master.records import Records
from unshard.master.relays import Relays
from unshard.master.sources import Ask, Sources, ask
from unshard.master.state import Bound, State, WorkerRow
from unshard.master.status import Statuses
from unshard.master.store import Store
from unshard.master.tasks import Check, Tasks
from unshard.master.transfer import transfer
from unshard.master.updates import Moved, TaskDraft, Updates
from unshard.metrics.events import EVENTS, EventCounters
from unshard.metrics.sample import Sample

WORKER_TTL_SECONDS = 8.0
_TICKS = 8
_LONGEST_PAUSE_SECONDS = 1.0
"""How many times per lease the lease and the workers are looked at."""


class Master:
    """One master of a cluster; implements MasterLink. It takes part from `start` to `close`."""

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
        """Set up the master.

        `own`: its settings without secrets, for display. `level_of`, `settings_of`: reach the log level and the
        settings of other members.
        """
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
        """Set the address at which others reach this master; called before `start`."""
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
        """Look once at the lease and at the workers. Failures are logged: the next look is soon."""
        asked = time.monotonic()
        try:
            self.election.step()
            self.cluster.trouble = self._slowness(time.monotonic() - asked)
            if self.election.epoch:
                self.cluster.seat()
                begin_handovers(self.cluster)
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
        """Return the warning about a look at the lease that took so long; "" where it was quick enough."""
        lease = self.election.lease_seconds
        if seconds < lease / 2:
            return ""
        told = f"the masters' database takes {seconds:.1f} s for a look at the lease, which lasts {lease:g} s"
        logger("master").warning("database slow", told=told, hint="leader-lease may be longer", sampled=True)
        return told

    def beat(self, beat: Heartbeat) -> DesiredState:
        """Record a worker's beat; return its orders. Raises ClusterError CLUSTER-011 for a name that another one has.

        Of two processes with one name and address, the one that was started last has them.
        """
        cluster = self.cluster
        if self.liveness.is_replaced(beat):
            raise ClusterError("CLUSTER-011", values={"worker": beat.name, "addr": beat.addr})
        known = cluster.state.workers.get(beat.name)
        if known is None or known.addr != beat.addr:
            alive = self.liveness.online() | self.liveness.presumed()  # a new leader has not heard all of them yet
            if known is not None and beat.name in alive:
                raise ClusterError("CLUSTER-011", values={"worker": beat.name, "addr": known.addr})
            self.members.register(WorkerRow(beat.name, beat.addr))
        if beat.leaving:
            logger("master").info("worker leaves", worker=beat.name)
            self.liveness.heard(beat)
            cluster.seat()
            return DesiredState(ttl_seconds=self.liveness.ttl_seconds, leader=self.addr)
        back = beat.name not in self.liveness.online()
        self.liveness.heard(beat)
        if self.liveness.beat_of(beat.name) is beat:  # none that a later one has overtaken
            cluster.refusals.heard(cluster.state, beat)
        if back:
            cluster.seat()
        bound = cluster.state.bound_to(beat.name)
        if bound is not None and bound.epoch == beat.epoch:
            self._keep(bound, beat)
        order = None
        if bound is not None:
            order = order_of(cluster.state, bound, held=bound.source in cluster.held, validation=cluster.validation)
        return DesiredState(ttl_seconds=self.liveness.ttl_seconds, leader=self.addr, order=order)

    def check_task(self, request: CheckTask) -> Answer:
        """Answer the verb as `Tasks.check`."""
        return self.tasks.check(request)

    def start_task(self, request: StartTask, *, checked: bool = False) -> Answer:
        """Answer the verb as `Tasks.start`."""
        return self.tasks.start(request, checked=checked)

    def stop_task(self, request: StopTask) -> Answer:
        """Answer the verb as `Tasks.stop`."""
        return self.tasks.stop(request)

    def pause_task(self, request: PauseTask) -> Answer:
        """Answer the verb as `Tasks.pause`."""
        return self.tasks.pause(request)

    def resume_task(self, request: ResumeTask) -> Answer:
        """Answer the verb as `Tasks.resume`."""
        return self.tasks.resume(request)

    def query_status(self, request: QueryStatus) -> Answer:
        """Answer the verb as `Statuses.query`."""
        return self.statuses.query(request)

    def operate_source(self, request: OperateSource) -> Answer:
        """Create, update, stop or show sources, by `op`. Raises as the methods of `Sources`, and `Updates.source`."""
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
        """Answer the verb as `Updates.task`."""
        return self._updates.task(request)

    def draft(self, task: str, text: str) -> TaskDraft:
        """Return the result that `update_task` would have for a text without secrets. Raises as `Updates.draft`."""
        return self._updates.draft(task, text)

    def update_source(self, request: UpdateSource) -> Answer:
        """Answer the verb as `Updates.source`."""
        return self._updates.source(request)

    def transfer_source(self, request: TransferSource) -> Answer:
        """Answer the verb as `transfer`."""
        return transfer(self.cluster, request)

    def start_relay(self, request: StartRelay) -> Answer:
        """Answer the verb as `Relays.start`."""
        return self._relays.start(request)

    def stop_relay(self, request: StopRelay) -> Answer:
        """Answer the verb as `Relays.stop`."""
        return self._relays.stop(request)

    def pause_relay(self, request: PauseRelay) -> Answer:
        """Answer the verb as `Relays.pause`."""
        return self._relays.pause(request)

    def resume_relay(self, request: ResumeRelay) -> Answer:
        """Answer the verb as `Relays.resume`."""
        return self._relays.resume(request)

    def purge_relay(self, request: PurgeRelay) -> Answer:
        """Answer the verb as `Relays.purge`."""
        return self._relays.purge(request)

    def list_member(self, request: ListMember) -> Answer:
        """Answer the verb as `Members.show`."""
        return self.members.show(request)

    def offline_member(self, request: OfflineMember) -> Answer:
        """Answer the verb as `Members.offline`."""
        return self.members.offline(request)

    def operate_leader(self, request: OperateLeader) -> Answer:
        """Answer the verb as `members.operate_leader`."""
        return operate_leader(self.cluster, request)

    def config(self, request: Config) -> Answer:
        """Answer the verb as `ConfigFiles.show`."""
        return self.files.show(request)

    def config_export(self, request: ConfigExport) -> Answer:
        """Answer the verb as `ConfigFiles.export`."""
        del request
        return self.files.export()

    def binlog(self, request: Binlog, who: str) -> Answer:
        """As `Records.binlog`; `who` is stored with a given operator."""
        return self._records.binlog(request, who)

    def binlog_schema(self, request: BinlogSchema) -> Answer:
        """Answer the verb as `Records.schema`."""
        return self._records.schema(request)

    def validation(self, request: Validation, who: str) -> Answer:
        """Answer the verb as `Records.validation`. `who` is stored in the record of errors that are settled."""
        return self._records.validation(request, who)

    def shard_ddl_lock(self, request: ShardDdlLock) -> Answer:
        """Answer the verb as `Records.locks`."""
        return self._records.locks(request)

    def shard_ddl_lock_unlock(self, request: ShardDdlLockUnlock, who: str) -> Answer:
        """As `Records.unlock`; `who` is stored with the lock."""
        return self._records.unlock(request, who)

    def encrypt(self, request: Encrypt) -> Answer:
        """Encrypt a password. Raises ConfigError where this master has no key."""
        return plain(ciphertext=encrypt(request.plaintext))

    def log_level(self, request: LogLevel) -> Answer:
        """Answer the verb as `Members.log_level`."""
        return self.members.log_level(request, self._level_of)

    def _keep(self, bound: Bound, beat: Heartbeat) -> None:
        """Store what the worker reports of its subtasks, where it is new and about the present orders."""

        def news(state: State) -> list[SubtaskBrief]:
            has_a_say = state.bounds.get(bound.source) == bound and self.liveness.beat_of(beat.name) is beat
            return _news(state, bound.source, beat) if has_a_say else []

        self.cluster.keep(bound.source, news)

    def slept(self, wanted: float, took: float) -> None:
        """Note how long a pause of this process was. After one that was much too long it has stood still itself.

        It has heard no beats meanwhile, so its workers have a ttl to beat before they count as lost, as they have with
        a new leader.
        """
        if self.election.epoch and took > wanted + self.liveness.ttl_seconds / 2:
            logger("master").warning("this process has stood still", seconds=round(took, 1))
            with suppress(ClusterError):
                self.liveness.begin(self.cluster.state.workers)

    def _lead(self) -> None:
        while True:
            due = time.monotonic() + self.election.lease_seconds / _TICKS
            while (left := due - time.monotonic()) > 0:
                wanted, begun = min(left, _LONGEST_PAUSE_SECONDS), time.monotonic()
                if self._stop.wait(wanted):
                    return
                self.slept(wanted, time.monotonic() - begun)
            self.step()


def _news(state: State, source: str, beat: Heartbeat) -> list[SubtaskBrief]:
    rows = ((brief, state.subtasks.get((brief.task, source))) for brief in beat.subtasks)
    return [brief for brief, row in rows if row and brief.revision >= row.revision and brief != row.brief]


BEGAN_TO_LEAD = "dm_master_start_leader_counter"
OFFLINE, FREE, BOUND = 0, 1, 2
"""DM's numbers of a worker's state."""


def master_samples(master: Master, events: EventCounters = EVENTS) -> Iterator[Sample]:
    """Yield every series of this master. One that has just lost the lease has none of workers."""
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
