"""A server that falls silent, or ends in the middle of a packet, is a lost connection, told in bounded time."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from unshard.errors import TargetError
from unshard.mysql.connection import ROWS_SECONDS, rows, session
from unshard.testing.proxy import FaultProxy
from unshard.testing.servers import MariadbServer


@pytest.mark.parametrize("fault", ["stalled", "truncated"])
def test_it_is_a_lost_connection(fault: str, target_server: MariadbServer) -> None:
    with FaultProxy("127.0.0.1", target_server.port) as proxy:
        endpoint = replace(target_server.endpoint, port=proxy.port, patience_seconds=2)

        def ask() -> None:
            with session(endpoint, "target") as connection:
                if fault == "stalled":
                    proxy.stall()
                else:
                    proxy.cut_after(100)
                rows(connection, "SELECT REPEAT('x', 1000)")

        began = time.monotonic()
        with pytest.raises(TargetError) as caught:
            ask()
        assert caught.value.code == "TARGET-003"
        assert caught.value.retryable
        assert time.monotonic() - began < ROWS_SECONDS / 3, "it was left to the patience of any session"
