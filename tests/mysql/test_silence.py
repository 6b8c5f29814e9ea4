"""A server that falls silent, or ends in the middle of a packet, is a lost connection, told in bounded time."""

from __future__ import annotations

from dataclasses import replace

import pytest

from support.stopped_threads import Aside
from support.waiting import wait_until
from unshard.errors import TargetError
from unshard.mysql.connection import rows, session
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.proxy import FaultProxy


@pytest.mark.parametrize("fault", ["stalled", "truncated"])
def test_it_is_a_lost_connection(fault: str, target_server: MariadbServer) -> None:
    with FaultProxy("127.0.0.1", target_server.port) as proxy:
        endpoint = replace(target_server.endpoint, port=proxy.port, patience_seconds=1)

        def ask(_: Aside) -> None:
            with session(endpoint, "target") as connection:
                if fault == "stalled":
                    proxy.stall()
                else:
                    proxy.cut_after(100)
                rows(connection, "SELECT REPEAT('x', 1000)")

        asks = Aside(ask)
        wait_until(lambda: not asks.thread.is_alive(), "it is told, and not left to the patience of any session")
        error = asks.join()
        assert isinstance(error, TargetError), error
        assert error.code == "TARGET-003"
        assert error.retryable
