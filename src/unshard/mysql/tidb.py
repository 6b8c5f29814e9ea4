"""What a TiDB target tells of itself. It speaks MySQL's protocol; what it does otherwise is known here and by callers.

Facts are from TiDB's documentation and from its source of the 7.5 line.
"""

from __future__ import annotations

from typing import Any

from unshard.mysql.connection import rows

OLDEST = (6, 5, 0)
"""The first version whose DDL takes several changes at once and waits for the transactions that read its table."""


def is_tidb(connection: Any) -> bool:
    """Whether the server is a TiDB, by the version that it greets with. Asks nothing."""
    return "tidb" in connection.get_server_info().lower()


def of_all_servers(connection: Any, table: str) -> str:
    """The table of information_schema that lists what its `table` does, but of all servers of the cluster.

    They ask each other over their status ports; a lone one need not have any, and is not asked that way.
    """
    ((servers,),) = rows(connection, "SELECT COUNT(*) FROM information_schema.TIDB_SERVERS_INFO")
    return f"information_schema.{'CLUSTER_' if int(servers) > 1 else ''}{table}"


def new_collations(connection: Any) -> bool:
    """Whether collations compare as in MySQL. False: every collation compares bytes, fixed when the cluster was made.

    TiDB keeps that in a table of its own which few may read; without them it lists `_bin` collations alone.
    """
    return bool(rows(connection, "SHOW COLLATION LIKE 'utf8mb4_general_ci'"))


def connected(connection: Any) -> int:
    """How many sessions are open: on all of the cluster's servers, or on this one where the account sees no others.

    TiDB has no status variable `Threads_connected`.
    """
    ((count,),) = rows(connection, "SELECT COUNT(*) FROM information_schema.PROCESSLIST")
    return int(count)
