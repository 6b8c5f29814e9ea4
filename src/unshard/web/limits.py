"""Bounds of one request: the length of its body, the time that the body takes to come, the time of the whole."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from unshard.errors import ClusterError
from unshard.web.answers import refusal

BODY_SECONDS = 30.0


class Bounded:
    """ASGI: answers 413, 408 and 504 in place of what would not end. Bodies are bounded as they are read."""

    def __init__(self, app: ASGIApp, *, max_bytes: int, request_seconds: float) -> None:
        self._app = app
        self._max_bytes = max_bytes
        self._request_seconds = request_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun = answered = over = False

        async def watched_send(message: Message) -> None:
            nonlocal begun, answered
            if over:
                return
            begun = True
            answered = message["type"] == "http.response.body" and not message.get("more_body", False)
            await send(message)

        try:
            self._check_length(scope)
            await self._within_time(self._app(scope, self._bounded(receive), watched_send))
        except ClusterError as error:
            over = True
            if begun:
                raise
            await refusal(error)(scope, receive, send)
        except Exception:
            if not answered:  # a bug that has been answered and logged leaves the connection as it is
                raise

    async def _within_time(self, work: Awaitable[None]) -> None:
        """Wait for the request, but not for the thread that a late one may be in: that ends by itself."""
        task = asyncio.ensure_future(work)
        try:
            done, _ = await asyncio.wait({task}, timeout=self._request_seconds)
        except asyncio.CancelledError:
            task.cancel()
            raise
        if not done:
            task.cancel()
            task.add_done_callback(_let_go)
            raise ClusterError("CLUSTER-057", values={"seconds": f"{self._request_seconds:g}"})
        task.result()

    def _check_length(self, scope: Scope) -> None:
        """By its own word, before any of it is read; h11 has made sure that it is a number."""
        for name, value in scope["headers"]:
            if name == b"content-length" and int(value) > self._max_bytes:
                raise self._too_long()

    def _bounded(self, receive: Receive) -> Receive:
        deadline = time.monotonic() + BODY_SECONDS
        taken, whole = 0, False

        async def bounded() -> Message:
            nonlocal taken, whole
            if whole:
                return await receive()
            try:
                message = await asyncio.wait_for(receive(), max(deadline - time.monotonic(), 0.001))
            except TimeoutError:
                raise ClusterError("CLUSTER-056", values={"seconds": f"{BODY_SECONDS:g}"}) from None
            taken += len(message.get("body", b""))
            if taken > self._max_bytes:
                raise self._too_long()
            whole = not message.get("more_body", False)
            return message

        return bounded

    def _too_long(self) -> ClusterError:
        return ClusterError("CLUSTER-055", values={"limit": self._max_bytes})


def _let_go(task: asyncio.Future[None]) -> None:
    """What became of a late request is nobody's any more."""
    if not task.cancelled():
        task.exception()
