"""What a master makes of a worker that answers otherwise than it should."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from unshard.api.heartbeat import Heartbeat
from unshard.config.listener import ListenerConfig
from unshard.errors import ClusterError
from unshard.web import links
from unshard.web.links import IDLE_SECONDS, HttpMasterLink, HttpWorkerLink, WorkerLinks


def client(answer: dict[str, Any]) -> httpx.Client:
    transport = httpx.MockTransport(lambda request: httpx.Response(200, json=answer))
    return httpx.Client(transport=transport, base_url="http://w1:8262")


def test_a_worker_of_another_version_is_told_as_one_that_does_not_answer() -> None:
    link = HttpWorkerLink("w1:8262", client({"sourceStatus": {"name": "a"}}), 5.0)
    with pytest.raises(ClusterError) as caught:
        link.report(None, 5.0)
    assert caught.value.code == "CLUSTER-039"
    assert "another version" in str(caught.value)


def test_masters_of_an_earlier_version_are_told_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    """One of them may understand it all the same: each is asked."""
    asked = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request.url.host)
        if later and request.url.host == "m2":
            return httpx.Response(200, json={"ttlSeconds": 8, "leader": "m2:8261"})
        return httpx.Response(422, json={"result": False, "msg": "body.x: Extra inputs", "error_code": "CLUSTER-059"})

    monkeypatch.setattr(
        links, "http_client", lambda *args, **options: httpx.Client(transport=httpx.MockTransport(answer))
    )
    link, later = HttpMasterLink(["m1:8261", "m2:8261"], ListenerConfig()), False
    with pytest.raises(ClusterError) as caught:
        link.beat(Heartbeat(name="w", addr="h:1"))
    assert caught.value.code == "CLUSTER-086"
    assert "m1:8261: body.x" in caught.value.cause
    assert asked == ["m1", "m2"]
    later = True
    for _ in range(2):
        link.beat(Heartbeat(name="w", addr="h:1"))
    assert asked[2:] in (["m1", "m2", "m2"], ["m2", "m2"])


def test_a_log_level_in_another_form(monkeypatch: pytest.MonkeyPatch) -> None:
    links = WorkerLinks(ListenerConfig(), "http", 5.0)
    monkeypatch.setattr(links, "client", lambda addr: client({"levels": []}))
    with pytest.raises(ClusterError) as caught:
        links.level_of("w1:8262", "")
    assert caught.value.code == "CLUSTER-039"


def test_clients_of_members_that_are_gone_are_closed() -> None:
    now = 0.0
    links = WorkerLinks(ListenerConfig(), "http", 5.0, lambda: now)
    gone, stays = links.client("10.0.0.1:8262"), links.client("10.0.0.2:8262")
    now += IDLE_SECONDS
    assert links.client("10.0.0.2:8262") is stays
    now += 1
    links.client("10.0.0.3:8262")
    assert gone.is_closed
    assert not stays.is_closed
    links.close()
    assert stays.is_closed
