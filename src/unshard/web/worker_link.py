"""The master's way to a worker, over HTTP."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Lock
from typing import Any

import httpx
from pydantic import ValidationError

from unshard.api.heartbeat import PurgeWish
from unshard.api.status import SourceReport
from unshard.config.access import Role
from unshard.config.listener import LinkSecurity
from unshard.errors import ClusterError, error_from_dict
from unshard.web.tls import http_client
from unshard.web.tokens import Caller

WAKE_SECONDS = 2.0
"""How long a worker may take over what it does at once."""

IDLE_SECONDS = 1800.0
"""How long a client is kept that nobody uses: longer than any request takes."""


class HttpWorkerLink:
    """A `WorkerLink`. Raises ClusterError CLUSTER-039 where the worker doesn't answer or refuses."""

    def __init__(self, addr: str, client: httpx.Client, seconds: float) -> None:
        self._addr, self._client, self._seconds = addr, client, seconds

    def report(self, task: str | None, seconds: float) -> SourceReport:
        asked: dict[str, Any] = {"seconds": seconds} | ({"task": task} if task is not None else {})
        answer = self._call("GET", "/worker/v1/report", seconds, params=asked)
        try:
            return SourceReport.model_validate_json(answer.content)
        except ValidationError:
            raise self._silent("its answer is in a form of another version of unshard") from None

    def wake(self) -> None:
        self._call("POST", "/worker/v1/wake", WAKE_SECONDS)

    def purge_relay(self, wish: PurgeWish) -> str:
        body = wish.model_dump(mode="json", by_alias=True, exclude_defaults=True)  # earlier workers know fewer keys
        told = self._call("POST", "/worker/v1/purge-relay", self._seconds, json=body).json()
        if "error" in told:
            raise error_from_dict(told["error"])
        return str(told["msg"])

    def resume_relay(self) -> None:
        self._call("POST", "/worker/v1/resume-relay", WAKE_SECONDS)

    def _call(self, method: str, path: str, seconds: float, **more: Any) -> httpx.Response:
        try:
            answer = self._client.request(method, path, timeout=seconds, **more)
        except httpx.HTTPError as error:
            raise self._silent(str(error) or type(error).__name__) from None
        if answer.is_error:
            raise self._silent(told(answer))
        return answer

    def _silent(self, cause: str) -> ClusterError:
        return ClusterError("CLUSTER-039", cause=cause, values={"addr": self._addr})


class WorkerLinks:
    """Links by address, each with a client of its own that is kept while it is used. Call it; `close` ends them."""

    def __init__(
        self, security: LinkSecurity, scheme: str, seconds: float, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._security, self._scheme, self._seconds, self._monotonic = security, scheme, seconds, monotonic
        self._clients: dict[str, httpx.Client] = {}
        self._used: dict[str, float] = {}
        self._lock = Lock()

    def __call__(self, addr: str) -> HttpWorkerLink:
        return HttpWorkerLink(addr, self.client(addr), self._seconds)

    def client(self, addr: str) -> httpx.Client:
        """The client of the process at `HOST:PORT`."""
        with self._lock:
            self._used[addr] = self._monotonic()
            if addr not in self._clients:
                self._drop_idle()
                self._clients[addr] = http_client(self._security, f"{self._scheme}://{addr}", seconds=self._seconds)
            return self._clients[addr]

    def level_of(self, addr: str, wanted: str) -> str:
        """The log level of the process there, once it is the wanted one; empty: as it is."""
        answer = self._asked(addr, "PUT" if wanted else "GET", "/log-level", {"level": wanted} if wanted else None)
        if "level" not in answer:
            raise _of_another_version(addr)
        return str(answer["level"])

    def settings_of(self, addr: str) -> dict[str, Any]:
        """What the process there was started with, without secrets."""
        return self._asked(addr, "GET", "/settings")

    def _asked(self, addr: str, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        headers = Caller("master", Role.ADMIN, "").passed_on()
        try:
            answer = self.client(addr).request(method, path, json=body, headers=headers, timeout=WAKE_SECONDS)
        except httpx.HTTPError as error:
            cause = str(error) or type(error).__name__
            raise ClusterError("CLUSTER-039", cause=cause, values={"addr": addr}) from None
        if answer.is_error:
            raise ClusterError("CLUSTER-039", cause=told(answer), values={"addr": addr})
        try:
            found: dict[str, Any] = dict(answer.json())
        except (ValueError, TypeError):
            raise _of_another_version(addr) from None
        return found

    def _drop_idle(self) -> None:
        """Clients of members that are gone."""
        oldest = self._monotonic() - IDLE_SECONDS
        for addr in [addr for addr, used in self._used.items() if used < oldest]:
            del self._used[addr]
            self._clients.pop(addr).close()

    def close(self) -> None:
        with self._lock:
            clients, self._clients = list(self._clients.values()), {}
            self._used.clear()
        for client in clients:
            client.close()


def _of_another_version(addr: str) -> ClusterError:
    cause = "its answer is in a form of another version of unshard"
    return ClusterError("CLUSTER-039", cause=cause, values={"addr": addr})


def told(answer: httpx.Response) -> str:
    """What an answer says that went wrong."""
    try:
        form = answer.json()
        return str(form.get("msg") or form.get("detail") or answer.status_code)
    except (ValueError, AttributeError):
        return f"HTTP {answer.status_code}"
