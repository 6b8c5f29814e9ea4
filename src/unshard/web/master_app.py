"""The master over HTTP: ctl's verbs and the workers' heartbeat. `web/rest` has the REST of DM."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
from anyio import to_thread
from fastapi import FastAPI, Request
from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool

from unshard.api.heartbeat import DesiredState, Heartbeat
from unshard.api.verbs import PATH, REQUESTS, Answer, refused
from unshard.api.verbs import Request as Verb
from unshard.config.access import Role
from unshard.errors import ClusterError, UnshardError
from unshard.master.cluster import NOT_LEADING
from unshard.master.service import Master, master_samples
from unshard.metrics.sample import Sample
from unshard.web.answers import SIGNED
from unshard.web.audit import AuditLog
from unshard.web.guard import by_whom, guarded_app, needs
from unshard.web.leader import LeaderRoute, beat_threads
from unshard.web.links import BEAT_PATH
from unshard.web.observe import audit_routes, observing
from unshard.web.page.endpoints import page_routes
from unshard.web.page.reader import StateReader
from unshard.web.rest.cluster import cluster_routes
from unshard.web.rest.document import document_routes
from unshard.web.rest.gateway import gateway_routes
from unshard.web.rest.sources import source_routes
from unshard.web.rest.task_tables import task_table_routes
from unshard.web.rest.tasks import task_routes
from unshard.web.rest.templates import template_routes

"""Verbs whose caller's name is put on record in the target."""


def master_app(
    master: Master,
    audit: AuditLog,
    clients: Callable[[str], httpx.Client],
    others: Callable[[], Iterable[Sample]] = tuple,
) -> FastAPI:
    """Return the application of one master.

    `clients` returns the client of another process, by its address. `/metrics` shows `others` beside the master's own
    samples.
    """
    page = StateReader(master)

    @asynccontextmanager
    async def reading(app: FastAPI) -> AsyncIterator[None]:
        del app
        page.start()
        yield
        await run_in_threadpool(page.stop)

    app = guarded_app("Unshard master", audit=audit, lifespan=reading)
    app.state.page = page
    app.router.route_class = LeaderRoute
    app.state.clients = clients
    app.state.election = master.election
    app.state.beat_threads = beat_threads()
    for verb, kind in REQUESTS.items():
        _add_verb(app, master, verb, kind)

    @app.post(BEAT_PATH, tags=["worker"])
    @needs(Role.WORKER)
    async def beat(beat: Heartbeat) -> DesiredState:
        """Receive a worker's heartbeat; return its orders."""
        return await to_thread.run_sync(master.beat, beat, limiter=app.state.beat_threads)

    def samples() -> Iterator[Sample]:
        yield from master_samples(master)
        yield from others()

    rest = (source_routes, template_routes, task_routes, task_table_routes, cluster_routes, gateway_routes)
    document = document_routes(app.openapi)
    routers = [audit_routes(), page_routes(master, page)]
    for router in (*routers, observing(samples, master.own), *(made(master) for made in rest), document):
        app.include_router(router)
    return app


def _add_verb(app: FastAPI, master: Master, verb: str, kind: type[Verb]) -> None:
    method: Callable[..., Answer] = getattr(master, verb.replace("-", "_"))

    def role(body: bytes) -> Role:
        try:
            return Role(kind.model_validate_json(body).role)
        except ValidationError:
            return Role(kind.needs)

    def endpoint(request: Any, http: Request) -> dict[str, Any]:
        try:
            return method(request, by_whom(http)) if verb in SIGNED else method(request)
        except ClusterError as error:
            if error.code in NOT_LEADING:
                raise  # it stays an error of HTTP, for a client that knows other masters
            return refused(error)
        except UnshardError as error:
            return refused(error)

    endpoint.__name__ = verb.replace("-", "_")
    endpoint.__doc__ = kind.__doc__
    endpoint.__annotations__ = {"request": kind, "http": Request, "return": dict[str, Any]}
    least = Role(kind.needs) if kind.role is Verb.role else Role.VIEWER
    app.post(f"{PATH}/{verb}", tags=["ctl"])(needs(least, by_body=role)(endpoint))
