"""The identity of the server to which a source's binlog names belong, recorded in the target.

Binlog names are in the source's checkpoint, its open batch and its prepared transactions. The server is recorded at a
task's first contact with its source. The record changes when the source has failed over to another server, in the
transaction that translates those names.
"""

from __future__ import annotations

import json
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


def open_batch_gtid(connection: Any, meta: MetaTables, source: str) -> str:
    """Return the GTID set after the open batch; "" where none is open that has begun, or the source has no GTIDs.

    A batch of rows of which nothing is applied is none: the next claim gives it up. Until then an earlier process may
    still begin it.
    """
    begun = (
        f"SELECT 1 FROM {meta.partition} AS part"
        " WHERE part.source = batch.source AND part.batch_id = batch.batch_id AND (part.chunk > 0 OR part.step > 0)"
    )
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT plan, EXISTS ({begun}) FROM {meta.batch} AS batch WHERE source = %s AND state = 'open'", (source,)
        )
        text, is_begun = cursor.fetchone() or ("{}", 0)
    plan = json.loads(text)
    return str(plan.get("end_gtid", "")) if is_begun or plan.get("kind") != "rows" else ""
