"""The HTTP server of a process: socket, TLS, access, request limits, and a graceful stop that completes open requests.

server = WebServer(app, config, "127.0.0.1:0")   # binds; raises ClusterError 050 to 052, ConfigError
server.start()                                   # serves in a thread of its own
server.address                                   # "127.0.0.1:40123"
server.stop()
"""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from collections.abc import Awaitable
from functools import partial
from ipaddress import ip_address
from threading import Thread
from typing import Any

import uvicorn
from fastapi import FastAPI
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from unshard.config.listener import ListenerConfig
from unshard.errors import ClusterError
from unshard.log import logger
from unshard.web.answers import refusal
from unshard.web.guard import role_of, routes_of
from unshard.web.page.door import PageDoor
from unshard.web.tls import common_name, server_context
from unshard.web.tokens import CERTIFICATE, Access, Authenticated

BODY_SECONDS = 30.0


class Bounded:
    """An ASGI layer that limits the length and time of requests.

    It answers 413 to a body that is too long, 408 to a body that comes too slowly, and 504 where the answer takes too
    long. A body is checked while it is read.
    """

    def __init__(self, app: ASGIApp, *, max_bytes: int, request_seconds: float) -> None:
        self._app = app
        self._max_bytes = max_bytes
        self._request_seconds = request_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request, within the limits of its length and time."""
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
        """Check the length in the head before the body is read; h11 has made sure that it is a number."""
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
    """Ignore the outcome of a request that is too late."""
    if not task.cancelled():
        task.exception()


HEADER_SECONDS = 10.0
"""How long a connection may take to its request's last header, and to its TLS handshake."""

_HEADER_BYTES = 32 << 10
_IDLE_SECONDS = 30


class WebServer:
    """An HTTP server on one address; a process may have several. The constructor binds the port.

    `addr` is HOST:PORT; no host is every address of the machine, port 0 any that is free. `address` is HOST:PORT with
    the port that was bound. The constructor refuses an address that others can reach where neither tokens nor client
    certificates identify callers, and an application with a route that states no role (RuntimeError: a bug of ours).
    """

    def __init__(self, app: FastAPI, config: ListenerConfig, addr: str) -> None:
        unguarded = [str(getattr(route, "path", route)) for route in routes_of(app) if role_of(route) is None]
        if unguarded:
            raise RuntimeError(f"routes that state no role: {unguarded}")
        access = Access(config.token_file) if config.token_file else None
        context = server_context(config) if config.ssl_cert else None
        self._socket, loopback = _listen(addr, config)
        host, self.port = self._socket.getsockname()[:2]
        self.address = f"[{host}]:{self.port}" if ":" in host else f"{host}:{self.port}"
        guarded = Authenticated(app, access, loopback=loopback)
        self._app = app
        bounded = Bounded(
            PageDoor(guarded, access, app.state.page) if hasattr(app.state, "page") else guarded,
            max_bytes=config.max_request_bytes,
            request_seconds=config.request_timeout,
        )
        settings = uvicorn.Config(
            bounded,
            http=partial(_Connection, most=config.max_connections),  # type: ignore[arg-type]
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            h11_max_incomplete_event_size=_HEADER_BYTES,
            timeout_keep_alive=_IDLE_SECONDS,
            ssl_context_factory=(lambda *_: context) if context is not None else None,
        )
        self._server = _Server(settings)
        self._thread = Thread(target=self._serve, name=f"web {self.address}", daemon=True)
        self._error: BaseException | None = None
        self.scheme = "https" if context is not None else "http"

    def start(self) -> None:
        """Serve in a thread; returns when the application has started. Raises what its start raised."""
        self._thread.start()
        while not self._server.started:
            if not self._thread.is_alive():
                raise self._error or RuntimeError("the application did not start")
            time.sleep(0.01)
        logger("web").info("listening", address=self.address, scheme=self.scheme)

    def check(self) -> None:
        """Raise ClusterError CLUSTER-084 where the server has ended though nobody has stopped it.

        For the loop of the process: a master that nobody reaches would go on leading, a worker holding its source.
        """
        if not self._thread.is_alive():
            cause = repr(self._error)[:500] if self._error is not None else ""
            raise ClusterError("CLUSTER-084", cause=cause, values={"address": self.address})

    def stop(self, seconds: float = 10.0) -> None:
        """Take no more requests, let those under way end within `seconds`. Idempotent; any thread but its own."""
        self._server.config.timeout_graceful_shutdown = max(round(seconds), 1)
        self._app.state.stopping = True  # streams end by themselves
        self._server.should_exit = True
        if self._thread.ident is not None:
            self._thread.join(seconds + 5)
        self._socket.close()

    def _serve(self) -> None:
        try:
            self._server.run(sockets=[self._socket])
        except BaseException as error:  # noqa: BLE001 - told to the thread that waits for the start, and logged
            self._error = error
            logger("web").error("the server ended", why=str(error))


