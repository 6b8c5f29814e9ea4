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
) -> None:
    """Write an operator and revert a pending one for the same position, in one transaction."""
    with connection.cursor() as cursor:
        cursor.execute("BEGIN")
        _take_back(cursor, meta, source, position, f"{op} took its place")
        cursor.execute(
            f"INSERT INTO {meta.operator} (source, op, binlog_name, binlog_pos, sqls, state, given_by)"
            " VALUES (%s, %s, %s, %s, %s, 'pending', %s)",
            (source, str(op), position.file, position.offset, json.dumps(list(sqls)), by[:255]),
        )
        cursor.execute("COMMIT")


def revert(connection: Any, meta: MetaTables, source: str, position: Position, by: str) -> bool:
    """Revert a pending operator; False where there is none."""
    with connection.cursor() as cursor:
        return _take_back(cursor, meta, source, position, f"reverted by {by}")


def settle(
    cursor: Any, meta: MetaTables, source: str, numbers: Iterable[int], state: str, epoch: int, batch_id: int, note: str
) -> None:
    """Mark operators as `applied` or `missed`, in the caller's transaction. May run twice."""
    for number in numbers:
        cursor.execute(
            f"UPDATE {meta.operator} SET state = %s, settled_time = CURRENT_TIMESTAMP, epoch = %s, batch_id = %s,"
            " note = %s WHERE number = %s AND source = %s",
            (state, epoch, batch_id, note[:1000], number, source),
        )


def _take_back(cursor: Any, meta: MetaTables, source: str, position: Position, note: str) -> bool:
    cursor.execute(
        f"UPDATE {meta.operator} SET state = 'reverted', settled_time = CURRENT_TIMESTAMP, note = %s"
        " WHERE source = %s AND binlog_name = %s AND binlog_pos = %s AND state = 'pending'",
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
