"""A master that serves on a loopback port, and workers that reach it there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx
from cluster_rig import FakeWorker

from support.waiting import wait_until
from unshard.api.heartbeat import DesiredState, Heartbeat
from unshard.api.verbs import PATH
from unshard.checks.result import CheckReport
from unshard.config.listener import ListenerConfig
from unshard.errors import ClusterError
from unshard.master.service import Master
from unshard.master.store import Store
from unshard.master.tasks import Check
from unshard.web.audit import AuditLog
from unshard.web.links import WorkerLinks
from unshard.web.master_app import master_app
from unshard.web.server import WebServer


class Knock:
    """A worker's way to several masters: the first that answers. A `MasterLink`."""

    def __init__(self, bases: Sequence[str]) -> None:
        self.clients = [httpx.Client(base_url=base, timeout=30.0, trust_env=False) for base in bases]

    def beat(self, beat: Heartbeat) -> DesiredState:
        for client in self.clients:
            try:
                answer = client.post("/worker-link/v1/beat", json=beat.model_dump(mode="json", by_alias=True))
            except httpx.HTTPError:
                continue
            if answer.is_success:
                return DesiredState.model_validate_json(answer.content)
        raise ClusterError("CLUSTER-001")


@dataclass(frozen=True, slots=True)
class Served:
    """One master; `client` asks it, and no other."""

    master: Master
    base: str
    client: httpx.Client
    workers: dict[str, FakeWorker]

    def ask(self, verb: str, **body: Any) -> dict[str, Any]:
        """The answer to a verb. It is put again while nobody has been asked: no master leads, or the one that does is
        slow to show that it is alive."""
        answers: list[httpx.Response] = []

        def answered() -> bool:
            answers.append(self.client.post(f"{PATH}/{verb}", json=body))
            return answers[-1].is_success or answers[-1].json()["error_code"] != "CLUSTER-001"

        wait_until(answered, f"an answer to {verb}", told=lambda: answers[-1].text)
        assert answers[-1].is_success, answers[-1].text
        form: dict[str, Any] = answers[-1].json()
        return form


@contextmanager
def served(
    url: str,
    name: str,
    lease: float = 60.0,
    ttl: float = 60.0,
    silent: float = 60.0,
    check: Check = lambda task, configs, also, others: CheckReport(()),
) -> Iterator[Served]:
    """A master of the store at `url`; a worker's address is looked up in `workers`, not dialled.

    `silent`: after so many seconds the database ends the session of one that stops in the middle of a transaction.
    """
    workers: dict[str, FakeWorker] = {}
    links = WorkerLinks(ListenerConfig(), "http", 5.0)
    master = Master(
        Store(url, silent_seconds=silent), workers.__getitem__, name, lease_seconds=lease, worker_ttl_seconds=ttl,
        check=check, ask=lambda config: None, level_of=links.level_of,
    )  # fmt: skip
    server = WebServer(master_app(master, AuditLog(""), links.client), ListenerConfig(), "127.0.0.1:0")
    master.advertise(server.address)
    server.start()
    master.start()
    base = f"http://{server.address}"
    with httpx.Client(base_url=base, timeout=30.0, trust_env=False) as client:
        try:
            yield Served(master, base, client, workers)
        finally:
            master.close()
            server.stop(1.0)
            links.close()
