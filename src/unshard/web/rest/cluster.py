"""`/api/v1/cluster`, templates of tasks, and the document of the API."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from typing import Any, Literal

from fastapi import APIRouter, status
from fastapi.responses import HTMLResponse
from pydantic import BaseModel, ConfigDict, Field

from unshard.api.verbs import ListMember, OfflineMember
from unshard.config.access import Role
from unshard.config.files import parse_task
from unshard.master.orders import task_config
from unshard.master.service import Master
from unshard.master.state import TaskRow
from unshard.web.answers import done, listed, readable
from unshard.web.guard import needs
from unshard.web.leader import LeaderRoute
from unshard.web.rest.task_form import Task, from_config, to_text

TOPOLOGY = "topology"
"""Name of the text that is kept of it."""


class Template(BaseModel):
    """A task to keep for later. `overwrite`: in place of a template of its name."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    task: Task
    overwrite: bool = False


class TemplateImport(BaseModel):
    """A request to make templates of all tasks. `overwrite`: also in place of templates of their names."""

    model_config = ConfigDict(extra="forbid")

    overwrite: bool = False


class Place(BaseModel):
    """The address of a tool."""

    model_config = ConfigDict(extra="forbid")

    host: str = Field(max_length=255)
    port: int = Field(ge=1, le=65535)


class Topology(BaseModel):
    """The addresses of the cluster and the tools around it. Those of members are ignored: they tell them themselves."""

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


def template_routes(master: Master) -> APIRouter:
    """Return the routes of DM's REST for templates of tasks."""
    router = APIRouter(prefix="/api/v1/tasks/templates", tags=["task"], route_class=LeaderRoute)

    @router.post("", status_code=status.HTTP_201_CREATED)
    @needs(Role.OPERATOR)
    def create_template(body: Template) -> dict[str, Any]:
        """Keep a task for later."""
        row = master.files.put_template(to_text(body.task), overwrite=body.overwrite)
        return from_config(parse_task(row.text))

    @router.get("")
    @needs(Role.VIEWER)
    def list_templates() -> dict[str, Any]:
        """List the tasks that are kept for later."""

        def shown(row: TaskRow) -> dict[str, Any]:
            return readable(lambda: from_config(task_config(row)), {"name": row.name})

        return listed(map(shown, master.cluster.state.templates.values()))

    @router.post("/import", status_code=status.HTTP_202_ACCEPTED)
    @needs(Role.OPERATOR)
    def import_templates(body: TemplateImport) -> dict[str, Any]:
        """Make a template of each task that there is, but where one of its name is there already."""
        made = []
        for name, row in master.cluster.state.tasks.items():
            if body.overwrite or name not in master.cluster.state.templates:
                made.append(master.files.put_template(row.text, overwrite=True).name)
        return {"success_task_list": made, "failed_task_list": []}

    @router.get("/{template_name}")
    @needs(Role.VIEWER)
    def get_template(template_name: str) -> dict[str, Any]:
        """Return one template."""
        return from_config(task_config(master.files.template(template_name)))

    @router.put("/{template_name}")
    @needs(Role.OPERATOR)
    def change_template(template_name: str, body: Template) -> dict[str, Any]:
        """Put another task in its place."""
        known = task_config(master.files.template(template_name))
        text = to_text(body.task.model_copy(update={"name": template_name}), known)
        return from_config(parse_task(master.files.put_template(text, overwrite=True).text))

    @router.delete("/{template_name}", status_code=status.HTTP_204_NO_CONTENT)
    @needs(Role.OPERATOR)
    def drop_template(template_name: str) -> None:
        """Forget one."""
        master.files.drop_template(template_name)

    return router


def document_routes(document: Callable[[], dict[str, Any]]) -> APIRouter:
    """Return the routes of the API's own description: OpenAPI, and a page that uses nothing of other sites."""
    router = APIRouter(prefix="/api/v1", tags=["document"], route_class=LeaderRoute)

    @router.get("/dm.json")
    @needs(Role.VIEWER)
    def openapi() -> dict[str, Any]:
        """Return this API in OpenAPI's form."""
        return document()

    @router.get("/docs", response_class=HTMLResponse)
    @needs(Role.VIEWER)
    def page() -> str:
        """Show this API as a list."""
        lines = [
            f"<tr><td>{method.upper()}</td><td><code>{escape(path)}</code></td>"
            f"<td>{escape(str(told.get('description', '')))}</td></tr>"
            for path, methods in sorted(document()["paths"].items())
            for method, told in methods.items()
        ]
        head = "<!doctype html><title>Unshard master</title><h1>Unshard master</h1>"
        return f"{head}<p><a href='dm.json'>OpenAPI</a></p><table>{''.join(lines)}</table>"

    return router
