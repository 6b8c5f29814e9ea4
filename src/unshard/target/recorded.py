"""Reads what a sync unit has recorded in the target about its source: progress, open batch, row counts, last error.

A reader needs no claim of the source and may read while the unit runs.

An error that stops a source's sync has one row, with its place and reason, until the source's next start.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import MySQLdb

from unshard.model.position import Location, Position
from unshard.target.checkpoint import load_checkpoint
from unshard.target.meta import COUNTS, MetaTables
from unshard.target.operators import Operator, load_operators


@dataclass(frozen=True, slots=True)
class Stopped:
    """The position and the cause of an error that stopped a source's sync.

    Args:
        position: the beginning of the event, statement or transaction that could not be applied.
        code, error: the error's code, and its text, bounded.
        time: UTC, as text.
        sure: False where one of several transactions from `position` on caused it, and it is not known which.
    """

    position: Position
    code: str
    error: str
    time: str = ""
    sure: bool = True


def load_stopped(connection: Any, meta: MetaTables, source: str) -> Stopped | None:
    """Return why the source stopped; None for one that runs, was stopped in good order or was killed."""
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
    """Delete the row, in the caller's transaction: the source goes on."""
    cursor.execute(f"DELETE FROM {meta.stopped} WHERE source = %s", (source,))


T = TypeVar("T")
_CLAMPED = "SELECT target, COUNT(*) AS `count` FROM {name} WHERE source = %s GROUP BY target ORDER BY target"
_ABSENT = frozenset({1049, 1146})  # no such database, no such table


@dataclass(frozen=True, slots=True)
class Recorded:
    """The target's records of one source.

    They are read one after the other: a running task may have closed a batch in between.

    Args:
        location: the checkpoint; None before the first one.
        saved: when the checkpoint was moved last (UTC, as text).
        open_batch: the range of the batch that is planned and not closed, else "".
        tables: the counts of the ledger, by target table.
        filtered: the number of excluded changes, by (target table, rule).
        skipped: the number of excluded row events, by (source table, rule).
        stopped: where and why an error stopped the source; None while it runs.
        pending: the operators that wait.
        held: the location where the first unresolved sharding DDL began.
        clamped: the number of values that were clamped, by target table.
    """

    source: str
    location: Location | None
    saved: str
    open_batch: str
    tables: dict[str, dict[str, int]]
    filtered: dict[tuple[str, str], int]
    skipped: dict[tuple[str, str], int]
    stopped: Stopped | None = None
    pending: tuple[Operator, ...] = ()
    held: Location | None = None
    clamped: Mapping[str, int] = field(default_factory=dict)


def read_recorded(connection: Any, meta: MetaTables, source: str) -> Recorded:
    """Read the rows; tables and columns that a task has not made yet count as empty. Raises driver errors unchanged."""
    checkpoint = _rows(connection, f"SELECT update_time FROM {meta.checkpoint} WHERE id = %s AND is_global", source)
    found = load_checkpoint(connection, meta, source) if checkpoint else None
    batches = _rows(connection, f"SELECT * FROM {meta.batch} WHERE source = %s AND state = 'open'", source)
    left_out = _rows(connection, f"SELECT * FROM {meta.left_out} WHERE source = %s ORDER BY name, rule", source)
    ledger = _rows(connection, f"SELECT * FROM {meta.ledger} WHERE source = %s ORDER BY target", source)
    clamped = _rows(connection, _CLAMPED.format(name=meta.clamped_value), source)
    return Recorded(
        source,
        found.location if found is not None else None,
        str(checkpoint[0]["update_time"]) if checkpoint else "",
        "".join(f"{b['begin_name']}:{b['begin_pos']} to {b['end_name']}:{b['end_pos']}" for b in batches),
        {row["target"]: {name: int(row.get(name, 0)) for name in COUNTS} for row in ledger},
        {(row["name"], row["rule"]): int(row["changes"]) for row in left_out if row["changes"]},
        {(row["name"], row["rule"]): int(row["events"]) for row in left_out if row.get("events")},
        _where_there(lambda: load_stopped(connection, meta, source), None),
        _where_there(lambda: load_operators(connection, meta, source), ()),
        found.held if found is not None else None,
        {row["target"]: int(row["count"]) for row in clamped},
    )


def _where_there(read: Callable[[], T], otherwise: T) -> T:
    """Return the result of `read`, or `otherwise` where it reads a table that the task has not made yet."""
    try:
        return read()
    except MySQLdb.Error as error:
        if error.args[0] in _ABSENT:
            return otherwise
        raise


def _rows(connection: Any, statement: str, source: str) -> list[dict[str, Any]]:
    with connection.cursor() as cursor:
        try:
            cursor.execute(statement, (source,))
        except MySQLdb.Error as error:
            if error.args[0] in _ABSENT:
                return []
            raise
        names = [column[0] for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
