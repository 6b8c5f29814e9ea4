"""`/api/v1/cluster`: the masters and workers, and the addresses of Grafana, Prometheus and the alert manager."""

from __future__ import annotations

from typing import Any, Literal

from fastapi import APIRouter, status
from pydantic import BaseModel, ConfigDict, Field

from unshard.api.verbs import ListMember, OfflineMember
from unshard.config.access import Role
from unshard.master.service import Master
from unshard.web.answers import done, listed
from unshard.web.guard import needs
from unshard.web.leader import LeaderRoute

TOPOLOGY = "topology"
"""Name of the text that is kept of it."""


class Place(BaseModel):
    """The address of a tool: host and port."""

    model_config = ConfigDict(extra="forbid")

    host: str = Field(max_length=255)
    port: int = Field(ge=1, le=65535)


class Topology(BaseModel):
    """The addresses of the cluster's members and of the tools around it.

    The addresses of members are ignored in a request: members report their own.
    """

    model_config = ConfigDict(extra="forbid")

    master_topology_list: list[dict[str, Any]] = []
    worker_topology_list: list[dict[str, Any]] = []
    grafana_topology: Place | None = None
    prometheus_topology: Place | None = None
    alert_manager_topology: Place | None = None


def cluster_routes(master: Master) -> APIRouter:
    """Return the routes of DM's REST for the cluster: its members and the tools around it."""
    router = APIRouter(prefix="/api/v1/cluster", tags=["cluster"], route_class=LeaderRoute)

    def forget(kind: Literal["master", "worker"], name: str) -> None:
        done(master.offline_member(OfflineMember(type=kind, name=name)))

    @router.get("/info")
    @needs(Role.VIEWER)
    def info() -> dict[str, Any]:
        """Return the addresses of masters and workers, and of the tools around them."""
        workers = {name: addr for name, (addr, _, _) in master.members.workers().items()}
        masters = {row.name: row.addr for row in master.election.masters()}
        told = master.cluster.state.texts.get(TOPOLOGY)
        tools = Topology.model_validate_json(told).model_dump(exclude_none=True) if told else {}
        members = {"master_topology_list": _places(masters), "worker_topology_list": _places(workers)}
        return {"cluster_id": 0, "topology": {**tools, **members}}

    @router.put("/info")
    @needs(Role.OPERATOR)
    def put_info(body: Topology) -> dict[str, Any]:
        """Store the addresses of Grafana, Prometheus and the alert manager."""
        kept = body.model_copy(update={"master_topology_list": [], "worker_topology_list": []})
        with master.cluster.change() as writing:
            writing.put_text(TOPOLOGY, kept.model_dump_json())
        return info()

    @router.get("/masters")
    @needs(Role.VIEWER)
    def masters() -> dict[str, Any]:
        """List the masters."""
        told = master.list_member(ListMember(master=True))["members"][0]["master"]["masters"]
        leader = master.election.name
        return listed({"name": one["name"], "alive": one["alive"], "addr": one["clientURLs"][0],
                       "leader": one["name"] == leader} for one in told)  # fmt: skip

    @router.delete("/masters/{master_name}", status_code=status.HTTP_204_NO_CONTENT)
    @needs(Role.ADMIN)
    def forget_master(master_name: str) -> None:
        """Remove a master that is not alive."""
        forget("master", master_name)

    @router.get("/workers")
    @needs(Role.VIEWER)
    def workers() -> dict[str, Any]:
        """List the workers."""
        return listed(
            {"name": name, "addr": addr, "bound_stage": stage, "bound_source_name": source}
            for name, (addr, stage, source) in master.members.workers().items()
        )

    @router.delete("/workers/{worker_name}", status_code=status.HTTP_204_NO_CONTENT)
    @needs(Role.ADMIN)
    def forget_worker(worker_name: str) -> None:
        """Remove a worker that is not alive."""
        forget("worker", worker_name)

    return router


def _places(addrs: dict[str, str]) -> list[dict[str, Any]]:
    """Return DM's host and port of each member, and the address as it is."""
    parts = {name: addr.rpartition(":") for name, addr in addrs.items()}
    return [
        {"name": name, "host": host, "port": int(port) if port.isdecimal() else 0, "addr": addrs[name]}
        for name, (host, _, port) in parts.items()
    ]
