"""Connections that write rows: one a worker process and partition, kept while they work."""

from __future__ import annotations

from typing import Any

from unshard.mysql.connection import Endpoint, connect

WRITE_SESSION = {
    "sql_mode": "STRICT_ALL_TABLES,ALLOW_INVALID_DATES,NO_AUTO_VALUE_ON_ZERO",
    "foreign_key_checks": "0",
}
"""What is written must arrive as it was or not at all: strict, yet zero dates, invalid dates and id 0 pass."""

_kept: dict[tuple[Endpoint, int], Any] = {}


def writer(endpoint: Endpoint) -> Any:
    """A new connection that writes rows under WRITE_SESSION and READ COMMITTED. Raises TargetError."""
    connection = connect(endpoint.with_session(**WRITE_SESSION), "target")
    with connection.cursor() as cursor:
        cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
    return connection


def kept_writer(endpoint: Endpoint, slot: int) -> Any:
    """The process's connection for that slot, opened when there is none. Not for use by two threads at once."""
    key = (endpoint, slot)
    if key not in _kept:
        _kept[key] = writer(endpoint)
    return _kept[key]


def drop_writer(endpoint: Endpoint, slot: int) -> None:
    """Close and forget a connection in doubt; its open transaction is rolled back by the server."""
    connection = _kept.pop((endpoint, slot), None)
    if connection is not None:
        connection.close()