class _Server(uvicorn.Server):
    """uvicorn's server on our socket, with time limits for TLS handshakes."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await self.lifespan.startup()
        if self.lifespan.should_exit:
            raise RuntimeError("the application did not start; the log tells why")
        config = self.config
        secured: dict[str, Any] = {}
        if config.ssl is not None:
            secured = {"ssl": config.ssl, "ssl_handshake_timeout": HEADER_SECONDS, "ssl_shutdown_timeout": 5.0}

        def protocol() -> asyncio.Protocol:
            made: asyncio.Protocol = config.http_protocol_class(  # type: ignore[call-arg]
                config=config, server_state=self.server_state, app_state=self.lifespan.state
            )
            return made

        loop = asyncio.get_running_loop()
        self.servers = [await loop.create_server(protocol, sock=sock, **secured) for sock in sockets or []]
        self.started = True


class _Connection(H11Protocol):
    """One HTTP connection. It is closed when too many are open, or when a request's head takes too long to arrive."""

    def __init__(self, *args: Any, most: int, **options: Any) -> None:
        super().__init__(*args, **options)
        self._most = most
        self._head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        if len(self.connections) > self._most:
            transport.abort()
            return
        certificate = common_name(transport.get_extra_info("peercert"))
        self.app = partial(_with_certificate, self.app, certificate)
        self._watch_head()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch_head()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.conn.trailing_data[0]:  # the beginning of a next head came with this request
            self._watch_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_watching()
        super().connection_lost(exc)

    def _watch_head(self) -> None:
        """Limit the time from the first byte of a head to its last."""
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop_watching()
        elif self._head_timer is None:
            self._head_timer = self.loop.call_later(HEADER_SECONDS, self.transport.close)

    def _stop_watching(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None


async def _with_certificate(app: ASGIApp, certificate: str, scope: Scope, receive: Receive, send: Send) -> None:
    await app({**scope, CERTIFICATE: certificate}, receive, send)


def _listen(addr: str, config: ListenerConfig) -> tuple[socket.socket, bool]:
    """Return the bound socket, and whether only this machine can reach it."""
    host, _, port = addr.rpartition(":")
    try:
        if not 0 <= int(port) <= 65535:
            raise ValueError(f"there is no port {port}")
        found = socket.getaddrinfo(
            host.strip("[]") or None, int(port), type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        family, _, _, _, place = sorted(found, key=lambda one: one[0] != socket.AF_INET)[0]
        loopback = ip_address(str(place[0]).partition("%")[0]).is_loopback
    except (OSError, ValueError) as error:
        raise ClusterError("CLUSTER-051", cause=str(error), values={"address": addr}) from None
    if not (loopback or config.token_file or config.ssl_ca):
        raise ClusterError("CLUSTER-050", values={"address": addr})
    # asyncio sends without delay where it sees the protocol's number; else each answer waits 40 ms for an ACK
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(place)
        listener.listen(config.max_connections)
    except OSError as error:
        listener.close()
        raise ClusterError("CLUSTER-051", cause=error.strerror or str(error), values={"address": addr}) from None
    return listener, loopback


class _NoBugs(logging.Filter):
    """A log filter that drops records with an exception.

    An endpoint's bug has been logged by `guard`, without the exception's text, which may quote the caller.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        return not record.exc_info


_uvicorn = logging.getLogger("uvicorn.error")
_uvicorn.addFilter(_NoBugs())
_uvicorn.addHandler(logging.NullHandler())
