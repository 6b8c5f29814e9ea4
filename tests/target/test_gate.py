"""Limits that several processes keep together, by the target itself."""

from __future__ import annotations

import os
import signal
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

from support.server_clock import assert_rate_was_held, clock, paid_until
from support.waiting import wait_until
from unshard.mysql.connection import Endpoint, connect, rows
from unshard.target.rate_limiter import RateLimiter
from unshard.testing.mariadb_server import MariadbServer

pytestmark = pytest.mark.server


@pytest.fixture
def gate(target_server: MariadbServer, schema: str) -> RateLimiter:
    gate = RateLimiter(schema, 1000, 2)
    connection = connect(target_server.endpoint, "target")
    gate.create(connection)
    connection.close()
    return gate


def _write(gate: RateLimiter, endpoint: Endpoint, open_now: Path, times: int) -> int:
    """Transactions of 50 rows, each of which has a file while it is open; how many were open at once at most."""
    connection = connect(endpoint, "target")

    def transaction(connection: Any) -> int:
        own = open_now / f"{os.getpid()}"
        own.touch()
        for _ in range(20):
            rows(connection, "SELECT 1")  # the others go on meanwhile
        seen = len(list(open_now.iterdir()))
        own.unlink()
        return seen

    return max(gate.through(connection, transaction, lambda _: 50) for _ in range(times))


def test_processes_share_rows_and_connections(gate: RateLimiter, target_server: MariadbServer, tmp_path: Path) -> None:
    gate = replace(gate, rows_per_second=4000)
    with get_context("spawn").Pool(4) as pool:
        pool.starmap(_write, [(gate, target_server.endpoint, tmp_path, 1)] * 4)  # they are up
        begun = clock(target_server)
        most = pool.starmap(_write, [(gate, target_server.endpoint, tmp_path, 10)] * 4)
    assert_rate_was_held(target_server, gate.schema, begun, 40 * 50, gate.rows_per_second)
    assert max(most) <= 2  # that two at once may be is what the next test begins with


def _hold(gate: RateLimiter, endpoint: Endpoint, mark: Path) -> None:
    connection = connect(endpoint, "target")

    def wait(_: Any) -> None:
        mark.touch()
        signal.pause()

    gate.through(connection, wait, lambda _: 0)


def test_what_a_dead_process_held_is_free(gate: RateLimiter, target_server: MariadbServer, tmp_path: Path) -> None:
    context = get_context("spawn")
    work = [(gate, target_server.endpoint, tmp_path / str(number)) for number in (1, 2)]
    holders = [context.Process(target=_hold, args=one, daemon=True) for one in work]
    for process in holders:
        process.start()
    wait_until(lambda: len(list(tmp_path.iterdir())) == 2, "both hold one")
    asks = "SELECT 1 FROM information_schema.PROCESSLIST WHERE INFO LIKE 'SELECT GET_LOCK%'"
    with ThreadPoolExecutor(1) as thread:
        waiting = thread.submit(_write, gate, target_server.endpoint, tmp_path, 1)
        wait_until(lambda: bool(target_server.query(asks)), "it waits for one")
        assert not waiting.done()
        holders[0].kill()
        waiting.result()
    holders[1].kill()
    for process in holders:
        process.join()


def test_an_idle_time_is_not_made_up_for(gate: RateLimiter, target_server: MariadbServer) -> None:
    connection = connect(target_server.endpoint, "target")
    begun = clock(target_server)
    assert gate.pay(connection, 1000) <= 0.75
    ended, paid = clock(target_server), paid_until(target_server, gate.schema)
    assert begun <= paid - 0.75 <= ended
    assert gate.pay(connection, 1000) <= paid - ended + 1.0
    assert paid_until(target_server, gate.schema) == pytest.approx(paid + 1.0)
    connection.close()
    assert RateLimiter(gate.schema).pay(None, 1000) == 0.0
