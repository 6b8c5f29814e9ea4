"""What a worker tells for the page, over HTTP: the copy by table, and the newest lines of its log."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from page_served import HOSTILE, TellingLink, copied, status
from served import bearer, tokens

from unshard.config.listener import ListenerConfig
from unshard.errors import ClusterError
from unshard.web.audit import AuditLog
from unshard.web.links import HttpWorkerLink
from unshard.web.server import WebServer
from unshard.web.worker_app import worker_app


@pytest.fixture
def worker() -> TellingLink:
    return TellingLink(status())


@pytest.fixture
def client(worker: TellingLink, tmp_path: Path) -> Iterator[httpx.Client]:
    config = ListenerConfig(token_file=str(tokens(tmp_path, mia="master", vic="viewer")))
    server = WebServer(worker_app(worker, AuditLog(str(tmp_path / "audit")), tuple, {}), config, "127.0.0.1:0")
    server.start()
    with httpx.Client(base_url=f"http://{server.address}", headers=bearer("mia"), timeout=60) as made:
        yield made
    server.stop(1)


def test_tables_and_then_only_what_has_changed(worker: TellingLink, client: httpx.Client) -> None:
    link = HttpWorkerLink("w1:1", client, 60.0)
    worker.tables = copied(10_000)
    first = link.copy_progress("shop", "", 0, 60.0)
    assert first.whole
    assert len(first.tables) == 10_000
    assert first.tables[0].table == f"shop.{HOSTILE}"
    assert first.tables[0].rows_about is None
    again = link.copy_progress("shop", first.life, first.revision, 60.0)
    assert not again.whole
    assert again.tables == ()


def test_lines_and_then_only_new_ones(worker: TellingLink, client: httpx.Client) -> None:
    link = HttpWorkerLink("w1:1", client, 60.0)
    worker.ring.keep(None, "info", {"event": HOSTILE, "level": "info", "timestamp": "2026-01-02T03:04:05Z", "rows": 3})
    first = link.log_tail("", 0, 60.0)
    assert [(one.event, one.more) for one in first.lines] == [(HOSTILE, {"rows": "3"})]
    assert link.log_tail(first.life, first.lines[-1].number, 60.0).lines == ()


def test_only_a_master_may_ask(client: httpx.Client) -> None:
    for path in ("copy-progress?task=shop", "log-tail"):
        assert client.get(f"/worker/v1/{path}", headers=bearer("vic")).status_code == 403


def test_a_worker_of_an_earlier_version_is_told_as_one_that_does_not_answer() -> None:
    transport = httpx.MockTransport(lambda request: httpx.Response(404, json={"detail": "Not Found"}))
    link = HttpWorkerLink("w1:1", httpx.Client(transport=transport, base_url="http://w1:1"), 5.0)
    for ask in (lambda: link.copy_progress("t", "", 0, 1.0), lambda: link.log_tail("", 0, 1.0)):
        with pytest.raises(ClusterError) as caught:
            ask()
        assert caught.value.code == "CLUSTER-039"
