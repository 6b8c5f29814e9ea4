"""Limits that several processes keep together, by the target itself."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

from unshard.mysql.connection import Endpoint, connect
from unshard.target.rate_limiter import RateLimiter
from unshard.testing.servers import MariadbServer

pytestmark = pytest.mark.server


@pytest.fixture
def gate(target_server: MariadbServer, schema: str) -> RateLimiter:
    gate = RateLimiter(schema, 1000, 2)
    connection = connect(target_server.endpoint, "target")
    gate.create(connection)
    connection.close()
    return gate


def _write(gate: RateLimiter, endpoint: Endpoint, times: int) -> list[tuple[float, float]]:
    """Transactions of 50 rows and 20 ms; when each was open."""
    connection = connect(endpoint, "target")

    def transaction(_: Any) -> tuple[float, float]:
        begun = time.time()
        time.sleep(0.02)
        return begun, time.time()

    return [gate.through(connection, transaction, lambda _: 50) for _ in range(times)]


def test_processes_share_rows_and_connections(gate: RateLimiter, target_server: MariadbServer) -> None:
    begun = time.time()
    with get_context("spawn").Pool(4) as pool:
        pool.starmap(_write, [(gate, target_server.endpoint, 1)] * 4)  # they are up
        begun = time.time()
        found = pool.starmap(_write, [(gate, target_server.endpoint, 10)] * 4)
    assert time.time() - begun >= 40 * 50 / 1000 - 0.5
    ends = sorted([(start, 1) for one in found for start, _ in one] + [(end, -1) for one in found for _, end in one])
    now = most = 0
    for _, step in ends:
        now += step
        most = max(most, now)
    assert most <= 2  # that two at once may be is what the next test begins with


def _hold(gate: RateLimiter, endpoint: Endpoint, mark: Path) -> None:
    connection = connect(endpoint, "target")

    def wait(_: Any) -> None:
        mark.touch()
        time.sleep(600)

    gate.through(connection, wait, lambda _: 0)


def test_what_a_dead_process_held_is_free(gate: RateLimiter, target_server: MariadbServer, tmp_path: Path) -> None:
    context = get_context("spawn")
    work = [(gate, target_server.endpoint, tmp_path / str(number)) for number in (1, 2)]
    holders = [context.Process(target=_hold, args=one, daemon=True) for one in work]
    for process in holders:
        process.start()
    while len(list(tmp_path.iterdir())) < 2:
        time.sleep(0.02)
    with ThreadPoolExecutor(1) as thread:
        waiting = thread.submit(_write, gate, target_server.endpoint, 1)
        time.sleep(0.5)
        assert not waiting.done()
        holders[0].kill()
        waiting.result(timeout=90)
    holders[1].kill()
    for process in holders:
        process.join()


def test_an_idle_time_is_not_made_up_for(gate: RateLimiter, target_server: MariadbServer) -> None:
    connection = connect(target_server.endpoint, "target")
    begun = time.monotonic()
    for due in (0.75, 1.75):  # what is left of it once it is told: time goes on
        told = gate.pay(connection, 1000)
        assert due - (time.monotonic() - begun) <= told <= due
    connection.close()
    assert RateLimiter(gate.schema).pay(None, 1000) == 0.0
