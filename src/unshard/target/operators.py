"""Operators: a user's instruction for one position of the log. Stored in the target, so that a restart has them too.

| state | means |
|---|---|
| pending | on record; the checkpoint has not passed the position yet |
| applied | used; written with the checkpoint that passes the position, with that `epoch` and `batch_id` |
| reverted | taken back, or another one was put on record for the same position |
| missed | the checkpoint passed the position, and nothing there was what the operator is for |

Rows are never deleted: they are the record of who did what.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from unshard.model.position import Position
from unshard.target.meta import MetaTables
from unshard.target.receipts import BATCH_COLUMNS, OpenBatch, is_begun, open_batch_of

_COLUMNS = "number, source, op, binlog_name, binlog_pos, sqls, state, given_by, given_time, settled_time, note"


class OperatorKind(StrEnum):
    """The action of an operator; `number` is DM's number for it."""

    SKIP = "skip"
    REPLACE = "replace"
    INJECT = "inject"

    @property
    def number(self) -> int:
        """Number of the kind in DM's messages."""
        return {"skip": 1, "replace": 2, "inject": 4}[self.value]


@dataclass(frozen=True, slots=True)
class Operator:
    """An operator on record: the action to take at one position of a source's log.

    Args:
        number: the key of its row; later operators have larger numbers.
        position: any byte of the event, statement or transaction that the operator is for.
        sqls: the statements of `replace` and `inject`.
        given_by: the user who gave it.
        given_time, settled_time: UTC, as text.
        note: why it has its state.
    """

    number: int
    source: str
    op: OperatorKind
    position: Position
    sqls: tuple[str, ...] = ()
    state: str = "pending"
    given_by: str = ""
    given_time: str = ""
    settled_time: str = ""
    note: str = ""

    def to_dict(self, task: str) -> dict[str, Any]:
        """Return DM's form of `binlog list`, followed by the fields that DM doesn't keep."""
        return {
            "op": self.op.number,
            "task": task,
            "binlogPos": f"({self.position.file}, {self.position.offset})",
            "sqls": list(self.sqls),
            "state": self.state,
            "givenBy": self.given_by,
            "givenTime": self.given_time,
            "settledTime": self.settled_time,
            "note": self.note,
        }


def load_operators(connection: Any, meta: MetaTables, source: str, *, every: bool = False) -> tuple[Operator, ...]:
    """Return the source's pending operators in the order of the log; with `every`, all ever given, oldest first."""
    pending = "" if every else " AND state = 'pending'"
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {_COLUMNS} FROM {meta.operator} WHERE source = %s{pending} ORDER BY number", (source,))
        found = tuple(_operator(row) for row in cursor.fetchall())
    return found if every else tuple(sorted(found, key=lambda one: one.position))


def give(
    connection: Any, meta: MetaTables, source: str, op: OperatorKind, position: Position, sqls: Sequence[str], by: str
) -> bool:
    """Write an operator and revert a pending one for the same position, in one transaction.

    Returns False where the batch of that position is open and no error has stopped the source: the operator is used
    only if the source stops before the batch is closed.
    """
    with connection.cursor() as cursor:
        cursor.execute("BEGIN")
        batch, stopped = _open_batch(cursor, meta, source)
        _take_back(
            cursor, meta, source, position, f"{op} took its place", _in_use(cursor, meta, source, batch, stopped)
        )
        cursor.execute(
            f"INSERT INTO {meta.operator} (source, op, binlog_name, binlog_pos, sqls, state, given_by)"
            " VALUES (%s, %s, %s, %s, %s, 'pending', %s)",
            (source, str(op), position.file, position.offset, json.dumps(list(sqls)), by[:255]),
        )
        cursor.execute("COMMIT")
    return stopped or batch is None or not batch.begin <= position < batch.end


def revert(connection: Any, meta: MetaTables, source: str, position: Position, by: str) -> bool:
    """Revert a pending operator; False where there is none that is not in use.

    An operator for rows is in use once a batch that leaves them out is open. It is free again where an error stops the
    source before anything of the batch is applied, because the next start plans the batch again.
    """
    with connection.cursor() as cursor:
        cursor.execute("BEGIN")
        used = _in_use(cursor, meta, source, *_open_batch(cursor, meta, source))
        found = _take_back(cursor, meta, source, position, f"reverted by {by}", used)
        cursor.execute("COMMIT")
    return found


def settle(
    cursor: Any, meta: MetaTables, source: str, numbers: Iterable[int], state: str, epoch: int, batch_id: int, note: str
) -> None:
    """Mark operators as `applied` or `missed`, in the caller's transaction. May run twice.

    One that was used is `applied`, whatever a user has done meanwhile; only a pending one can be `missed`.
    """
    for number in numbers:
        cursor.execute(
            f"UPDATE {meta.operator} SET state = %s, settled_time = CURRENT_TIMESTAMP, epoch = %s, batch_id = %s,"
            " note = %s WHERE number = %s AND source = %s" + (" AND state = 'pending'" if state == "missed" else ""),
            (state, epoch, batch_id, note[:1000], number, source),
        )


def _open_batch(cursor: Any, meta: MetaTables, source: str) -> tuple[OpenBatch | None, bool]:
    """Return the open batch, and whether an error has stopped the source.

    Locks the source's row until the caller's transaction ends, so that no batch is opened meanwhile. A batch that waits
    to be opened reads the operators once more then: on TiDB only because the row has changed.
    """
    touched = "update_time = FROM_UNIXTIME(UNIX_TIMESTAMP(update_time) + 1)"
    cursor.execute(f"UPDATE {meta.batch} SET {touched} WHERE source = %s", (source,))
    cursor.execute(f"SELECT {BATCH_COLUMNS} FROM {meta.batch} WHERE source = %s FOR UPDATE", (source,))
    row = cursor.fetchone()
    cursor.execute(f"SELECT 1 FROM {meta.stopped} WHERE source = %s FOR UPDATE", (source,))
    stopped = cursor.fetchone() is not None
    return (open_batch_of(row) if row is not None else None), stopped


def _in_use(cursor: Any, meta: MetaTables, source: str, batch: OpenBatch | None, stopped: bool) -> tuple[int, ...]:
    """Return the operators whose rows the open batch leaves out, whatever is done about them now."""
    if batch is None or batch.plan["kind"] != "rows":
        return ()
    used = tuple(batch.plan.get("operators", ()))
    return used if not stopped or is_begun(cursor, meta, source, batch.batch_id) else ()


def _take_back(cursor: Any, meta: MetaTables, source: str, position: Position, note: str, used: Sequence[int]) -> bool:
    others = ", ".join(map(str, (0, *used)))  # no row has the number 0
    cursor.execute(
        f"UPDATE {meta.operator} SET state = 'reverted', settled_time = CURRENT_TIMESTAMP, note = %s"
        " WHERE source = %s AND binlog_name = %s AND binlog_pos = %s AND state = 'pending'"
        f" AND number NOT IN ({others})",
        (note[:1000], source, position.file, position.offset),
    )
    return bool(cursor.rowcount)


def _operator(row: Sequence[Any]) -> Operator:
    number, source, op, file, offset, sqls, state, by, given, settled, note = row
    return Operator(
        int(number),
        source,
        OperatorKind(op),
        Position(file, int(offset)),
        tuple(json.loads(sqls)),
        state,
        by,
        str(given),
        str(settled or ""),
        note,
    )
