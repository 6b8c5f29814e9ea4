"""Renders the screens of the web page from a snapshot of the cluster's state, and streams an event for each new one."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from secrets import token_hex
from threading import Lock
from typing import Any
from urllib.parse import parse_qsl, quote

from fastapi import Request
from markupsafe import escape
from starlette.responses import HTMLResponse, Response, StreamingResponse

from unshard.config.access import Role
from unshard.errors import ClusterError, UnshardError
from unshard.master.service import Master
from unshard.web.answers import refusal
from unshard.web.guard import GuardedRoute
from unshard.web.page.actions import ACTIONS
from unshard.web.page.copying import SORTS, STAGES, shown_tables
from unshard.web.page.door import CSRF, LOGGED_IN, STILL_IN
from unshard.web.page.figures import TableFigures
from unshard.web.page.reader import Snapshot, StateReader
from unshard.web.page.render import page_root, rendered
from unshard.web.tokens import CALLER, NOBODY, Caller

ROWS_A_PAGE = 100
COPIED_TABLES = 50
"""So many tables of a copy the screen of the tables has; that of the copy has all."""
MOST_STREAMS = 128
STREAM_SECONDS = 300.0
"""A stream ends after that; the browser opens the next one by itself."""
_TICK_SECONDS = 1.0
ALIVE_SECONDS = 2.0
"""A stream that is silent for longer has lost its master: the page tells so after twice that time."""
_IN_A_PATH = "/%:@!$&'()*+,;="
"""Characters of a path that has its escapes, beside letters, digits and `_.-~`."""
_NAME, _TOKEN = token_hex(16), token_hex(16)
"""What stands for the caller's name and CSRF token in a text that serves all callers of a role."""
_SORTS: dict[str, Callable[[TableFigures], Any]] = {
    "table": lambda one: one.table,
    "applied": lambda one: (-one.applied, one.table),
    "filtered": lambda one: (-one.filtered, one.table),
    "missing": lambda one: (-one.missing, one.table),
}


class PageRoute(GuardedRoute):
    """A guarded route that shows errors as pages."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler, which shows an error as a page."""
        handle = super().get_route_handler()

        async def paged(request: Request) -> Response:
            try:
                return await handle(request)
            except UnshardError as error:
                status = refusal(error).status_code
                if error.code == "CLUSTER-017":
                    status = 404
                root = page_root(request.url.path)
                title = {404: "Not found", 401: "Not logged in", 403: "Not allowed"}.get(status, "Refused")
                text = rendered("refused.html", root=root, title=title, why=str(error))
                return HTMLResponse(text, status)

        return paged


class KeptTexts:
    """A cache of the texts that are rendered from the newest snapshot, each once. Any thread may ask.

    All open pages are read again at the same moment: a request that comes while its text is rendered waits for it.
    """

    def __init__(self) -> None:
        self._number = -1
        self._texts: dict[tuple[str, ...], _Text] = {}
        self._latch = Lock()

    def get(self, number: int, key: tuple[str, ...], make: Callable[[], str]) -> str:
        """Return the text of the snapshot with that number; that of an older snapshot is made, and not kept."""
        with self._latch:
            if number > self._number:
                self._texts, self._number = {}, number
            kept = self._texts.setdefault(key, _Text()) if number == self._number else _Text()
        with kept.latch:
            if kept.text is None:
                kept.text = make()
            return kept.text


@dataclass(slots=True)
class _Text:
    text: str | None = None
    latch: Lock = field(default_factory=Lock)


