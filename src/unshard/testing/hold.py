"""Someone stands still in the middle of a batch: rows held by a lock, and whether a server has one who waits."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from unshard.testing.servers import ThrowawayServer
from unshard.testing.tidb_server import TidbServer


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
    """Whether a statement on the server has been waiting for a lock for a while. One that is only slow has not."""
    if isinstance(server, TidbServer):
        waiting = "WAITING_START_TIME < NOW(6) - INTERVAL 500000 MICROSECOND"
        return bool(server.query(f"SELECT 1 FROM information_schema.TIDB_TRX WHERE {waiting}"))
    rows = "SELECT trx_mysql_thread_id FROM information_schema.INNODB_TRX WHERE trx_state = 'LOCK WAIT'"
    waiting = f"TIME_MS > 500 AND (STATE LIKE 'Waiting for%' OR ID IN ({rows}))"
    asked = f"SELECT 1 FROM information_schema.PROCESSLIST WHERE COMMAND = 'Query' AND {waiting}"
    return bool(server.query(f"{asked} AND ID <> CONNECTION_ID()"))
