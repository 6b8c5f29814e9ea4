"""The routes of a process's own state: `/metrics` for Prometheus, its settings, the level of its log, its audit log."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, ConfigDict
from starlette.responses import PlainTextResponse, Response

from unshard import log
from unshard.config.access import Role
from unshard.errors import ClusterError
from unshard.metrics.sample import CONTENT_TYPE, Sample, exposition, own_version, process_samples
from unshard.web.guard import GuardedRoute, needs


class LogLevelName(BaseModel):
    """The level of a process's log: `debug`, `info`, `warn` or `error`."""

    model_config = ConfigDict(extra="forbid")

    level: str


def observing(samples: Callable[[], Iterable[Sample]], own: Mapping[str, Any]) -> APIRouter:
    """Return the routes, for an application to include.

    `samples` is called in a thread of the server's pool; `own` are the settings of the process, without secrets.
    """
    router = APIRouter(route_class=GuardedRoute)

    @router.get("/metrics", response_class=Response)
    @needs(Role.VIEWER)
    def metrics() -> Response:
        """Return every series of the process, in Prometheus' text format."""
        return Response(exposition([*samples(), *process_samples()]), media_type=CONTENT_TYPE)

    @router.get("/status", response_class=PlainTextResponse)
    @needs(Role.VIEWER)
    def status() -> str:
        """Return the version that runs here, and its Python, in DM's form."""
        return f"Release Version: {own_version()}\nPython Version: {platform.python_version()}\n"

    @router.get("/settings")
    @needs(Role.VIEWER)
    def settings() -> dict[str, Any]:
        """Return the settings that the process was started with, from its file and flags; secrets are ******."""
        return dict(own)

    @router.get("/log-level")
    @needs(Role.VIEWER)
    def log_level() -> LogLevelName:
        """Return the present level of the log."""
        return LogLevelName(level=log.level())

    @router.put("/log-level")
    @needs(Role.ADMIN)
    def set_log_level(wanted: LogLevelName) -> LogLevelName:
        """Change the level of the log, until the process ends."""
        change_level(wanted.level)
        return LogLevelName(level=log.level())

    return router


def change_level(name: str) -> None:
    """Change the level of this process' log. Raises ClusterError CLUSTER-070 for one that isn't there."""
    try:
        log.set_level(name)
    except ValueError as error:
        raise ClusterError("CLUSTER-070", values={"levels": ", ".join(log.LEVELS)}) from error


def audit_routes() -> APIRouter:
    """Return the route `GET /api/v1/cluster/audit`: the newest lines of the audit log, oldest first. Needs an admin."""
    router = APIRouter(route_class=GuardedRoute)

    @router.get("/api/v1/cluster/audit")
    @needs(Role.ADMIN)
    def audit(request: Request, limit: Annotated[int, Query(ge=1, le=10_000)] = 100) -> dict[str, Any]:
        return {"data": request.app.state.audit.newest(limit)}

    return router
