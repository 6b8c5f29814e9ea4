"""Someone stands still in the middle of a batch: rows held by a lock, and whether a server has one who waits."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from unshard.testing.throwaway import ThrowawayServer


@contextmanager
def row_held(server: ThrowawayServer, table: str) -> Iterator[None]:
    """All rows of the table are locked, so that whoever writes one of them stands still in the middle of a batch."""
    connection = server.connection()
    connection.autocommit(False)
    try:
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT * FROM {table} FOR UPDATE")
            yield
    finally:
        connection.close()


def stands_still(server: ThrowawayServer) -> bool:
    """Whether a statement on the server has been waiting for a while, which here means for a lock."""
    waiting = "SELECT 1 FROM information_schema.PROCESSLIST WHERE COMMAND = 'Query' AND TIME_MS > 500"
    return bool(server.query(f"{waiting} AND ID <> CONNECTION_ID()"))
