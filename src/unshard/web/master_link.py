"""A worker's way to its masters over HTTP: whichever answers, the leader first."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock

import httpx
from pydantic import ValidationError

from unshard.api.heartbeat import DesiredState, Heartbeat
from unshard.config.listener import LinkSecurity
from unshard.errors import ClusterError
from unshard.web.tls import http_client

BEAT_PATH = "/worker-link/v1/beat"
ANSWER_SECONDS = 2.0
"""How long one master may take before the next one is asked, and a quarter of the ttl at most."""

_NOT_LEADING = frozenset({"CLUSTER-001", "CLUSTER-002"})
_MISFIT = "CLUSTER-059"


class HttpMasterLink:
    """`MasterLink` to the masters at `addresses` (HOST:PORT). Any thread may call it."""

    def __init__(self, addresses: Sequence[str], security: LinkSecurity) -> None:
        self._known = tuple(addresses)
        self._order = self._known
        self._seconds = ANSWER_SECONDS
        self._scheme = "https" if security.ssl_ca or security.ssl_cert else "http"
        self._client = http_client(security, seconds=ANSWER_SECONDS)
        self._lock = Lock()

    def beat(self, beat: Heartbeat) -> DesiredState:
        """The first answer of a master that leads, or knows who does.

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
        self._client.close()

    def _ask_first(self, leader: str) -> None:
        """A leader that is not among the masters given is remembered for as long as it leads."""
        with self._lock:
            others = [address for address in self._order if address != leader and address in self._known]
            self._order = (leader, *others)

    def _ask_last(self, silent: str) -> None:
        """The next beat does not wait for this one again before the others have been asked."""
        with self._lock:
            self._order = (*(address for address in self._order if address != silent), silent)


def _refusal(answer: httpx.Response) -> tuple[str, str]:
    """The error's code and text, as our servers tell them; of another server the status."""
    try:
        form = answer.json()
        return str(form["error_code"]), str(form["msg"])[:500]
    except (ValueError, KeyError, TypeError):
        return "", f"HTTP {answer.status_code}"


def _fault(error: Exception) -> str:
    return "it answers in a form of another version" if isinstance(error, ValidationError) else repr(error)[:200]
