"""Forwards requests that only the leading master can answer to it, unchanged."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

import httpx
from anyio import CapacityLimiter, to_thread
from fastapi import Request, Response

from unshard.errors import ClusterError
from unshard.master.election import Election
from unshard.web.alive import UNASKED, answer_of, silence_of
from unshard.web.guard import GuardedRoute
from unshard.web.links import ANSWER_SECONDS, BEAT_PATH
from unshard.web.tokens import CALLER, Caller

PASSED_ON = "unshard-passed-on"
LONGEST_SECONDS = 660.0
_BEAT_SECONDS = 0.75 * ANSWER_SECONDS
"""How long a leader may take over a beat: the worker is told that none answers while it still listens."""

_BEATS_AT_ONCE = 40
_LOOKS, _LOOK_SECONDS = 10, 0.1
_KEPT = ("content-type", "accept")


class LeaderRoute(GuardedRoute):
    """A guarded route that forwards a request to the leader if this master is not the leader (CLUSTER-002).

    `app.state.clients` gives the client of an address, `app.state.election` the leader, `app.state.beat_threads` the
    limit of `beat_threads`. A request is passed on once: while the lease moves from one master to another, both may
    take the other for the leader.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler, which passes a request on to the leader where another master leads."""
        handle = super().get_route_handler()

        async def led(request: Request) -> Response:
            await _leader_known(request.app.state.election)
            try:
                return await handle(request)
            except ClusterError as error:
                if error.code != "CLUSTER-002" or "addr" not in error.values:
                    raise
                if PASSED_ON in request.headers:
                    raise ClusterError("CLUSTER-001") from None
                addr = str(error.values["addr"])
            threads = request.app.state.beat_threads if _is_beat(request) else None
            return await to_thread.run_sync(_pass_on, request, addr, await request.body(), limiter=threads)

        return led


def beat_threads() -> CapacityLimiter:
    """Return a limit for the threads in which beats are handled, apart from those of all other requests.

    Commands may last for minutes, and enough of them take all threads of the server. A worker whose beats are not
    answered for a ttl stops its tasks, and the leader gives its source to another one.
    """
    return CapacityLimiter(_BEATS_AT_ONCE)


async def _leader_known(election: Election) -> None:
    """Give a change of leaders a moment, as DM does; without one the request is refused further on."""
    for _ in range(_LOOKS):
        if election.epoch or election.leader is not None:
            return
        await asyncio.sleep(_LOOK_SECONDS)


def _is_beat(request: Request) -> bool:
    return bool(request.scope["path"] == BEAT_PATH)


def _pass_on(request: Request, addr: str, body: bytes) -> Response:
    caller: Caller = request.scope[CALLER]
    kept = {name: request.headers[name] for name in _KEPT if name in request.headers}
    headers = {**kept, **caller.passed_on(), PASSED_ON: "1"}
    path = request.scope.get("raw_path") or request.scope["path"].encode()
    url = path.decode("ascii") + (f"?{request.url.query}" if request.url.query else "")
    client: httpx.Client = request.app.state.clients(addr)
    beat = _is_beat(request)
    silence = silence_of(client) if not beat else ""
    try:
        if not silence:
            seconds = _BEAT_SECONDS if beat else LONGEST_SECONDS
            options: dict[str, Any] = {"content": body, "headers": headers, "timeout": seconds}
            send = partial(client.request, request.method, url, **options)
            answer = send() if beat else answer_of(client, send)
    except httpx.HTTPError as error:
        silence = str(error) or type(error).__name__
        if not beat and not isinstance(error, UNASKED):  # whoever asks another master would have it done twice
            raise ClusterError("CLUSTER-087", cause=silence, values={"address": addr}) from None
    if silence:
        raise ClusterError("CLUSTER-001", cause=f"{addr}, which led last, does not answer: {silence}")
    shown = {name: answer.headers[name] for name in ("content-type",) if name in answer.headers}
    return Response(answer.content, answer.status_code, shown)
