"""Serves DM's older HTTP API under `/apis/v1alpha1`, its gRPC gateway, with the commands that `unshard ctl` has."""

from __future__ import annotations

from typing import Any, Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict

from unshard.api.verbs import (
    Binlog,
    BinlogSchema,
    Config,
    ListMember,
    OfflineMember,
    OperateLeader,
    OperateSource,
    PauseTask,
    QueryStatus,
    ResumeTask,
    StartTask,
    StopTask,
)
from unshard.config.access import Role
from unshard.config.subtask import SubtaskConfig
from unshard.master.orders import subtask_config
from unshard.master.service import Master
from unshard.web.guard import by_whom, needs
from unshard.web.leader import LeaderRoute


class TaskOperation(BaseModel):
    """An operation on a task: DM's `op`, by name or number."""

    model_config = ConfigDict(extra="forbid")

    op: Literal["Stop", "Pause", "Resume", "Delete", 1, 2, 3, 7]
    sources: tuple[str, ...] = ()


def gateway_routes(master: Master) -> APIRouter:
    """Return the routes of DM's older paths, those of its gRPC gateway."""
    router = APIRouter(prefix="/apis/v1alpha1", tags=["gateway"], route_class=LeaderRoute)

    @router.post("/tasks")
    @needs(Role.OPERATOR)
    def start_task(body: StartTask) -> dict[str, Any]:
        return master.start_task(body)

    @router.put("/tasks/{name}")
    @needs(Role.OPERATOR)
    def operate_task(name: str, body: TaskOperation) -> dict[str, Any]:
        if body.op in ("Pause", 2):
            return master.pause_task(PauseTask(name=name, sources=body.sources))
        if body.op in ("Resume", 3):
            return master.resume_task(ResumeTask(name=name, sources=body.sources))
        return master.stop_task(StopTask(name=name, sources=body.sources))

    @router.get("/tasks/{name}")
    @needs(Role.VIEWER)
    def task_file(name: str) -> dict[str, Any]:
        return master.config(Config(type="task", name=name))

    @router.get("/status/{name}")
    @needs(Role.VIEWER)
    def status(name: str) -> dict[str, Any]:
        return master.query_status(QueryStatus(name=name))

    @router.put("/sources")
    @needs(Role.OPERATOR)
    def operate_source(body: OperateSource) -> dict[str, Any]:
        return master.operate_source(body)

    @router.get("/members")
    @needs(Role.VIEWER)
    def members() -> dict[str, Any]:
        return master.list_member(ListMember())

    @router.delete("/members/{type}/{name}")
    @needs(Role.ADMIN)
    def offline_member(type: Literal["master", "worker"], name: str) -> dict[str, Any]:
        return master.offline_member(OfflineMember(type=type, name=name))

    @router.put("/leader/{op}")
    @needs(Role.ADMIN)
    def operate_leader(op: Literal["evict", "cancel-evict"]) -> dict[str, Any]:
        return master.operate_leader(OperateLeader(op=op))

    @router.put("/schema")
    @needs(Role.OPERATOR)
    def schema(body: BinlogSchema) -> dict[str, Any]:
        return master.binlog_schema(body)

    @router.get("/subtasks/{name}")
    @needs(Role.VIEWER)
    def subtasks(name: str) -> dict[str, Any]:
        state = master.cluster.state
        configs: list[SubtaskConfig] = [subtask_config(state, row) for row in state.of_task(name)]
        return {"result": True, "msg": "", "cfgs": [config.redacted() for config in configs]}

    @router.put("/errors")
    @needs(Role.OPERATOR)
    def errors(body: Binlog, request: Request) -> dict[str, Any]:
        return master.binlog(body, by_whom(request))

    return router
