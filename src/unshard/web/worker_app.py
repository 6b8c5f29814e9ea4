"""The HTTP face of a worker: what its master asks of it (`WorkerLink`). It decides nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Annotated, Any

from fastapi import FastAPI, Query
from pydantic import Field

from unshard.api.orders import WorkerLink
from unshard.api.status import Form
from unshard.config.access import Role
from unshard.metrics import Sample
from unshard.web.audit import AuditLog
from unshard.web.audit_routes import audit_routes
from unshard.web.guard import guarded_app, needs
from unshard.web.observe import observing

LONGEST_REPORT_SECONDS = 600.0


class PurgeRelay(Form):
    """Which files are to go: those before `before`, of the sub-directory `sub_dir` ("": the newest) and older ones."""

    before: str = Field(max_length=512)
    sub_dir: str = Field(default="", max_length=128, pattern=r"^[^/\\\x00]*$")


def worker_app(worker: WorkerLink, audit: AuditLog, samples: Callable[[], Iterable[Sample]]) -> FastAPI:
    """The routes onto `worker`; `samples` is what `/metrics` shows of it."""
    app = guarded_app("Unshard worker", audit=audit)

    @app.get("/worker/v1/report")
    @needs(Role.MASTER)
    def report(
        task: Annotated[str | None, Query(max_length=512)] = None,
        seconds: Annotated[float, Query(gt=0, le=LONGEST_REPORT_SECONDS)] = 5.0,
    ) -> dict[str, Any]:
        return worker.report(task, seconds).model_dump(mode="json", by_alias=True)

    @app.post("/worker/v1/wake")
    @needs(Role.MASTER)
    def wake() -> dict[str, Any]:
        worker.wake()
        return {"result": True, "msg": ""}

    @app.post("/worker/v1/purge-relay")
    @needs(Role.MASTER)
    def purge_relay(request: PurgeRelay) -> dict[str, Any]:
        worker.purge_relay(request.before, request.sub_dir)
        return {"result": True, "msg": ""}

    @app.get("/openapi.json")
    @needs(Role.VIEWER)
    def openapi() -> dict[str, Any]:
        return app.openapi()

    for router in (audit_routes(), observing(samples)):
        app.include_router(router)
    return app
