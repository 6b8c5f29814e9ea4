"""The guard of the routes: each has a role that it needs; others are refused before their request's body is read.

    app = guarded_app("Unshard master")

    @app.post("/api/v1/tasks")
    @needs(Role.OPERATOR)
    def create_task(...): ...

A request to change something (not GET, and more than a viewer's) goes through the audit log.
"""

from __future__ import annotations

import json
import traceback
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, TypeVar

from fastapi import FastAPI, HTTPException, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse

from unshard.config.access import Role
from unshard.errors import ClusterError, UnshardError
from unshard.log import logger
from unshard.web.answers import refusal
from unshard.web.audit import AuditLog
from unshard.web.audit_names import names_in
from unshard.web.tokens import CALLER, NOBODY, Caller

CTL = "unshard ctl"
_ROLE = "unshard_role"
_BY_BODY = "unshard_role_by_body"
_AUDITED = frozenset({Role.OPERATOR, Role.ADMIN})
_Endpoint = TypeVar("_Endpoint", bound=Callable[..., Any])


def needs(role: Role, by_body: Callable[[bytes], Role] | None = None) -> Callable[[_Endpoint], _Endpoint]:
    """State the role that an endpoint needs, at least.

    `by_body` returns the role that one request needs, where it depends on the body; it must not fail on any bytes.
    """

    def state(endpoint: _Endpoint) -> _Endpoint:
        setattr(endpoint, _ROLE, role)
        setattr(endpoint, _BY_BODY, by_body)
        return endpoint

    return state


class GuardedRoute(APIRoute):
    """A route that checks the caller's role and the request's body, and writes audit records.

    A router outside of `guarded_app` is made with `APIRouter(route_class=GuardedRoute)`.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler, with checks of the caller's role and of the body before it, and with audit records."""
        handle = super().get_route_handler()

        async def guarded(request: Request) -> Response:
            needed = getattr(self.endpoint, _ROLE)
            caller: Caller = request.scope[CALLER]
            verb = f"{request.method} {request.scope['path']}"
            log: AuditLog = request.app.state.audit
            await _check(caller, needed, verb, log)
            body = await request.body()
            _check_text(body)
            by_body = getattr(self.endpoint, _BY_BODY)
            if by_body is not None:
                needed = by_body(body)
                await _check(caller, needed, verb, log)
            if needed not in _AUDITED or request.method == "GET":
                return await handle(request)
            who = _who(caller)
            named = await run_in_threadpool(names_in, request.path_params, request.query_params, body)
            number = await run_in_threadpool(log.asked, who, verb, named)
            status, result = 500, "died"
            try:
                response = await handle(request)
                status, result = response.status_code, _result(response)
                return response
            except (UnshardError, HTTPException, RequestValidationError) as error:
                status, result = _told(error)
                raise
            finally:
                await run_in_threadpool(log.answered, number, who, verb, status, result)

        return guarded


def guarded_app(title: str, *, audit: AuditLog, description: str = "", lifespan: Any = None) -> FastAPI:
    """Return an application whose routes are guarded, and whose answers never contain the caller's data."""
    app = FastAPI(
        title=title, description=description, lifespan=lifespan, openapi_url=None, docs_url=None, redoc_url=None
    )
    app.router.route_class = GuardedRoute
    app.state.audit = audit
    app.add_exception_handler(UnshardError, _on_error)
    app.add_exception_handler(RequestValidationError, _on_misfit)
    app.add_exception_handler(HTTPException, _on_http)
    app.add_exception_handler(Exception, _on_bug)
    return app


def by_whom(request: Request) -> str:
    """Return the name to record for a request's changes: the caller's, where tokens or certificates give it."""
    caller: Caller = request.scope[CALLER]
    return caller.name if caller.name != NOBODY else CTL


def routes_of(app: Any) -> Iterator[Any]:
    """Yield every route of an application, those of routers within it too."""
    for route in app.routes:
        inner = getattr(route, "original_router", None)
        yield from routes_of(inner) if inner is not None else (route,)


def role_of(route: Any) -> Role | None:
    """Return the role that a route requires; None where it has none, or is of a kind that nothing guards."""
    return getattr(route.endpoint, _ROLE, None) if isinstance(route, GuardedRoute) else None


async def _check(caller: Caller, needed: Role, verb: str, log: AuditLog) -> None:
    if not caller.may(needed):
        await run_in_threadpool(log.refused, _who(caller), verb, "CLUSTER-054")
        raise ClusterError(
            "CLUSTER-054", values={"caller": caller.name, "role": str(caller.role), "needed": str(needed)}
        )


def _check_text(body: bytes) -> None:
    """Refuse JSON with half of a surrogate pair in it, which no text can contain and no answer could return."""
    if b"\\ud" in body.lower():
        try:
            json.dumps(json.loads(body), ensure_ascii=False).encode()
        except (ValueError, RecursionError):
            raise ClusterError("CLUSTER-059", cause="the body has text that is no Unicode, or is no JSON") from None


def _who(caller: Caller) -> dict[str, str]:
    who = {"who": caller.name, "role": caller.role or "any", "from": caller.address}
    return {**who, "via": caller.via} if caller.via else who


def _result(response: Response) -> str:
    """Return `done` or `failed` for the audit log: ctl's answers have `result`, also where their status is 200."""
    if response.status_code >= 400:
        return "failed"
    head = bytes(getattr(response, "body", b""))[:200].replace(b" ", b"").replace(b"\n", b"")
    return "failed" if head.startswith(b'{"result":false') else "done"


def _told(error: Exception) -> tuple[int, str]:
    if isinstance(error, UnshardError):
        return refusal(error).status_code, error.code
    return (error.status_code, "failed") if isinstance(error, HTTPException) else (422, "CLUSTER-059")


async def _on_error(request: Request, error: Exception) -> JSONResponse:
    del request
    assert isinstance(error, UnshardError)
    return refusal(error)


async def _on_misfit(request: Request, error: Exception) -> JSONResponse:
    """Answer where a body or a parameter is wrong and why, without the value: it may be a password."""
    del request
    assert isinstance(error, RequestValidationError)
    faults = [f"{'.'.join(str(part) for part in fault['loc'])[:200]}: {fault['msg']}" for fault in error.errors()[:20]]
    return refusal(ClusterError("CLUSTER-059", cause="; ".join(faults)))


async def _on_http(request: Request, error: Exception) -> JSONResponse:
    del request
    assert isinstance(error, HTTPException)
    told = refusal(ClusterError("CLUSTER-059", cause=str(error.detail)))
    told.status_code = error.status_code
    return told


async def _on_bug(request: Request, error: Exception) -> JSONResponse:
    frames = [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in traceback.extract_tb(error.__traceback__)]
    # not what the exception says: it may quote what the caller sent
    logger("web").error("bug", path=request.scope["path"], kind=type(error).__name__, frames=frames[-12:])
    body = {"result": False, "msg": "a bug; the log of the process tells more", "error_code": "", "error_msg": "a bug"}
    return JSONResponse(body, 500)
