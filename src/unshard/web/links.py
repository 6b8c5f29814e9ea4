"""The HTTP clients between masters and workers.

A worker calls its masters until one of them answers, the leader first. A master has one link to each worker.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from threading import Lock
from typing import Any

import httpx
from pydantic import ValidationError

from unshard.api.heartbeat import DesiredState, Heartbeat, PurgeWish
from unshard.api.status import CopyProgress, FigureHistory, LogTail, SourceReport
from unshard.config.access import Role
from unshard.config.listener import LinkSecurity
from unshard.errors import ClusterError, error_from_dict
from unshard.web.tls import http_client
from unshard.web.tokens import Caller

BEAT_PATH = "/worker-link/v1/beat"
ANSWER_SECONDS = 2.0
"""How long one master may take before the next one is asked, and a quarter of the ttl at most."""

_NOT_LEADING = frozenset({"CLUSTER-001", "CLUSTER-002"})
_MISFIT = "CLUSTER-059"


class HttpMasterLink:
    """A `MasterLink` over HTTP, to the masters at `addresses` (HOST:PORT). Any thread may call it."""

    def __init__(self, addresses: Sequence[str], security: LinkSecurity) -> None:
        self._known = tuple(addresses)
        self._order = self._known
        self._seconds = ANSWER_SECONDS
        self._scheme = "https" if security.ssl_ca or security.ssl_cert else "http"
        self._client = http_client(security, seconds=ANSWER_SECONDS)
        self._lock = Lock()

    def beat(self, beat: Heartbeat) -> DesiredState:
        """Return the first answer of a master that leads, or knows the leader.

        Raises ClusterError: CLUSTER-022 where none answers (retryable), CLUSTER-086 where none of another version
        understands, CLUSTER-024 where one refuses this worker and no other takes it.
        """
        faults: list[str] = []
        misfits: list[str] = []
        refusals: list[tuple[str, str]] = []
        body = beat.model_dump(mode="json", by_alias=True)
        for address in self._order:
            try:
                url = f"{self._scheme}://{address}{BEAT_PATH}"
                answer = self._client.post(url, json=body, timeout=self._seconds)
                if answer.status_code == httpx.codes.OK:
                    orders = DesiredState.model_validate_json(answer.content)
                    self._seconds = min(ANSWER_SECONDS, orders.ttl_seconds / 4)
                    self._ask_first(orders.leader or address)
                    return orders
                code, told = _refusal(answer)
                if code == _MISFIT:
                    misfits.append(f"{address}: {told}")
                    self._ask_last(address)
                    continue
                if answer.status_code < 500 and code not in _NOT_LEADING:
                    refusals.append((address, told))  # it may be that master's own file of tokens
                    self._ask_last(address)
                    continue
                faults.append(f"{address}: {told}")
            except (httpx.HTTPError, ValidationError) as error:
                faults.append(f"{address}: {_fault(error)}")
                self._ask_last(address)
        if misfits:
            raise ClusterError("CLUSTER-086", cause="; ".join(misfits + faults))
        if refusals:
            address, told = refusals[0]
            raise ClusterError("CLUSTER-024", cause=told, values={"address": address})
        raise ClusterError("CLUSTER-022", cause="; ".join(faults), values={"addresses": ", ".join(self._known)})

    def close(self) -> None:
        """Close the client."""
        self._client.close()

    def _ask_first(self, leader: str) -> None:
        """Ask the leader first from now on.

        One that is not among the given masters is remembered as long as it leads.
        """
        with self._lock:
            others = [address for address in self._order if address != leader and address in self._known]
            self._order = (leader, *others)

    def _ask_last(self, silent: str) -> None:
        """Ask this master last from now on: the next heartbeat does not wait for it before the others."""
        with self._lock:
            self._order = (*(address for address in self._order if address != silent), silent)


def _refusal(answer: httpx.Response) -> tuple[str, str]:
    """Return the error's code and text from one of our servers; from another server its status."""
    try:
        form = answer.json()
        return str(form["error_code"]), str(form["msg"])[:500]
    except (ValueError, KeyError, TypeError):
        return "", f"HTTP {answer.status_code}"


def _fault(error: Exception) -> str:
    return "it answers in a form of another version" if isinstance(error, ValidationError) else repr(error)[:200]


WAKE_SECONDS = 2.0
"""How long a worker may take over what it does at once."""

IDLE_SECONDS = 1800.0
"""How long a client is kept that nobody uses: longer than any request takes."""


