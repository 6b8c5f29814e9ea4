"""The audit log over HTTP."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request

from unshard.config.access import Role
from unshard.web.guard import GuardedRoute, needs


def audit_routes() -> APIRouter:
    """`GET /api/v1/cluster/audit`: the newest lines of this process's audit log, oldest first. Needs an admin."""
    router = APIRouter(route_class=GuardedRoute)

    @router.get("/api/v1/cluster/audit")
    @needs(Role.ADMIN)
    def audit(request: Request, limit: Annotated[int, Query(ge=1, le=10_000)] = 100) -> dict[str, Any]:
        return {"data": request.app.state.audit.newest(limit)}

    return router
