"""The routes of the page. A master that follows sends the browser to the leader."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any
from urllib.parse import parse_qsl

from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import HTMLResponse, JSONResponse, Response, StreamingResponse

from unshard.api.verbs import Config
from unshard.config.access import Role
from unshard.errors import ClusterError, UnshardError
from unshard.master.service import Master
from unshard.web.answers import refusal
from unshard.web.guard import GuardedRoute, by_whom, needs
from unshard.web.page.actions import ACTIONS, PageAction
from unshard.web.page.door import CSRF, LOGGED_IN, PAGE
from unshard.web.page.figures import TableFigures
from unshard.web.page.reader import Snapshot, StateReader
from unshard.web.page.render import page_root, rendered
from unshard.web.tokens import CALLER, NOBODY, Caller

ROWS_A_PAGE = 100
MOST_STREAMS = 128
STREAM_SECONDS = 300.0
"""A stream ends after that; the browser opens the next one by itself."""
_TICK_SECONDS = 0.5
_SORTS: dict[str, Callable[[TableFigures], Any]] = {
    "table": lambda one: one.table,
    "applied": lambda one: (-one.applied, one.table),
    "filtered": lambda one: (-one.filtered, one.table),
    "missing": lambda one: (-one.missing, one.table),
}


class PageRoute(GuardedRoute):
    """A guarded route whose errors are pages."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def paged(request: Request) -> Response:
            try:
                return await handle(request)
            except UnshardError as error:
                status = refusal(error).status_code
                if error.code == "CLUSTER-017":
                    status = 404
                root = page_root(request.url.path)
                text = rendered("refused.html", root=root, title=error.code, why=str(error))
                return HTMLResponse(text, status)

        return paged