class HttpWorkerLink:
    """A `WorkerLink` over HTTP. Raises ClusterError CLUSTER-039 where the worker doesn't answer or refuses."""

    def __init__(self, addr: str, client: httpx.Client, seconds: float) -> None:
        self._addr, self._client, self._seconds = addr, client, seconds

    def report(self, task: str | None, seconds: float) -> SourceReport:
        """As `WorkerLink`. Raises ClusterError where the worker does not answer, or in a form of another version."""
        return self._report(task, seconds, {})

    def fresh_report(self, task: str | None, seconds: float) -> SourceReport:
        """As `WorkerLink`. Raises as `report`."""
        return self._report(task, seconds, {"asks": True})

    def _report(self, task: str | None, seconds: float, more: dict[str, Any]) -> SourceReport:
        asked: dict[str, Any] = {"seconds": seconds, **more} | ({"task": task} if task is not None else {})
        answer = self._call("GET", "/worker/v1/report", seconds, params=asked)
        try:
            return SourceReport.model_validate_json(answer.content)
        except ValidationError:
            raise self._silent("its answer is in a form of another version of unshard") from None

    def copy_progress(self, task: str, life: str, since: int, seconds: float) -> CopyProgress:
        """As `WorkerLink`. Raises ClusterError where the worker does not answer, or in a form of another version."""
        asked: dict[str, Any] = {"task": task, "life": life, "since": since, "seconds": seconds}
        answer = self._call("GET", "/worker/v1/copy-progress", seconds, params=asked)
        try:
            return CopyProgress.model_validate_json(answer.content)
        except ValidationError:
            raise self._silent("its answer is in a form of another version of unshard") from None

    def history(self, seconds: float) -> FigureHistory:
        """As `WorkerLink`. Raises ClusterError where the worker does not answer, or in a form of another version."""
        answer = self._call("GET", "/worker/v1/history", seconds)
        try:
            return FigureHistory.model_validate_json(answer.content)
        except ValidationError:
            raise self._silent("its answer is in a form of another version of unshard") from None

    def log_tail(self, life: str, after: int, seconds: float) -> LogTail:
        """As `WorkerLink`. Raises ClusterError where the worker does not answer, or in a form of another version."""
        asked: dict[str, Any] = {"life": life, "after": after, "seconds": seconds}
        answer = self._call("GET", "/worker/v1/log-tail", seconds, params=asked)
        try:
            return LogTail.model_validate_json(answer.content)
        except ValidationError:
            raise self._silent("its answer is in a form of another version of unshard") from None

    def wake(self) -> None:
        """As `WorkerLink`. Raises ClusterError where the worker does not answer."""
        self._call("POST", "/worker/v1/wake", WAKE_SECONDS)

    def purge_relay(self, wish: PurgeWish) -> str:
        """As `WorkerLink`. Raises the worker's error, or ClusterError where it does not answer."""
        body = wish.model_dump(mode="json", by_alias=True, exclude_defaults=True)  # earlier workers know fewer keys
        told = self._call("POST", "/worker/v1/purge-relay", self._seconds, json=body).json()
        if "error" in told:
            raise error_from_dict(told["error"])
        return str(told["msg"])

    def resume_relay(self) -> None:
        """As `WorkerLink`. Raises ClusterError where the worker does not answer."""
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
    """The links to workers by address, each with a client of its own that is kept while it is used.

    Call it with an address to get the link; `close` closes all clients.
    """

    def __init__(
        self, security: LinkSecurity, scheme: str, seconds: float, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._security, self._scheme, self._seconds, self._monotonic = security, scheme, seconds, monotonic
        self._clients: dict[str, httpx.Client] = {}
        self._used: dict[str, float] = {}
        self._lock = Lock()

    def __call__(self, addr: str) -> HttpWorkerLink:
        """Return the link to the worker at `HOST:PORT`."""
        return HttpWorkerLink(addr, self.client(addr), self._seconds)

    def client(self, addr: str) -> httpx.Client:
        """Return the client of the process at `HOST:PORT`."""
        with self._lock:
            self._used[addr] = self._monotonic()
            if addr not in self._clients:
                self._drop_idle()
                self._clients[addr] = http_client(self._security, f"{self._scheme}://{addr}", seconds=self._seconds)
            return self._clients[addr]

    def level_of(self, addr: str, wanted: str) -> str:
        """Return the log level of the process there, after setting the wanted one; "" sets nothing."""
        answer = self._asked(addr, "PUT" if wanted else "GET", "/log-level", {"level": wanted} if wanted else None)
        if "level" not in answer:
            raise _of_another_version(addr)
        return str(answer["level"])

    def settings_of(self, addr: str) -> dict[str, Any]:
        """Return the settings that the process there was started with, without secrets."""
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
        """Close the clients of members that have not been asked for long."""
        oldest = self._monotonic() - IDLE_SECONDS
        for addr in [addr for addr, used in self._used.items() if used < oldest]:
            del self._used[addr]
            self._clients.pop(addr).close()

    def close(self) -> None:
        """Close all clients."""
        with self._lock:
            clients, self._clients = list(self._clients.values()), {}
            self._used.clear()
        for client in clients:
            client.close()


def _of_another_version(addr: str) -> ClusterError:
    cause = "its answer is in a form of another version of unshard"
    return ClusterError("CLUSTER-039", cause=cause, values={"addr": addr})


def told(answer: httpx.Response) -> str:
    """Return the error in an answer, as text."""
    try:
        form = answer.json()
        return str(form.get("msg") or form.get("detail") or answer.status_code)
    except (ValueError, AttributeError):
        return f"HTTP {answer.status_code}"
