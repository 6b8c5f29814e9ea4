"""The HTTP client of the masters: each is tried until one answers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import httpx

from unshard.api.verbs import PATH, Request
from unshard.config.listener import LinkSecurity
from unshard.ctl.runs import runs_that_ended
from unshard.errors import ClusterError
from unshard.web.alive import ALIVE_SECONDS, UNASKED, answer_of, silence_of
from unshard.web.tls import http_client

_NOT_NOW = frozenset({502, 503})
_NO_LEADER = frozenset({"CLUSTER-001", "CLUSTER-002"})
_UNDER_WAY = frozenset({"CLUSTER-087"})


class _PassedOver(Exception):
    """The reason why a master is skipped."""


@dataclass(frozen=True, slots=True)
class MasterClient:
    """A client of the masters of one cluster, which are given as `host:port` or whole URLs.

    `seconds` is how long an answer may take.
    """

    masters: Sequence[str]
    seconds: float
    security: LinkSecurity

    def ask(self, request: Request) -> dict[str, Any]:
        """Return the first master's answer. A master that can't be reached, is silent or can't serve now is skipped.

        Raises ClusterError: CLUSTER-040 without a master, CLUSTER-041 when none can be reached, CLUSTER-098 where they
        were runs of this folder, CLUSTER-042 for an answer that no master gives, CLUSTER-043 when it refuses the
        caller, CLUSTER-047 for an address that is none. CLUSTER-045 when it accepted the request but gave no answer: no
        other is asked, for the request may be in progress; unless the connection broke and the request only looks.
        """
        ended = [] if self.masters else runs_that_ended(())
        if ended:
            raise ClusterError("CLUSTER-098", cause="\n       ".join(ended), values={"verb": request.verb})
        if not self.masters:
            raise ClusterError("CLUSTER-040", values={"verb": request.verb})
        failures = []
        for address in self.masters:
            try:
                return self._ask(address, request)
            except _PassedOver as passed:
                failures.append(f"{address}: {passed}")
        if ended := runs_that_ended(self.masters):
            raise ClusterError("CLUSTER-098", cause="\n       ".join(ended), values={"verb": request.verb})
        raise ClusterError("CLUSTER-041", cause="; ".join(failures), values={"masters": ", ".join(self.masters)})

    def _ask(self, address: str, request: Request) -> dict[str, Any]:
        """Return one master's answer. Raises _PassedOver where another one may be asked."""
        body = request.model_dump(mode="json", by_alias=True, exclude_defaults=True)  # earlier masters know fewer keys
        try:
            with http_client(self.security, self.url(address), seconds=self.seconds) as client:
                silence = silence_of(client, min(self.seconds, ALIVE_SECONDS))
                if silence:
                    raise _PassedOver(silence)
                response = answer_of(client, partial(client.post, f"{PATH}/{request.verb}", json=body))
        except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
            cause = f"--master-addr takes host:port or a URL, not {address}: {error}"
            raise ClusterError("CLUSTER-047", cause=cause) from None
        except httpx.HTTPError as error:
            told = str(error) or type(error).__name__
            broken = not isinstance(error, httpx.TimeoutException)
            if isinstance(error, UNASKED) or (broken and request.role == "viewer"):  # it has changed nothing
                raise _PassedOver(told) from None
            values = {"master": address, "seconds": f"{self.seconds:g}", "verb": request.verb}
            raise ClusterError("CLUSTER-045", cause=told, values=values) from None
        passed_over = _NO_LEADER if request.role != "viewer" else _NO_LEADER | _UNDER_WAY
        if response.status_code in _NOT_NOW or _code(response) in passed_over:
            raise _PassedOver(_told(response))
        return _answer(address, response)

    def url(self, address: str) -> str:
        """Return an address with its scheme. Without a scheme it gets https where certificates are given, else http."""
        if "://" in address:
            return address
        return f"{'https' if self.security.ssl_ca or self.security.ssl_cert else 'http'}://{address}"


def _code(response: httpx.Response) -> str:
    """Return the error code in the answer; "" where there is none."""
    form = _form(response)
    return str(form.get("error_code", "")) if isinstance(form, dict) else ""


def _form(response: httpx.Response) -> Any:
    """Return the answer's JSON; None where it is not JSON."""
    try:
        return response.json()
    except (json.JSONDecodeError, UnicodeDecodeError):
        return None


def _answer(address: str, response: httpx.Response) -> dict[str, Any]:
    if response.status_code in (401, 403):
        raise ClusterError("CLUSTER-043", cause=_told(response), values={"master": address})
    answer = _form(response)
    if not isinstance(answer, dict) or "result" not in answer:
        raise ClusterError("CLUSTER-042", cause=_told(response), values=_status(address, response))
    return answer


def _status(address: str, response: httpx.Response) -> dict[str, Any]:
    return {"master": address, "status": f"HTTP {response.status_code}"}


def _told(response: httpx.Response) -> str:
    """Return the text of the answer, from one of the forms that servers use."""
    form = _form(response)
    if form is None:
        form = response.text.strip()[:200]
    if isinstance(form, dict):
        form = form.get("msg") or form.get("error_msg") or form.get("detail") or form
    return str(form) or f"HTTP {response.status_code}"
