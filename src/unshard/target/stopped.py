"""Where and why a source's sync stopped by an error: one row a source until its next start."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from unshard.model.position import Position
from unshard.target.meta import MetaTables


@dataclass(frozen=True, slots=True)
class Stopped:
    """`position` is the beginning of what could not be carried out, `error` its text, bounded, `time` UTC as text.

    It is not `sure` where one of several transactions from there on is meant, and nobody knows which.
    """

    position: Position
    code: str
    error: str
    time: str = ""
    sure: bool = True


def load_stopped(connection: Any, meta: MetaTables, source: str) -> Stopped | None:
    """None for a source that runs, was stopped in good order or was killed."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT binlog_name, binlog_pos, code, error, stopped_time, sure FROM {meta.stopped} WHERE source = %s",
            (source,),
        )
        found = cursor.fetchone()
    if found is None:
        return None
    file, offset, code, error, time, sure = found
    return Stopped(Position(file, int(offset)), code, error, str(time), bool(sure))


def save_stopped(cursor: Any, meta: MetaTables, source: str, stopped: Stopped) -> None:
    """Write the row anew, in the caller's transaction."""
    cursor.execute(
        f"REPLACE INTO {meta.stopped} (source, binlog_name, binlog_pos, code, error, sure)"
        " VALUES (%s, %s, %s, %s, %s, %s)",
        (source, stopped.position.file, stopped.position.offset, stopped.code, stopped.error, stopped.sure),
    )


def forget_stopped(cursor: Any, meta: MetaTables, source: str) -> None:
    """The source goes on."""
    cursor.execute(f"DELETE FROM {meta.stopped} WHERE source = %s", (source,))
