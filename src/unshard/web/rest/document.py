"""The API's own description: OpenAPI, and a page that shows it."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from typing import Any

from fastapi import APIRouter
from fastapi.responses import HTMLResponse

from unshard.config.access import Role
from unshard.web.guard import needs
from unshard.web.leader import LeaderRoute


def document_routes(document: Callable[[], dict[str, Any]]) -> APIRouter:
    """Return the routes of the API's own description: OpenAPI, and a page that uses nothing of other sites."""
    router = APIRouter(prefix="/api/v1", tags=["document"], route_class=LeaderRoute)

    @router.get("/dm.json")
    @needs(Role.VIEWER)
    def openapi() -> dict[str, Any]:
        """Return this API in OpenAPI's form."""
        return document()

    @router.get("/docs", response_class=HTMLResponse)
    @needs(Role.VIEWER)
    def page() -> str:
        """Show this API as a list."""
        lines = [
            f"<tr><td>{method.upper()}</td><td><code>{escape(path)}</code></td>"
            f"<td>{escape(str(told.get('description', '')))}</td></tr>"
            for path, methods in sorted(document()["paths"].items())
            for method, told in methods.items()
        ]
        head = "<!doctype html><title>Unshard master</title><h1>Unshard master</h1>"
        return f"{head}<p><a href='dm.json'>OpenAPI</a></p><table>{''.join(lines)}</table>"

    return router
