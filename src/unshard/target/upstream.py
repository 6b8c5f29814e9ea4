"""Stores in the target the identity of the server to which a source's binlog names belong.

They are the names in its checkpoint, its open batch and its prepared transactions. The server is recorded at a task's
first contact with its source. It changes in the transaction that translates those names when the source has failed over
to another server.
"""

from __future__ import annotations

from typing import Any

from unshard.target.meta import MetaTables


def load_upstream(connection: Any, meta: MetaTables, source: str) -> str | None:
    """Return the recorded server (`mysql.flavour.identify`), or None."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT uuid FROM {meta.upstream} WHERE source = %s", (source,))
        found = cursor.fetchone()
    return str(found[0]) if found else None


def save_upstream(cursor: Any, meta: MetaTables, source: str, uuid: str) -> None:
    """Record a server, in the caller's transaction. May run twice."""
    cursor.execute(f"REPLACE INTO {meta.upstream} (source, uuid) VALUES (%s, %s)", (source, uuid))
