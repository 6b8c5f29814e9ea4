"""A worker's way to its masters over HTTP: whichever answers, the leader first."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock

import httpx
from pydantic import ValidationError

from unshard.api.orders import Beat, Orders
from unshard.config.listener import LinkSecurity
from unshard.errors import ClusterError
from unshard.web.tls import http_client

ANSWER_SECONDS = 2.0
"""How long one master may take before the next one is asked: a few of them fit into the ttl."""

_NOT_LEADING = frozenset({"CLUSTER-001", "CLUSTER-002"})


class HttpMasterLink:
    """`MasterLink` to the masters at `addresses` (HOST:PORT). Any thread may call it."""

    def __init__(self, addresses: Sequence[str], security: LinkSecurity) -> None:
        self._known = tuple(addresses)
        self._leader = ""
        self._scheme = "https" if security.ssl_ca or security.ssl_cert else "http"
        self._client = http_client(security, seconds=ANSWER_SECONDS)
        self._lock = Lock()

    def beat(self, beat: Beat) -> Orders:
        """The first answer of a master that leads, or knows who does.

        Raises ClusterError: CLUSTER-022 where none answers (retryable), CLUSTER-024 where one refuses this worker.
        """
        faults = []
        body = beat.model_dump(mode="json", by_alias=True)
        for address in self._order():
            try:
                answer = self._client.post(f"{self._scheme}://{address}/worker-link/v1/beat", json=body)
                if answer.status_code == httpx.codes.OK:
                    orders = Orders.model_validate_json(answer.content)
                    with self._lock:
                        self._leader = orders.leader or address
                    return orders
                code, told = _refusal(answer)
                if answer.status_code < 500 and code not in _NOT_LEADING:
                    raise ClusterError("CLUSTER-024", cause=told, values={"address": address})
                faults.append(f"{address}: {told}")
            except (httpx.HTTPError, ValidationError) as error:
                faults.append(f"{address}: {_fault(error)}")
        raise ClusterError("CLUSTER-022", cause="; ".join(faults), values={"addresses": ", ".join(self._known)})

    def close(self) -> None:
        self._client.close()

    def _order(self) -> list[str]:
        with self._lock:
            leader = self._leader
        first = [leader] if leader else []
        return first + [address for address in self._known if address != leader]


def _refusal(answer: httpx.Response) -> tuple[str, str]:
    """The error's code and text, as our servers tell them; of another server the status."""
    try:
        form = answer.json()
        return str(form["error_code"]), str(form["msg"])[:500]
    except (ValueError, KeyError, TypeError):
        return "", f"HTTP {answer.status_code}"


def _fault(error: Exception) -> str:
    return "it answers in a form of another version" if isinstance(error, ValidationError) else repr(error)[:200]
