"""Masters and workers: listed, removed; the leader evicted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from unshard.api.verbs import Answer, ListMember, LogLevel, OfflineMember, OperateLeader, plain
from unshard.errors import ClusterError, UnshardError
from unshard.log import level, set_level
from unshard.master.cluster import SPARE_BEAT_SECONDS, Cluster
from unshard.master.orders import unread
from unshard.master.settle import refusals_of
from unshard.master.state import WorkerRow

LevelOf = Callable[[str, str], str]
"""Sets the log level of the process at an address, or leaves it for an empty one; returns the level."""

OFFLINE_AT_MOST = 64
"""The number of workers that stay known though they are neither alive nor needed."""

BOUND, FREE, OFFLINE = "bound", "free", "offline"
"""DM's stages of a worker. Its `relay` has no counterpart: only the worker of a source keeps its log."""


class Members:
    """The masters and workers of the cluster: register, list and remove them, set their log levels."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def workers(self) -> dict[str, tuple[str, str, str]]:
        """Return address, stage and source of each worker, by name."""
        state, online = self._cluster.state, self._cluster.liveness.online()
        sources = {bound.worker: bound.source for bound in state.bounds.values()}
        found = {}
        for name, row in state.workers.items():
            stage = OFFLINE if name not in online else BOUND if name in sources else FREE
            found[name] = (row.addr, stage, sources.get(name, ""))
        return found

    def register(self, row: WorkerRow) -> None:
        """Make a worker known.

        Only OFFLINE_AT_MOST workers that are offline and serve nothing stay known: workers that get another name with
        each start would pile up. One that comes back registers again.
        """
        idle = [name for name, (_, stage, source) in self.workers().items() if stage == OFFLINE and not source]
        presumed = self._cluster.liveness.presumed()
        gone = [name for name in idle if name not in presumed and name != row.name][OFFLINE_AT_MOST - 1 :]
        with self._cluster.change() as writing:
            writing.put_worker(row)
            for name in gone:
                if writing.state.bound_to(name) is None:
                    writing.drop_worker(name)
        for name in gone:
            self._cluster.liveness.forget(name)

    def show(self, request: ListMember) -> Answer:
        """List members; all kinds of them where none is asked for."""
        every = not (request.leader or request.master or request.worker)
        named = frozenset(request.names)
        members: list[dict[str, Any]] = []
        if every or request.worker:
            self._cluster.await_beats((), self._cluster.state.workers, SPARE_BEAT_SECONDS)
        self._cluster.state  # noqa: B018 - only the leader knows
        if every or request.leader:
            leader = self._cluster.election
            members.append({"leader": {"msg": "", "name": leader.name, "addr": leader.addr}})
        if every or request.master:
            masters = [
                {
                    "name": row.name,
                    "memberID": "",
                    "alive": row.alive,
                    "peerURLs": [],
                    "clientURLs": [row.addr],
                    "evicted": row.evicted,
                }
                for row in self._cluster.election.masters()
                if not named or row.name in named
            ]
            members.append({"master": {"msg": "", "masters": masters}})
        if every or request.worker:
            workers = [
                {"name": name, "addr": addr, "stage": stage, "source": source, **self._told(name, source)}
                for name, (addr, stage, source) in self.workers().items()
                if not named or name in named
            ]
            members.append({"worker": {"msg": "", "workers": workers}})
        return plain(members=members)

    def _told(self, worker: str, source: str) -> dict[str, str]:
        """Return the `msg` of a worker in an answer; {} for none.

        It is why the worker can't get its source's orders, was not heard yet, or could not serve a source.
        """
        faults = [*unread(self._cluster.state, [source], ()), *self._cluster.silence(worker)]
        told = [*map(str, faults), *refusals_of(self._cluster, worker)]
        return {"msg": "\n".join(told)} if told else {}

    def log_level(self, request: LogLevel, level_of: LevelOf | None) -> Answer:
        """Set or show the log level of members: all that are alive, or those named. Raises ClusterError CLUSTER-019."""
        masters = {row.name: row.addr for row in self._cluster.election.masters() if row.alive}
        workers = {name: addr for name, (addr, stage, _) in self.workers().items() if stage != OFFLINE}
        addrs = masters | workers
        for name in request.names:
            if name not in addrs:
                fault = "there is none of that name, or it is not alive"
                raise ClusterError("CLUSTER-019", values={"type": "member", "name": name, "fault": fault})
        told = [self._level(name, addrs[name], request.level, level_of) for name in request.names or addrs]
        return {"result": all(one["result"] for one in told), "msg": "", "members": told}

    def _level(self, name: str, addr: str, wanted: str, level_of: LevelOf | None) -> Answer:
        try:
            if name == self._cluster.election.name or level_of is None:
                if wanted:
                    set_level(wanted)
                found = level()
            else:
                found = level_of(addr, wanted)
        except UnshardError as error:
            return {"name": name, "level": "", "result": False, "msg": str(error)}
        return {"name": name, "level": found, "result": True, "msg": ""}

    def offline(self, request: OfflineMember) -> Answer:
        """Remove a member that is not alive. Raises ClusterError CLUSTER-019."""
        if request.type == "master":
            masters = {row.name: row for row in self._cluster.election.masters()}
            found = masters.get(request.name)
            self._refuse(request, None if found is None else found.alive)
            with self._cluster.change() as writing:
                writing.drop_master(request.name)
            return plain()
        workers = self.workers()
        liveness = self._cluster.liveness
        alive = liveness.online() | liveness.presumed()
        self._refuse(request, request.name in alive if request.name in workers else None)
        with self._cluster.change() as writing:
            bound = writing.state.bound_to(request.name)
            if bound is not None:
                writing.unbind(bound.source)
            writing.drop_worker(request.name)
        liveness.forget(request.name)
        return plain()

    def _refuse(self, request: OfflineMember, alive: bool | None) -> None:
        if alive is not False:
            fault = "there is none of that name" if alive is None else "it is alive, or was a moment ago: stop it first"
            values = {"type": request.type, "name": request.name, "fault": fault}
            raise ClusterError("CLUSTER-019", values=values)


def operate_leader(cluster: Cluster, request: OperateLeader) -> Answer:
    """Stop leading on this master (`evict`), also after a restart; or let all masters lead again (`cancel-evict`)."""
    if request.op == "evict":
        cluster.state  # noqa: B018 - only of the leader
        cluster.election.evict()
    else:
        cluster.election.cancel_evict()
    return plain()
