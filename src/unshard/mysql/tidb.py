"""Questions that only a TiDB target can answer.

TiDB speaks MySQL's protocol; its differences are handled here and by callers. The facts are from TiDB's documentation
and from its source of the 7.5 line.
"""

from __future__ import annotations

from typing import Any

from unshard.mysql.connection import rows

OLDEST = (6, 5, 0)
"""The first supported version: its DDL takes several changes at once and waits for transactions that read its table."""


def is_tidb(connection: Any) -> bool:
    """Return whether the server is a TiDB, by the version in its greeting. Sends no query."""
    return "tidb" in connection.get_server_info().lower()


def of_all_servers(connection: Any, table: str) -> str:
    """Return the name of the information_schema table that lists the rows of `table` for all servers of the cluster.

    The servers ask each other over their status ports. A single server may have no such port, so its own table is used.
    """
    ((servers,),) = rows(connection, "SELECT COUNT(*) FROM information_schema.TIDB_SERVERS_INFO")
    return f"information_schema.{'CLUSTER_' if int(servers) > 1 else ''}{table}"


def new_collations(connection: Any) -> bool:
    """Return whether collations compare as in MySQL.

    If not, every collation compares bytes; this is fixed when the cluster is created. TiDB stores the setting in a
    table that few accounts may read. Without it, TiDB lists only `_bin` collations.
    """
    return bool(rows(connection, "SHOW COLLATION LIKE 'utf8mb4_general_ci'"))


def connected(connection: Any) -> int:
    """Return how many sessions are open: on all of the cluster's servers, or on this one if the account sees no others.

    TiDB has no status variable `Threads_connected`.
    """
    ((count,),) = rows(connection, "SELECT COUNT(*) FROM information_schema.PROCESSLIST")
    return int(count)
