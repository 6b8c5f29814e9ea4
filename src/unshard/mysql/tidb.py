"""What a TiDB target tells of itself. It speaks MySQL's protocol; what it does otherwise is known here and by callers.

Facts are from TiDB's documentation and from its source of the 7.5 line.
"""

from __future__ import annotations

import re
from typing import Any

from unshard.mysql.connection import rows

OLDEST = (6, 5, 0)
"""The first version whose DDL takes several changes at once and waits for the transactions that read its table."""

_VERSION = re.compile(r"-TiDB-v?(\d+)\.(\d+)\.(\d+)", re.IGNORECASE)


def is_tidb(connection: Any) -> bool:
    """Whether the server is a TiDB, by the version that it greets with. Asks nothing."""
    return "tidb" in connection.get_server_info().lower()


def tidb_version(version_text: str) -> tuple[int, int, int] | None:
    """TiDB's own version in the text of `VERSION()` (`8.0.11-TiDB-v7.5.4`); None for a text without one."""
    found = _VERSION.search(version_text)
    return (int(found[1]), int(found[2]), int(found[3])) if found else None


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
