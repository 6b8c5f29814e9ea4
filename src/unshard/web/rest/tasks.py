"""`/api/v1/tasks`: tasks."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, status
from pydantic import BaseModel, ConfigDict

from unshard.api.status import SourceReport, SubTaskStatus
from unshard.api.verbs import ResumeTask, StartTask, StopTask, UpdateTask
from unshard.config.access import Role
from unshard.config.files import parse_task
from unshard.errors import ClusterError, TargetError
from unshard.log import logger
from unshard.master.orders import task_config
from unshard.master.service import Master
from unshard.master.status import summary
from unshard.web.answers import done, listed, readable
from unshard.web.guard import needs
from unshard.web.leader import LeaderRoute
from unshard.web.rest.task_form import Task, from_config, to_text


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)


class GivenTask(_Body):
    """A task to create or to change."""

    task: Task


class TaskConversion(_Body):
    """A task to convert: either the object `task` or the text of a task file."""

    task: Task | None = None
    task_config_file: str = ""


class Start(_Body):
    """The options with which a task is started, and the sources on which it is started; none: on all.

    `start_time`: `YYYY-MM-DD HH:MM:SS` in the time zone of each source, or RFC 3339 with its zone.
    """

    remove_meta: bool = False
    source_name_list: list[str] = []
    start_time: str = ""
    safe_mode_time_duration: str = ""


class Stop(_Body):
    """The sources on which a task is stopped; none: on all."""

    timeout_duration: str = ""
    source_name_list: list[str] = []


def task_routes(master: Master) -> APIRouter:
    """Return the routes of DM's REST for tasks."""
    router = APIRouter(prefix="/api/v1/tasks", tags=["task"], route_class=LeaderRoute)

    def known(name: str) -> Any:
        there(name)
        return task_config(master.cluster.state.tasks[name])

    def there(name: str) -> None:
        if name not in master.cluster.state.tasks:
            raise ClusterError("CLUSTER-017", values={"task": name})

    def reports(name: str, sources: list[str]) -> dict[str, SourceReport]:
        rows = [row.source for row in master.cluster.state.of_task(name) if not sources or row.source in sources]
        return master.statuses.reports(rows, name, asks=True)

    @router.post("", status_code=status.HTTP_201_CREATED)
    @needs(Role.OPERATOR)
    def create_task(body: GivenTask) -> dict[str, Any]:
        """Check a task and keep it, not started."""
        told = master.tasks.create(to_text(body.task))
        return {"task": from_config(known(body.task.name)), "check_result": told["checkResult"]}

    @router.get("")
    @needs(Role.VIEWER)
    def list_tasks(with_status: bool = False, stage: str = "", source_name_list: str = "") -> dict[str, Any]:
        """List all tasks; `source_name_list` with commas: those on one of these sources."""
        wanted = {name for name in source_name_list.split(",") if name}
        found = []
        for name in master.cluster.state.tasks:
            form = readable(lambda name=name: from_config(known(name)), {"name": name})  # type: ignore[misc]
            sources = {row.source for row in master.cluster.state.of_task(name)}
            if wanted and not wanted & sources:
                continue
            if with_status or stage:
                told = reports(name, [])
                if stage and summary(name, told.values()) != stage:
                    continue
                form["status_list"] = _statuses(name, told)
            found.append(form)
        return listed(found)

    @router.post("/converters", status_code=status.HTTP_201_CREATED)
    @needs(Role.VIEWER)
    def convert(body: TaskConversion) -> dict[str, Any]:
        """Return a task file for a task object, or the reverse. Nothing is stored."""
        text = to_text(body.task) if body.task is not None else body.task_config_file
        return {"task": from_config(parse_task(text)), "task_config_file": text}

    @router.get("/{task_name}")
    @needs(Role.VIEWER)
    def get_task(task_name: str, with_status: bool = False) -> dict[str, Any]:
        """Return one task."""
        form = from_config(known(task_name))
        return form | ({"status_list": _statuses(task_name, reports(task_name, []))} if with_status else {})

    @router.put("/{task_name}")
    @needs(Role.OPERATOR)
    def change_task(task_name: str, body: GivenTask) -> dict[str, Any]:
        """Change a task, as far as it may change now."""
        text = to_text(body.task.model_copy(update={"name": task_name}), known(task_name))
        done(master.update_task(UpdateTask(task=text)))
        return {"task": from_config(known(task_name)), "check_result": ""}

    @router.delete("/{task_name}", status_code=status.HTTP_204_NO_CONTENT)
    @needs(Role.OPERATOR)
    def delete_task(task_name: str, force: bool = False, keep_meta: bool = False) -> None:
        """Delete a task that does not run, and its records in the target, as DM does.

        A task of its name then begins anew. `force`: also a task that runs, or whose target can't be reached.
        `keep_meta`: the records stay, and a task of its name continues with them.
        """
        there(task_name)
        running = [row.source for row in master.cluster.state.of_task(task_name) if row.stage == "Running"]
        if running and not force:
            raise ClusterError("CLUSTER-016", cause=f"it runs on {', '.join(running)}: stop it first, or force=true")
        if not keep_meta:
            done(master.tasks.halt(StopTask(name=task_name)))
            try:
                master.tasks.drop_meta(task_name)
            except TargetError as error:
                if not (force and error.code == "TARGET-001"):
                    raise
                logger("master", task=task_name).warning("deleted by force, its records stay", **error.to_dict())
        done(master.stop_task(StopTask(name=task_name)))

    @router.get("/{task_name}/status")
    @needs(Role.VIEWER)
    def task_status(task_name: str, source_name_list: str = "") -> dict[str, Any]:
        """List the status of the task on each of its sources."""
        there(task_name)
        return listed(_statuses(task_name, reports(task_name, [one for one in source_name_list.split(",") if one])))

    @router.post("/{task_name}/start")
    @needs(Role.OPERATOR)
    def start_task(task_name: str, body: Start | None = None) -> None:
        """Let the task run, after its creation, a stop or a pause."""
        there(task_name)
        wish = body or Start()
        if wish.safe_mode_time_duration:
            cause = "safe_mode_time_duration: write safe-mode-duration into the task's syncer, by update-task"
            raise ClusterError("CLUSTER-016", cause=cause)
        sources = tuple(wish.source_name_list)
        if not (wish.remove_meta or wish.start_time):
            done(master.resume_task(ResumeTask(name=task_name, sources=sources)))
            return
        text = master.cluster.state.tasks[task_name].text
        done(master.tasks.anew(StartTask(
            task=text, sources=sources, remove_meta=wish.remove_meta, start_time=wish.start_time
        )))  # fmt: skip

    @router.post("/{task_name}/stop")
    @needs(Role.OPERATOR)
    def stop_task(task_name: str, body: Stop | None = None) -> None:
        """Let the task stand; it is kept."""
        wish = body or Stop()
        if wish.timeout_duration:
            cause = "timeout_duration: wait-time-on-stop of the worker's file says how long a batch may take to its end"
            raise ClusterError("CLUSTER-016", cause=cause)
        done(master.tasks.halt(StopTask(name=task_name, sources=tuple(wish.source_name_list))))

    return router


def _statuses(task: str, reports: dict[str, SourceReport]) -> list[dict[str, Any]]:
    """Return DM's status of a task on each source, with its names of fields."""
    found = []
    for source, report in reports.items():
        for one in report.sub_task_status:
            if one.name == task:
                found.append(_status(source, report.source_status.worker, one))
    return found


def _status(source: str, worker: str, status: SubTaskStatus) -> dict[str, Any]:
    errors = status.result.errors if status.result is not None else ()
    form: dict[str, Any] = {
        "name": status.name,
        "source_name": source,
        "worker_name": worker,
        "stage": status.stage.value,
        "unit": status.unit.value,
        "unresolved_ddl_lock_id": status.unresolved_ddl_lock_id,
    }
    for unit in ("dump", "load", "sync"):
        told = getattr(status, unit)
        if told is not None:
            form[f"{unit}_status"] = told.model_dump(mode="json")
    return form | ({"error_msg": "; ".join(error.message for error in errors)} if errors else {})
