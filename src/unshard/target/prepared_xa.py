"""XA transactions that are prepared in a source and neither committed nor rolled back there yet.

A row is written with the checkpoint that passes the prepare, and goes with the one that passes the commit or
rollback; so the rows that stand are just those that the checkpoint has behind it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from unshard.model.position import Location, Position
from unshard.target.meta import MetaTables


@dataclass(frozen=True, slots=True)
class PreparedXa:
    """Where the rows of one lie: from `begin`, with the GTID set before it, to byte `end` of the same file."""

    xid: str
    begin: Location
    end: int


def load_prepared(connection: Any, meta: MetaTables, source: str) -> dict[str, PreparedXa]:
    """Those of a source, by xid."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT xid, binlog_name, begin_pos, end_pos, binlog_gtid FROM {meta.prepared_xa} WHERE source = %s",
            (source,),
        )
        found = cursor.fetchall()
    return {
        xid: PreparedXa(xid, Location(Position(name, int(begin)), gtid), int(end))
        for xid, name, begin, end, gtid in found
    }


def keep(cursor: Any, meta: MetaTables, source: str, prepared: PreparedXa) -> None:
    """Record one; runs in the transaction that moves the checkpoint, and may run twice."""
    at = prepared.begin
    cursor.execute(
        f"REPLACE INTO {meta.prepared_xa} (source, xid, binlog_name, begin_pos, end_pos, binlog_gtid)"
        " VALUES (%s, %s, %s, %s, %s, %s)",
        (source, prepared.xid, at.position.file, at.position.offset, prepared.end, at.gtid),
    )


def drop(cursor: Any, meta: MetaTables, source: str, xid: str) -> None:
    """Forget one; runs in the transaction that moves the checkpoint, and may run twice."""
    cursor.execute(f"DELETE FROM {meta.prepared_xa} WHERE source = %s AND xid = %s", (source, xid))
