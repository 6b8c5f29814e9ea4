"""For tests: holds up a running batch by locking rows, and detects whether a statement waits for a lock."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from unshard.testing.throwaway_server import ThrowawayServer
from unshard.testing.tidb_server import TidbServer


@contextmanager
def row_held(server: ThrowawayServer, table: str, where: str = "") -> Iterator[None]:
    """Lock the table's rows within the block, so that a writer of one of them blocks in the middle of a batch.

    `where` is a range of the primary key. A server that read the whole table for it would lock all rows.
    """
    chosen = f"FORCE INDEX (PRIMARY) WHERE {where}" if where else ""
    connection = server.connection()
    connection.autocommit(False)
    try:
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT * FROM {table} {chosen} FOR UPDATE")
            yield
    finally:
        connection.close()


def stands_still(server: ThrowawayServer) -> bool:
    """Return whether a statement on the server has been waiting for a lock for a while.

    A merely slow statement does not count.
    """
    if isinstance(server, TidbServer):
        before = "NOW(6) - INTERVAL 500000 MICROSECOND"  # an optimistic transaction waits while it commits
        waiting = f"WAITING_START_TIME < {before} OR (STATE = 'Committing' AND START_TIME < {before})"
        return bool(server.query(f"SELECT 1 FROM information_schema.TIDB_TRX WHERE {waiting}"))
    if server.product == "MySQL":
        # not INNODB_TRX: its rows are renewed only where nobody has read them for 0.1 s
        for_rows = (
            "SELECT 1 FROM performance_schema.data_lock_waits JOIN performance_schema.threads"
            " ON THREAD_ID = REQUESTING_THREAD_ID WHERE PROCESSLIST_TIME > 0"
        )
        for_tables = "SELECT 1 FROM information_schema.PROCESSLIST WHERE STATE LIKE 'Waiting for%%lock' AND TIME > 0"
        return bool(server.query(f"{for_rows} UNION ALL {for_tables}"))
    rows = "SELECT trx_mysql_thread_id FROM information_schema.INNODB_TRX WHERE trx_state = 'LOCK WAIT'"
    waiting = f"TIME_MS > 500 AND (STATE LIKE 'Waiting for%' OR ID IN ({rows}))"
    asked = f"SELECT 1 FROM information_schema.PROCESSLIST WHERE COMMAND IN ('Query', 'Bulk_execute') AND {waiting}"
    return bool(server.query(f"{asked} AND ID <> CONNECTION_ID()"))
