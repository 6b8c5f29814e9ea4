"""The HTTP endpoints of a worker. Its master calls them (`WorkerLink`). They decide nothing themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any

from fastapi import FastAPI, Query
from starlette.responses import Response

from unshard.api.heartbeat import PurgeWish, WorkerLink
from unshard.config.access import Role
from unshard.errors import UnshardError
from unshard.metrics.sample import Sample
from unshard.web.audit import AuditLog
from unshard.web.guard import guarded_app, needs
from unshard.web.observe import audit_routes, observing

LONGEST_REPORT_SECONDS = 600.0


def worker_app(
    worker: WorkerLink, audit: AuditLog, samples: Callable[[], Iterable[Sample]], own: Mapping[str, Any]
) -> FastAPI:
    """Return the application of one worker.

    `/metrics` shows `samples`; `own` are its settings without secrets.
    """
    app = guarded_app("Unshard worker", audit=audit)

    @app.get("/worker/v1/report")
    @needs(Role.MASTER)
    def report(
        task: Annotated[str | None, Query(max_length=512)] = None,
        seconds: Annotated[float, Query(gt=0, le=LONGEST_REPORT_SECONDS)] = 5.0,
        asks: bool = False,
    ) -> dict[str, Any]:
        told = worker.fresh_report(task, seconds) if asks else worker.report(task, seconds)
        return told.model_dump(mode="json", by_alias=True)

    @app.get("/worker/v1/copy-progress")
    @needs(Role.MASTER)
    def copy_progress(
        task: Annotated[str, Query(max_length=512)],
        life: Annotated[str, Query(max_length=64)] = "",
        since: Annotated[int, Query(ge=0)] = 0,
        seconds: Annotated[float, Query(gt=0, le=LONGEST_REPORT_SECONDS)] = 5.0,
    ) -> Response:
        found = worker.copy_progress(task, life, since, seconds)
        return Response(found.model_dump_json(by_alias=True), media_type="application/json")

    @app.get("/worker/v1/history")
    @needs(Role.MASTER)
    def history(seconds: Annotated[float, Query(gt=0, le=LONGEST_REPORT_SECONDS)] = 5.0) -> Response:
        return Response(worker.history(seconds).model_dump_json(by_alias=True), media_type="application/json")

    @app.get("/worker/v1/log-tail")
    @needs(Role.MASTER)
    def log_tail(
        life: Annotated[str, Query(max_length=64)] = "",
        after: Annotated[int, Query(ge=0)] = 0,
        seconds: Annotated[float, Query(gt=0, le=LONGEST_REPORT_SECONDS)] = 5.0,
    ) -> Response:
        found = worker.log_tail(life, after, seconds)
        return Response(found.model_dump_json(by_alias=True), media_type="application/json")

    @app.post("/worker/v1/wake")
    @needs(Role.MASTER)
    def wake() -> dict[str, Any]:
        worker.wake()
        return {"result": True, "msg": ""}

    @app.post("/worker/v1/purge-relay")
    @needs(Role.MASTER)
    def purge_relay(wish: PurgeWish) -> dict[str, Any]:
        try:
            return {"result": True, "msg": worker.purge_relay(wish)}
        except UnshardError as error:  # a value for the master, who tells it as its own
            return {"result": False, "msg": str(error), "error": error.to_dict()}

    @app.post("/worker/v1/resume-relay")
    @needs(Role.MASTER)
    def resume_relay() -> dict[str, Any]:
        worker.resume_relay()
        return {"result": True, "msg": ""}

    @app.get("/openapi.json")
    @needs(Role.VIEWER)
    def openapi() -> dict[str, Any]:
        return app.openapi()

    for router in (audit_routes(), observing(samples, own)):
        app.include_router(router)
    return app