class PageScreens:
    """The endpoints that show; one rendered text serves all browsers that may see the same of one snapshot."""

    def __init__(self, master: Master, reader: StateReader) -> None:
        self._master, self._reader = master, reader
        self._texts: dict[tuple[str, ...], str] = {}
        self._number = -1
        self.streams = 0

    def snapshot(self) -> Snapshot:
        self._reader.watched()
        return self._reader.now if self._reader.now.at or self._reader.now.leader else self._reader.fresh()

    def show(
        self, request: Request, template: str, make: Callable[[Snapshot], dict[str, Any]], *, kept: bool = True
    ) -> Response:
        """`kept`: the snapshot alone says what is shown, so the text serves until the next one."""
        now = self.snapshot()
        if now.leader and now.leader != self._master.addr:
            return self._to_leader(request, now)
        caller: Caller = request.scope[CALLER]
        key = (template, str(request.url.path), request.url.query, caller.name, str(caller.role))
        if self._number != now.number:
            self._texts, self._number = {}, now.number
        text = self._texts.get((*key, request.scope.get(CSRF, "")))
        if text is None or not kept:
            text = self.render(request, template, now=now, **make(now))
            self._texts[(*key, request.scope.get(CSRF, ""))] = text
        return HTMLResponse(text)

    def render(self, request: Request, template: str, **values: Any) -> str:
        caller: Caller = request.scope[CALLER]
        common = {
            "root": page_root(request.url.path),
            "csrf": request.scope.get(CSRF, ""),
            "caller": caller,
            "named": caller.name != NOBODY,
            "logged_in": request.scope.get(LOGGED_IN, False),
            "may": lambda verb: caller.may(ACTIONS[verb].role),
            "admin": caller.may(Role.ADMIN),
            "message": "",
        }
        return rendered(template, **{**common, **values})

    def _to_leader(self, request: Request, now: Snapshot) -> Response:
        path = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        where = f"{request.url.scheme}://{now.leader}{path}"
        text = rendered("moved.html", root=page_root(request.url.path), where=where)
        return HTMLResponse(text, 307 if request.method == "GET" else 409, {"Location": where})

    def task(self, name: str) -> Callable[[Snapshot], dict[str, Any]]:
        def make(now: Snapshot) -> dict[str, Any]:
            found = now.figures.task(name)
            if found is None:
                raise ClusterError("CLUSTER-017", values={"task": name})
            return {"task": found}

        return make

    def tables(self, name: str, query: dict[str, str]) -> Callable[[Snapshot], dict[str, Any]]:
        def make(now: Snapshot) -> dict[str, Any]:
            task = self.task(name)(now)["task"]
            sort = query.get("sort", "table") if query.get("sort") in _SORTS else "table"
            wanted = query.get("q", "")[:200]
            found = sorted((one for one in task.tables if wanted.lower() in one.table.lower()), key=_SORTS[sort])
            pages = max(1, -(-len(found) // ROWS_A_PAGE))
            text = query.get("page", "1")
            page = min(max(int(text) if text.isdecimal() and len(text) < 9 else 1, 1), pages)
            shown = found[(page - 1) * ROWS_A_PAGE : page * ROWS_A_PAGE]
            return {
                "task": task, "shown": shown, "count": len(found), "q": wanted, "sort": sort, "page": page,
                "pages": pages, "rates": now.rates,
            }  # fmt: skip

        return make

    async def stream(self, request: Request) -> Response:
        """Events `state` with the number of a snapshot when it is new, `alive` with the time when it is not."""
        wanted = "text/event-stream" in request.headers.get("accept", "")
        if not wanted or self.streams >= MOST_STREAMS:
            return Response(f"retry: 10000\n\n{_event(self._reader.now)}", media_type="text/event-stream")
        return StreamingResponse(self._events(request), media_type="text/event-stream")

    async def _events(self, request: Request) -> AsyncIterator[str]:
        self.streams += 1
        try:
            seen, at, over = -1, 0.0, asyncio.get_running_loop().time() + STREAM_SECONDS
            yield "retry: 2000\n\n"
            while asyncio.get_running_loop().time() < over and not self._reader.stopping:
                if getattr(request.app.state, "stopping", False) or await request.is_disconnected():
                    return
                self._reader.watched()
                now = self._reader.now
                if now.number != seen:
                    yield _event(now)
                elif now.at != at:
                    yield f"event: alive\ndata: {json.dumps({'at': now.at})}\n\n"
                seen, at = now.number, now.at
                await asyncio.sleep(_TICK_SECONDS)
        finally:
            self.streams -= 1


def _event(now: Snapshot) -> str:
    return f"id: {now.number}\nevent: state\ndata: {json.dumps({'at': now.at})}\n\n"


def page_routes(master: Master, reader: StateReader) -> APIRouter:
    """Every route of the page but those of the door. The master answers them all itself."""
    router = APIRouter(prefix=PAGE, route_class=PageRoute, include_in_schema=False)
    screens = PageScreens(master, reader)
    for path, template in (("/", "overview"), ("/errors", "errors"), ("/locks", "locks"), ("/cluster", "cluster")):
        _add_screen(router, screens, path, template)

    @router.get("/tasks/{task}")
    @needs(Role.VIEWER)
    def task(task: str, request: Request) -> Response:
        return screens.show(request, "task.html", screens.task(task))

    @router.get("/tasks/{task}/tables")
    @needs(Role.VIEWER)
    def tables(task: str, request: Request) -> Response:
        return screens.show(request, "tables.html", screens.tables(task, dict(request.query_params)))

    @router.get("/tasks/{task}/history")
    @needs(Role.VIEWER)
    def history(task: str) -> Response:
        screens.snapshot()
        return JSONResponse(reader.history(task))

    @router.get("/tasks/{task}/config")
    @needs(Role.VIEWER)
    def config(task: str, request: Request) -> Response:
        def make(now: Snapshot) -> dict[str, Any]:
            return {**screens.task(task)(now), "text": master.config(Config(type="task", name=task))["cfg"]}

        return screens.show(request, "config.html", make, kept=False)

    @router.get("/audit")
    @needs(Role.ADMIN)
    def audit(request: Request) -> Response:
        lines = list(reversed(request.app.state.audit.newest(200)))
        return HTMLResponse(screens.render(request, "audit.html", now=screens.snapshot(), lines=lines))

    @router.get("/stream")
    @needs(Role.VIEWER)
    async def stream(request: Request) -> Response:
        return await screens.stream(request)

    for action in ACTIONS.values():
        _add_action(router, master, reader, screens, action)
    return router


def _add_screen(router: APIRouter, screens: PageScreens, path: str, template: str) -> None:
    def endpoint(request: Request) -> Response:
        return screens.show(request, f"{template}.html", lambda now: {})

    endpoint.__name__ = f"page_{template}"
    router.get(path)(needs(Role.VIEWER)(endpoint))


def _add_action(
    router: APIRouter, master: Master, reader: StateReader, screens: PageScreens, action: PageAction
) -> None:
    path = f"/do/{action.verb}"

    def page(request: Request, given: dict[str, str], status: int = 200, **more: Any) -> Response:
        values = {"action": action, "given": given, "command": action.equal_command(given), "answer": None, **more}
        return HTMLResponse(screens.render(request, "action.html", now=screens.snapshot(), **values), status)

    def ask(request: Request) -> Response:
        return page(request, dict(request.query_params))

    async def act(request: Request) -> Response:
        try:
            text = (await request.body()).decode("ascii")
            given = dict(parse_qsl(text, keep_blank_values=True, max_num_fields=200))
        except ValueError:
            raise ClusterError("CLUSTER-059", cause="the body is no form") from None
        if action.typed and (given.get("typed", "") != given.get(action.typed, "") or not given.get("typed")):
            return page(request, given, 422, message="Nothing was done: the name was not typed as it stands there.")
        return await run_in_threadpool(carry_out, request, given)

    def carry_out(request: Request, given: dict[str, str]) -> Response:
        try:
            method: Callable[..., dict[str, Any]] = getattr(master, action.verb.replace("-", "_"))
            who = (by_whom(request),) if action.verb in ("binlog", "shard-ddl-lock-unlock") else ()
            answer = method(action.request(given), *who)
        except UnshardError as error:
            return page(request, given, 422, message=str(error))
        reader.fresh()
        return page(request, given, 200 if answer.get("result") else 422, answer=answer)

    ask.__name__, act.__name__ = f"ask_{action.verb}".replace("-", "_"), f"do_{action.verb}".replace("-", "_")
    router.get(path)(needs(action.role)(ask))
    router.post(path)(needs(action.role)(act))
