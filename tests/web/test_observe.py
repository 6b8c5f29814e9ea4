"""`/metrics` and the level of the log, over HTTP."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families
from served import bearer, get, request, tokens

from unshard import log
from unshard.config.listener import ListenerConfig
from unshard.metrics.sample import Sample
from unshard.web.audit import AuditLog
from unshard.web.guard import guarded_app
from unshard.web.observe import observing
from unshard.web.server import WebServer


@pytest.fixture
def server(tmp_path: Path) -> Iterator[WebServer]:
    app = guarded_app("observed", audit=AuditLog(str(tmp_path / "audit.log")))
    app.include_router(observing(lambda: [Sample("dm_master_worker_state", {"worker": 'w"1'}, 2)], {"name": "w1"}))
    path = tokens(tmp_path, looker="viewer", doer="operator", boss="admin")
    server = WebServer(app, ListenerConfig.model_validate({"token-file": str(path)}), "127.0.0.1:0")
    server.start()
    before = logging.getLogger("unshard").level
    yield server
    logging.getLogger("unshard").setLevel(before)
    server.stop(1)


def call(server: WebServer, who: str, method: str, path: str, body: Any = None) -> httpx.Response:
    return request(method, f"http://{server.address}{path}", headers=bearer(who), json=body)


def test_metrics_are_for_who_may_look(server: WebServer) -> None:
    assert get(f"http://{server.address}/metrics").status_code == 401
    answer = call(server, "looker", "GET", "/metrics")
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    found = {
        sample.name: (sample.labels, sample.value)
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }
    assert found["dm_master_worker_state"] == ({"worker": 'w"1'}, 2)
    assert found["process_resident_memory_bytes"][1] > 1e6
    assert found["process_cpu_seconds_total"][1] > 0
    assert found["unshard_build_info"][1] == 1


def test_the_settings_are_for_who_may_look(server: WebServer) -> None:
    assert get(f"http://{server.address}/settings").status_code == 401
    assert call(server, "looker", "GET", "/settings").json() == {"name": "w1"}


def test_the_level_is_changed_by_an_admin(server: WebServer) -> None:
    assert call(server, "boss", "PUT", "/log-level", {"level": "debug"}).json() == {"level": "debug"}
    assert call(server, "looker", "GET", "/log-level").json() == {"level": "debug"}
    assert log.level() == "debug"
    assert call(server, "doer", "PUT", "/log-level", {"level": "error"}).status_code == 403
    wrong = call(server, "boss", "PUT", "/log-level", {"level": "loud'\n"})
    assert (wrong.status_code, wrong.json()["error_code"]) == (400, "CLUSTER-070")
    assert "give one of debug, info, warn, error" in wrong.json()["msg"]
    assert call(server, "boss", "PUT", "/log-level", {"level": "warn", "more": 1}).status_code == 422
    assert call(server, "looker", "GET", "/log-level").json() == {"level": "debug"}
