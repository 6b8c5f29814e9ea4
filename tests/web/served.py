"""A small application with a route for each role, served on loopback."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any

import httpx
from fastapi import APIRouter, FastAPI, Request
from pydantic import BaseModel

from unshard.config.access import Role, token_hash
from unshard.config.listener import ListenerConfig
from unshard.errors import ClusterError
from unshard.web.audit import AuditLog
from unshard.web.guard import GuardedRoute, guarded_app, needs
from unshard.web.observe import audit_routes
from unshard.web.server import WebServer
from unshard.web.tokens import CALLER

slow_is_in_hand = Event()
"""Set when a request for `/slow` has come as far as its endpoint."""
slow_may_end = Event()
"""What that endpoint waits for."""


class Order(BaseModel):
    name: str
    password: str
    count: int = 0


def small_app(audit: AuditLog) -> FastAPI:
    app = guarded_app("small", audit=audit)

    @app.get("/status")
    @needs(Role.VIEWER)
    def status(request: Request) -> dict[str, Any]:
        caller = request.scope[CALLER]
        return {"who": caller.name, "role": caller.role, "via": caller.via}

    @app.post("/tasks/{task}")
    @needs(Role.OPERATOR)
    def change(task: str, order: Order) -> dict[str, Any]:
        if order.name == "bad":
            raise ClusterError("CLUSTER-051", values={"address": "x"})
        if order.name == "bug":
            raise ValueError(order.password)
        return {"result": order.name != "no", "msg": task}

    @app.delete("/tasks/{task}")
    @needs(Role.ADMIN)
    def drop(task: str) -> dict[str, Any]:
        return {"result": True, "msg": task}

    @app.post("/either")
    @needs(Role.VIEWER, by_body=lambda body: Role.ADMIN if b"drop" in body else Role.VIEWER)
    def either() -> dict[str, Any]:
        return {}

    @app.post("/beat")
    @needs(Role.WORKER)
    def beat() -> dict[str, Any]:
        return {}

    router = APIRouter(route_class=GuardedRoute, prefix="/slow")

    @router.get("")
    @needs(Role.VIEWER)
    def slow() -> dict[str, Any]:
        slow_is_in_hand.set()
        slow_may_end.wait(60)
        return {}

    app.include_router(router)
    app.include_router(audit_routes())
    return app


@contextmanager
def served(folder: Path, addr: str = "127.0.0.1:0", **config: Any) -> Iterator[WebServer]:
    audit = AuditLog(str(folder / "audit.log"))
    server = WebServer(small_app(audit), ListenerConfig.model_validate(config), addr)
    server.start()
    try:
        yield server
    finally:
        server.stop(1)


def tokens(folder: Path, **roles: str) -> Path:
    """A file of tokens: NAME=ROLE, the token of NAME is `token-NAME`."""
    path = folder / "tokens.yaml"
    lines = [
        f"  - {{name: {name}, role: {role}, sha256: {token_hash(f'token-{name}')}}}" for name, role in roles.items()
    ]
    path.write_text("tokens:\n" + "\n".join(lines) + "\n")
    return path


def bearer(name: str) -> dict[str, str]:
    return {"Authorization": f"Bearer token-{name}"}


PATIENCE_SECONDS = 60.0
"""Whoever has to answer may stand on a busy machine: httpx itself gives up after five seconds."""
get = partial(httpx.get, timeout=PATIENCE_SECONDS)
post = partial(httpx.post, timeout=PATIENCE_SECONDS)
request = partial(httpx.request, timeout=PATIENCE_SECONDS)


def server_client(server: WebServer) -> httpx.Client:
    return httpx.Client(base_url=f"http://{server.address}", timeout=PATIENCE_SECONDS)
