"""The routes of the page. A master that follows sends the browser to the leader."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import HTMLResponse, PlainTextResponse, Response

from unshard.config.access import Role
from unshard.errors import UnshardError
from unshard.master.service import Master
from unshard.web.answers import SIGNED
from unshard.web.guard import by_whom, needs
from unshard.web.page.actions import ACTIONS, PageAction, is_under_way
from unshard.web.page.door import PAGE
from unshard.web.page.draft import DRAFT_STEPS, draft_values
from unshard.web.page.log_watch import LEVELS, log_text, shown_lines
from unshard.web.page.new_task import MODES, NEW_TASK_STEPS, SHARD_MODES, NewTask, new_task_values
from unshard.web.page.reader import Snapshot, StateReader
from unshard.web.page.route_reader import route_values
from unshard.web.page.screens import KeptTexts, PageRoute, PageScreens, form_fields, paged
from unshard.web.page.validation import ROWS_A_PAGE, STATES, validation_values
from unshard.web.page.verdict import headline, of_task, shortened
from unshard.web.tokens import CALLER

HISTORY_MINUTES = 120
RANGES = ("15", "60", str(HISTORY_MINUTES))
"""Minutes that the charts of a task can show."""


def page_routes(master: Master, reader: StateReader) -> APIRouter:
    """Return every route of the page but those of the door. The master answers them all itself."""
    router = APIRouter(prefix=PAGE, route_class=PageRoute, include_in_schema=False)
    screens = PageScreens(master, reader)
    for path, template in (("/", "overview"), ("/errors", "errors"), ("/locks", "locks"), ("/cluster", "cluster")):
        _add_screen(router, screens, path, template)

    @router.get("/tasks/{task}")
    @needs(Role.VIEWER)
    def task(task: str, request: Request) -> Response:
        minutes = request.query_params.get("minutes", "")
        shown = int(minutes) if minutes in RANGES else HISTORY_MINUTES

        def make(now: Snapshot) -> dict[str, Any]:
            told = screens.task(task)(now)
            return {**told, "range_minutes": shown, "concerns": of_task(now.concerns, told["task"])}

        return screens.show(request, "task.html", make)

    @router.get("/tasks/{task}/tables")
    @needs(Role.VIEWER)
    def tables(task: str, request: Request) -> Response:
        return screens.show(request, "tables.html", screens.tables(task, dict(request.query_params)))

    @router.get("/tasks/{task}/copy")
    @needs(Role.VIEWER)
    def copy(task: str, request: Request) -> Response:
        if reader.now.figures.task(task) is not None:
            reader.copy_figures(task)
        return screens.show(request, "copy.html", screens.copy(task, dict(request.query_params)))

    @router.get("/tasks/{task}/routes")
    @needs(Role.VIEWER)
    def routes(task: str, request: Request) -> Response:
        query = dict(request.query_params)

        def make(now: Snapshot) -> dict[str, Any]:
            told = screens.task(task)(now)
            values = route_values(reader.routes, task, query)
            return {**told, **values, **paged(values["found"], query)}

        if reader.now.figures.task(task) is not None:
            reader.routes.of(task)
        return screens.show(request, "routes.html", make)

    @router.get("/tasks/{task}/routes/again")
    @needs(Role.VIEWER)
    def routes_again(task: str) -> Response:
        screens.task(task)(screens.snapshot())
        reader.routes.of(task, again=True)
        return Response(status_code=303, headers={"Location": "../routes"})

    @router.get("/tasks/{task}/validation")
    @needs(Role.VIEWER)
    def validation(task: str, request: Request) -> Response:
        query = dict(request.query_params)
        with_rows = request.scope[CALLER].may(ACTIONS["validation-ignore-error"].role)
        state = query.get("error", "") if query.get("error") in STATES else STATES[0]

        def make(now: Snapshot) -> dict[str, Any]:
            told = screens.task(task)(now)
            record = reader.validation(task, state, with_rows=with_rows)
            values = validation_values(told["task"], record, query)
            return {**told, **values, "with_rows": with_rows, **paged(values["found"], query, ROWS_A_PAGE)}

        if reader.now.figures.task(task) is not None:
            reader.validation(task, state, with_rows=with_rows)
        return screens.show(request, "validation.html", make)

    @router.get("/tasks/{task}/log")
    @needs(Role.OPERATOR)
    def log(task: str, request: Request) -> Response:
        query = dict(request.query_params)

        def make(now: Snapshot) -> dict[str, Any]:
            found = screens.task(task)(now)["task"]
            lines = reader.log(task)
            source, words = query.get("source", "")[:200], query.get("q", "")[:200]
            level = query.get("level", "") if query.get("level") in LEVELS else "info"
            shown = shown_lines(lines, source, level, words)
            return {
                "task": found,
                "log": lines,
                "shown": shown,
                "source": source,
                "level": level,
                "levels": LEVELS,
                "q": words,
            }

        if reader.now.figures.task(task) is not None:
            reader.log(task)
        return screens.show(request, "log.html", make)

    @router.get("/tasks/{task}/log/download")
    @needs(Role.OPERATOR)
    def log_download(task: str, request: Request) -> Response:
        found, query = screens.task(task)(screens.snapshot())["task"], request.query_params
        text = log_text(
            reader.log(task), query.get("source", "")[:200], query.get("level", ""), query.get("q", "")[:200]
        )
        told = {"Content-Disposition": f"attachment; filename*=UTF-8''{quote(found.name, safe='')}.log"}
        return PlainTextResponse(text, headers=told)

    charts = KeptTexts()

    @router.get("/tasks/{task}/steps")
    @needs(Role.VIEWER)
    def steps(task: str) -> Response:
        screens.snapshot()
        text = charts.get(reader.points_kept, ("steps", task), lambda: json.dumps(reader.step_history(task)))
        return Response(text, media_type="application/json")

    @router.get("/tasks/{task}/history")
    @needs(Role.VIEWER)
    def history(task: str) -> Response:
        screens.snapshot()
        text = charts.get(reader.points_kept, ("history", task), lambda: json.dumps(reader.history(task)))
        return Response(text, media_type="application/json")

    @router.get("/tasks/{task}/config")
    @needs(Role.VIEWER)
    def config(task: str, request: Request) -> Response:
        def make(now: Snapshot) -> dict[str, Any]:
            return {**screens.task(task)(now), **draft_values(master, task, "", "")}

        return screens.show(request, "config.html", make, kept=False)

    @router.post("/tasks/{task}/config")
    @needs(Role.OPERATOR)
    async def draft(task: str, request: Request) -> Response:
        given = form_fields(await request.body())
        step = given.get("step", "") if given.get("step") in DRAFT_STEPS else DRAFT_STEPS[0]
        return await run_in_threadpool(drafted, task, request, given.get("task", ""), step)

    def drafted(task: str, request: Request, text: str, step: str) -> Response:
        now = screens.snapshot()
        values = {**screens.task(task)(now), **draft_values(master, task, text, step)}
        if step == "apply":
            now = reader.fresh()
        failed = values["message"] or (values["applied"] is not None and not values["applied"].get("result"))
        return HTMLResponse(screens.render(request, "config.html", now=now, **values), 422 if failed else 200)

    @router.get("/new-task")
    @needs(ACTIONS["start-task"].role)
    def new_task(request: Request) -> Response:
        return made(request, NewTask(), "")

    @router.post("/new-task")
    @needs(ACTIONS["start-task"].role)
    async def new_task_step(request: Request) -> Response:
        given = form_fields(await request.body())
        step = given.get("step", "") if given.get("step") in NEW_TASK_STEPS else NEW_TASK_STEPS[0]
        return await run_in_threadpool(made, request, NewTask.of(given), step)

    def made(request: Request, given: NewTask, step: str) -> Response:
        values = {**new_task_values(master, given, step), "modes": MODES, "shard_modes": SHARD_MODES}
        started = values["started"]
        if started is not None:
            reader.look()
        now = screens.snapshot()
        failed = values["message"] or (started is not None and not started.get("result"))
        return HTMLResponse(screens.render(request, "new-task.html", now=now, **values), 422 if failed else 200)

    @router.get("/audit")
    @needs(Role.ADMIN)
    def audit(request: Request) -> Response:
        lines = list(reversed(request.app.state.audit.newest(200)))
        return HTMLResponse(screens.render(request, "audit.html", now=screens.snapshot(), lines=lines))

    @router.get("/stream")
    @needs(Role.VIEWER)
    async def stream(request: Request) -> Response:
        return await screens.stream(request)

    @router.get("/do/binlog")
    @needs(ACTIONS["binlog-skip"].role)
    def binlog(request: Request) -> Response:
        """Lead to the form of the operator that is asked for."""
        op = request.query_params.get("op", "")
        name = f"binlog-{op}" if f"binlog-{op}" in ACTIONS else "binlog-skip"
        return Response(status_code=303, headers={"Location": f"{name}?{request.url.query}"})

    for action in ACTIONS.values():
        _add_action(router, master, reader, screens, action)
    return router


def _add_screen(router: APIRouter, screens: PageScreens, path: str, template: str) -> None:
    def endpoint(request: Request) -> Response:
        def make(now: Snapshot) -> dict[str, Any]:
            return {"verdict": headline(now.concerns, now.figures), "told": shortened(now.concerns)}

        return screens.show(request, f"{template}.html", make)

    endpoint.__name__ = f"page_{template}"
    router.get(path)(needs(Role.VIEWER)(endpoint))


def _add_action(
    router: APIRouter, master: Master, reader: StateReader, screens: PageScreens, action: PageAction
) -> None:
    path = f"/do/{action.name}"

    def page(request: Request, given: dict[str, str], status: int = 200, **more: Any) -> Response:
        now = screens.snapshot()
        given = {**given, **action.filled(given, now.figures.free_workers)}
        values = {"action": action, "given": given, "command": action.equal_command(given), "answer": None, **more}
        values["under_way"] = values["answer"] is not None and is_under_way(values["answer"])
        values |= {"workers": now.figures.free_workers, "beside": [ACTIONS[name] for name in action.beside]}
        return HTMLResponse(screens.render(request, "action.html", now=now, **values), status)

    def ask(request: Request) -> Response:
        return page(request, dict(request.query_params))

    async def act(request: Request) -> Response:
        given = form_fields(await request.body())
        if action.typed and (given.get("typed", "") != given.get(action.typed, "") or not given.get("typed")):
            why = "Nothing was done: the name was not typed as it stands there."
            return await run_in_threadpool(page, request, given, 422, message=why)
        return await run_in_threadpool(carry_out, request, given)

    def carry_out(request: Request, given: dict[str, str]) -> Response:
        try:
            method: Callable[..., dict[str, Any]] = getattr(master, action.verb.replace("-", "_"))
            who = (by_whom(request),) if action.verb in SIGNED else ()
            answer = method(action.request(given), *who)
        except UnshardError as error:
            return page(request, given, 422, message=str(error))
        if action.verb == "validation":
            reader.validations.forget(given.get("task", ""))
        reader.fresh()
        status = 200 if answer.get("result") else 202 if is_under_way(answer) else 422
        return page(request, given, status, answer=answer)

    ask.__name__, act.__name__ = f"ask_{action.name}".replace("-", "_"), f"do_{action.name}".replace("-", "_")
    router.get(path)(needs(action.role)(ask))
    router.post(path)(needs(action.role)(act))
