"""The limit of a target: the same rows written by plain multi-row INSERTs over several connections."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

import MySQLdb

from bench import data
from bench.ends import Target

_ROWS = 500
"""Rows in a statement, as TiDB's documentation advises for large amounts."""


def beside(target: Target, create: str, rows: int, ours: float) -> dict[str, Any]:
    """Return `{"limit_s", "limit_connections", "x_limit"}`: the best time for that many rows of `data.bulk`, and its
    ratio to `ours`.

    `create` makes the table `bulk`. Each statement is a transaction of its own.
    """
    made = list(data.sysbench_rows(rows))
    statements = [f"INSERT INTO bench.bulk VALUES {','.join(one)}".encode() for one in _batches(made)]
    found = []
    for width in (2, 4, 8, 16) if target.round_trip_ms else (2, 4, 8):
        with target.server({}) as reached:
            reached.server.run("CREATE DATABASE bench", "USE bench", create)
            found.append((_seconds(statements, reached.port, width), width))
    seconds, width = min(found)
    return {"limit_s": round(seconds, 2), "limit_connections": width, "x_limit": round(seconds / ours, 2)}


def _batches(rows: Sequence[str]) -> Iterator[Sequence[str]]:
    return (rows[at : at + _ROWS] for at in range(0, len(rows), _ROWS))


def _seconds(statements: Sequence[bytes], port: int, width: int) -> float:
    connections = [MySQLdb.connect(host="127.0.0.1", port=port, user="root", autocommit=True) for _ in range(width)]
    threads = [
        threading.Thread(target=_send, args=(connection, statements[number::width]))
        for number, connection in enumerate(connections)
    ]
    begun = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = time.perf_counter() - begun
    for connection in connections:
        connection.close()
    return seconds


def _send(connection: MySQLdb.Connection, statements: Sequence[bytes]) -> None:
    for statement in statements:
        connection.query(statement)