class PageScreens:
    """The endpoints that show screens. A text is rendered once per snapshot for all browsers of one role."""

    def __init__(self, master: Master, reader: StateReader) -> None:
        self._master, self._reader = master, reader
        self._texts = KeptTexts()
        self.streams = 0

    def snapshot(self) -> Snapshot:
        """Return the state for a page."""
        return self._reader.looked()

    def show(
        self, request: Request, template: str, make: Callable[[Snapshot], dict[str, Any]], *, kept: bool = True
    ) -> Response:
        """Return the page. `kept`: it depends on the snapshot alone, so the text is used until the next one."""
        now = self.snapshot()
        if self._follows(now):
            return self._to_leader(request, now)
        caller: Caller = request.scope[CALLER]
        logged_in = str(request.scope.get(LOGGED_IN, False))
        named, role = str(caller.name != NOBODY), str(caller.role)
        key = (template, str(request.url.path), request.url.query, role, named, logged_in)

        def text_for_anybody() -> str:
            anybody = caller if caller.name == NOBODY else replace(caller, name=_NAME)
            return self.render(request, template, caller=anybody, csrf=_TOKEN, now=now, **make(now))

        text = self._texts.get(now.number, key, text_for_anybody) if kept else text_for_anybody()
        return HTMLResponse(text.replace(_TOKEN, request.scope.get(CSRF, "")).replace(_NAME, str(escape(caller.name))))

    def render(self, request: Request, template: str, **values: Any) -> str:
        """Return the page of a template; adds what all templates need: the caller, its rights, the root."""
        caller: Caller = request.scope[CALLER]
        common = {
            "root": page_root(request.url.path),
            "csrf": request.scope.get(CSRF, ""),
            "caller": caller,
            "named": caller.name != NOBODY,
            "logged_in": request.scope.get(LOGGED_IN, False),
            "may": lambda verb: caller.may(ACTIONS[verb].role),
            "peers": self._reader.peers(),
            "admin": caller.may(Role.ADMIN),
            "message": "",
        }
        return rendered(template, **{**common, **values})

    def _to_leader(self, request: Request, now: Snapshot) -> Response:
        path = quote(request.scope.get("raw_path") or quote(request.scope["path"]), safe=_IN_A_PATH)  # sent as ASCII
        path += f"?{request.url.query}" if request.url.query else ""
        where = f"{request.url.scheme}://{now.leader}{path}"
        text = rendered("moved.html", root=page_root(request.url.path), where=where)
        return HTMLResponse(text, 307 if request.method == "GET" else 409, {"Location": where})

    def task(self, name: str) -> Callable[[Snapshot], dict[str, Any]]:
        """Return a function that makes the values of one task.

        The state is read again before a task that is younger than the last reading is refused.
        """

        def make(now: Snapshot) -> dict[str, Any]:
            found = now.figures.task(name) or self._reader.fresh().figures.task(name)
            if found is None:
                raise ClusterError("CLUSTER-017", values={"task": name})
            return {"task": found}

        return make

    def tables(self, name: str, query: dict[str, str]) -> Callable[[Snapshot], dict[str, Any]]:
        """Return a function that makes the values of the screen of tables, from a snapshot and the query."""

        def make(now: Snapshot) -> dict[str, Any]:
            task = self.task(name)(now)["task"]
            sort = query.get("sort", "table") if query.get("sort") in _SORTS else "table"
            wanted = query.get("q", "")[:200]
            found = sorted((one for one in task.tables if wanted.lower() in one.table.lower()), key=_SORTS[sort])
            copy = self._reader.copy_figures(name) if task.copies or not task.tables else None
            if copy is not None and not (task.copies or copy.tables):
                copy = None  # a worker that began when the copy was over knows nothing of it
            copied = shown_tables(copy, "", "", "work")[:COPIED_TABLES] if copy is not None else []
            told = {"task": task, "q": wanted, "sort": sort, "rates": now.rates, "copy": copy, "copied": copied}
            return {**told, **paged(found, query)}

        return make

    def copy(self, name: str, query: dict[str, str]) -> Callable[[Snapshot], dict[str, Any]]:
        """Return a function that makes the values of the screen of the copy, from a snapshot and the query."""

        def make(now: Snapshot) -> dict[str, Any]:
            task = self.task(name)(now)["task"]
            figures = self._reader.copy_figures(name)
            sort = query.get("sort", "") if query.get("sort") in SORTS else "work"
            stage = query.get("stage", "") if query.get("stage") in STAGES else ""
            wanted = query.get("q", "")[:200]
            found = shown_tables(figures, wanted, stage, sort)
            return {
                "task": task, "figures": figures, "q": wanted, "sort": sort, "sorts": tuple(SORTS), "stage": stage,
                "stages": STAGES, **paged(found, query),
            }  # fmt: skip

        return make

    async def stream(self, request: Request) -> Response:
        """Return the stream of events.

        `state` has the number of a new snapshot, `alive` the time of the last look; `over` says that the caller's
        token or session has ended. A proxy must not keep them back, which nginx does unless it is told.
        """
        wanted = "text/event-stream" in request.headers.get("accept", "")
        if not wanted or self.streams >= MOST_STREAMS:
            return Response(f"retry: 10000\n\n{self._event(self._reader.now)}", media_type="text/event-stream")
        given = request.query_params
        watches = (
            (given.get("copy", "")[:512], self._reader.watch_copy),
            (given.get("log", "")[:512], self._reader.watch_log),
            (given.get("validation", "")[:512], self._reader.validations.watch),
        )
        return StreamingResponse(
            self._events(request, [(task, one) for task, one in watches if task]), media_type="text/event-stream",
            headers={"X-Accel-Buffering": "no"},
        )  # fmt: skip

    def _follows(self, now: Snapshot) -> bool:
        """Return whether another master shows the page. One that has just begun to lead may have an older snapshot."""
        return bool(now.leader) and now.leader != self._master.addr and not self._reader.leads()

    def _event(self, now: Snapshot) -> str:
        """Return the text of an event. `leader`: the master that shows the page in place of this one."""
        moved = {"leader": now.leader} if self._follows(now) else {}
        return f"id: {now.number}\nevent: state\ndata: {json.dumps({'at': now.at, **moved})}\n\n"

    async def _events(
        self, request: Request, watches: Sequence[tuple[str, Callable[[str], None]]]
    ) -> AsyncIterator[str]:
        """Yield the events. `watches`: the tasks of which the page shows what is read on demand."""
        self.streams += 1
        try:
            seen, told, over = -1, 0.0, time.monotonic() + STREAM_SECONDS
            still_in: Callable[[], bool] = request.scope.get(STILL_IN, lambda: True)
            yield "retry: 2000\n\n"
            while time.monotonic() < over and not self._reader.stopping:
                if getattr(request.app.state, "stopping", False) or await request.is_disconnected():
                    return
                if not still_in():
                    yield "event: over\ndata: {}\n\n"
                    return
                self._reader.watched()
                for task, watch in watches:
                    watch(task)
                now = self._reader.now
                if now.number != seen:
                    yield self._event(now)
                elif time.monotonic() - told >= ALIVE_SECONDS - _TICK_SECONDS / 2:
                    yield f"event: alive\ndata: {json.dumps({'at': now.at})}\n\n"
                else:
                    await asyncio.sleep(_TICK_SECONDS)
                    continue
                seen, told = now.number, time.monotonic()
                await asyncio.sleep(_TICK_SECONDS)
        finally:
            self.streams -= 1


def paged(found: Sequence[Any], query: Mapping[str, str], rows: int = ROWS_A_PAGE) -> dict[str, Any]:
    """Return the values of a template for the page that the query asks for."""
    pages = max(1, -(-len(found) // rows))
    text = query.get("page", "1")
    page = min(max(int(text) if text.isdecimal() and len(text) < 9 else 1, 1), pages)
    shown = found[(page - 1) * rows : page * rows]
    return {"shown": shown, "count": len(found), "page": page, "pages": pages}


def form_fields(body: bytes) -> dict[str, str]:
    """Return the fields of a form. Raises ClusterError CLUSTER-059."""
    try:
        return dict(parse_qsl(body.decode("ascii"), keep_blank_values=True, max_num_fields=200))
    except ValueError:
        raise ClusterError("CLUSTER-059", cause="the body is no form") from None
