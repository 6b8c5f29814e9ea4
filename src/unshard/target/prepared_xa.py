"""The record of prepared XA transactions, beside the checkpoint.

XA transactions that are prepared in the source and neither committed nor rolled back there yet have a row each. It is
written with the checkpoint that passes the prepare, and deleted with the one that passes the commit or rollback. So the
rows are exactly the transactions that are prepared at the checkpoint.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from unshard.model.position import Location, Position
from unshard.target.meta import MetaTables


@dataclass(frozen=True, slots=True)
class PreparedXa:
    """The location of a prepared transaction's rows in the log: from `begin` to byte `end` of its file.

    `begin` has the GTID set before the transaction.
    """

    xid: str
    begin: Location
    end: int


def load_prepared(connection: Any, meta: MetaTables, source: str) -> dict[str, PreparedXa]:
    """Return the prepared transactions of a source, by xid."""
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
    """Record a prepared transaction; runs in the transaction that moves the checkpoint, and may run twice."""
    at = prepared.begin
    cursor.execute(
        f"REPLACE INTO {meta.prepared_xa} (source, xid, binlog_name, begin_pos, end_pos, binlog_gtid)"
        " VALUES (%s, %s, %s, %s, %s, %s)",
        (source, prepared.xid, at.position.file, at.position.offset, prepared.end, at.gtid),
    )


def drop(cursor: Any, meta: MetaTables, source: str, xid: str) -> None:
    """Delete its record; runs in the transaction that moves the checkpoint, and may run twice."""
    cursor.execute(f"DELETE FROM {meta.prepared_xa} WHERE source = %s AND xid = %s", (source, xid))
