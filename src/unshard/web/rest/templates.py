"""Templates of tasks in the REST API."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, status
from pydantic import BaseModel, ConfigDict

from unshard.config.access import Role
from unshard.config.files import parse_task
from unshard.master.orders import task_config
from unshard.master.service import Master
from unshard.master.state import TaskRow
from unshard.web.answers import listed, readable
from unshard.web.guard import needs
from unshard.web.leader import LeaderRoute
from unshard.web.rest.task_form import Task, from_config, to_text


class Template(BaseModel):
    """A task to store as a template. `overwrite`: it replaces a template with the same name."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    task: Task
    overwrite: bool = False


class TemplateImport(BaseModel):
    """A request to make templates of all tasks. `overwrite`: they replace templates with the same names."""

    model_config = ConfigDict(extra="forbid")

    overwrite: bool = False


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
