"""A server's own clock, and what it says of a limit of rows a second."""

from __future__ import annotations

from support.waiting import wait_until
from unshard.testing.throwaway_server import ThrowawayServer


def clock(server: ThrowawayServer) -> float:
    """The server's time now, in unix seconds."""
    ((now,),) = server.query("SELECT UNIX_TIMESTAMP(SYSDATE(6))")
    return float(now)


def next_second(server: ThrowawayServer) -> None:
    """Wait until what the server writes has a later second than all that it has written: its log has whole ones."""
    now = int(clock(server))
    wait_until(lambda: int(clock(server)) > now, "the next second of the server")


def paid_until(server: ThrowawayServer, schema: str) -> float:
    """Up to which time the rows are paid for that were written into this target under a limit, in unix seconds."""
    ((until,),) = server.query(f"SELECT paid_until FROM {schema}.unshard_throttle")
    return int(until) / 1e6


def assert_rate_was_held(server: ThrowawayServer, schema: str, begun: float, rows: int, rate: float) -> None:
    """So many rows were paid for since `begun`, but for what an idle time may make up for, and waited for."""
    paid = paid_until(server, schema)
    assert paid >= begun + rows / rate - BURST_SECONDS
    assert clock(server) >= paid - 0.05


BURST_SECONDS = 0.25
