"""The rows that continuous validation has found to differ.

The rows are in DM's table, with its states and kinds:

| state | means |
|---|---|
| 1 new | the row differs |
| 2 ignored | a user has accepted it; it is not looked at again by itself |
| 3 resolved | a later look has found the row right, or a user has said so |

A row that is resolved stays on record. Where it differs again it is new again, and counts how often it was.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from unshard.model.table import TableName
from unshard.mysql.connection import rows
from unshard.target.meta import MetaTables
from unshard.target.pending_keys import PendingKey, row_pk
from unshard.target.validation import Key

Row = dict[str, str | None]


class ErrorState(IntEnum):
    """The state of a row error; the numbers are DM's."""

    NEW = 1
    IGNORED = 2
    RESOLVED = 3


class ErrorKind(IntEnum):
    """The kind of a row error, with DM's numbers and one of ours.

    COLLISION is ours: rows of several source tables have one key of the target.
    """

    EXTRA = 0
    MISSING = 1
    CHANGED = 2
    COLLISION = 3

    @property
    def words(self) -> str:
        """DM's words."""
        return _WORDS[self]


_WORDS = {
    ErrorKind.EXTRA: "Deleted rows exist",
    ErrorKind.MISSING: "Expected rows not exist",
    ErrorKind.CHANGED: "Column data not matched",
    ErrorKind.COLLISION: "Several source rows have the key",
}


@dataclass(frozen=True, slots=True)
class RowError:
    """A row that differs between source and target.

    `row` is the source's row as the target should have it, `found` the target's. `columns` are those that differ,
    `key_columns` those of the key; () in records of earlier versions.

    `place` is how far the source's binlog was applied when the row was judged.
    """

    origin: TableName
    target: TableName
    key: Key
    kind: ErrorKind
    row: Row | None
    found: Row | None
    columns: tuple[str, ...] = ()
    place: str = ""
    number: int = 0
    source: str = ""
    state: ErrorState = ErrorState.NEW
    times: int = 1
    time: str = ""
    settled_by: str = ""
    key_columns: tuple[str, ...] = ()

    @property
    def pending(self) -> PendingKey:
        """The error's key as a pending one."""
        kind = _LOOKED_AT[self.kind]
        return PendingKey(self.origin, self.target, self.key, kind, 0.0, columns=self.key_columns)


_LOOKED_AT = {ErrorKind.MISSING: 0, ErrorKind.CHANGED: 1, ErrorKind.COLLISION: 1, ErrorKind.EXTRA: 2}
_COLUMNS = (
    "id, source, src_schema_name, src_table_name, dst_schema_name, dst_table_name, data, dst_data, error_type, status,"
    " times, place, settled_by, update_time"
)


def _errors(meta: MetaTables) -> str:
    return meta.named("validator_error_change")


def save_errors(cursor: Any, meta: MetaTables, source: str, found: Iterable[RowError]) -> None:
    """Record errors, in the caller's transaction. An ignored row stays ignored, a resolved one is new again."""
    statement = (
        f"INSERT INTO {_errors(meta)} (source, src_schema_name, src_table_name, row_pk, dst_schema_name,"
        " dst_table_name, data, dst_data, error_type, status, place)"
        " VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, 1, %s)"
        " ON DUPLICATE KEY UPDATE data = VALUES(data), dst_data = VALUES(dst_data), error_type = VALUES(error_type),"
        " place = VALUES(place), settled_by = IF(status = 3, '', settled_by),"
        " times = times + IF(status = 3, 1, 0), status = IF(status = 3, 1, status)"
    )
    for one in found:
        names = one.origin.schema, one.origin.table, row_pk(one.key), one.target.schema, one.target.table
        values = _data(one), json.dumps(one.found), int(one.kind), one.place
        cursor.execute(statement, (source, *names, *values))


def renew_error(cursor: Any, meta: MetaTables, number: int, found: RowError) -> None:
    """Update an error whose row still differs. One that was settled meanwhile is left alone."""
    cursor.execute(
        f"UPDATE {_errors(meta)} SET data = %s, dst_data = %s, error_type = %s WHERE id = %s AND status = 1",
        (_data(found), json.dumps(found.found), int(found.kind), number),
    )


def _data(one: RowError) -> str:
    form = {"key": list(one.key), "key_columns": list(one.key_columns), "columns": list(one.columns), "row": one.row}
    return json.dumps(form)


def load_errors(
    connection: Any,
    meta: MetaTables,
    sources: Sequence[str],
    states: Iterable[ErrorState],
    after: int = 0,
    limit: int = 1000,
) -> list[RowError]:
    """Return the errors in these states with a number greater than `after`, in order."""
    named = ", ".join(["%s"] * len(sources))
    wanted = ", ".join(str(int(state)) for state in states)
    found = rows(
        connection,
        f"SELECT {_COLUMNS} FROM {_errors(meta)} WHERE source IN ({named}) AND status IN ({wanted}) AND id > %s"
        " ORDER BY id LIMIT %s",
        (*sources, after, limit),
    )
    return [_error(one) for one in found]


def _error(one: Sequence[Any]) -> RowError:
    number, source, *names, data, found, kind, state, times, place, by, time = one
    form = json.loads(data)
    form = form if isinstance(form, dict) else {"row": {str(n): value for n, value in enumerate(form or ())}}
    there = json.loads(found)
    there = {str(n): value for n, value in enumerate(there)} if isinstance(there, list) else there
    return RowError(
        TableName(*names[:2]),
        TableName(*names[2:]),
        tuple(form.get("key", ())),
        ErrorKind(int(kind)),
        form.get("row"),
        there,
        tuple(form.get("columns", ())),
        place,
        int(number),
        source,
        ErrorState(int(state)),
        int(times),
        str(time),
        by,
        tuple(form.get("key_columns", ())),
    )


def count_errors(connection: Any, meta: MetaTables, source: str) -> tuple[int, int, int]:
    """Return how many errors are new, ignored and resolved."""
    found = dict(
        rows(
            connection,
            f"SELECT status, COUNT(*) FROM {_errors(meta)} WHERE source = %s GROUP BY status",
            (source,),
        )
    )
    new, ignored, resolved = (int(found.get(int(state), 0)) for state in ErrorState)
    return new, ignored, resolved


def settle_errors(
    cursor: Any, meta: MetaTables, source: str, numbers: Sequence[int] | None, state: ErrorState, by: str
) -> int:
    """Set the state of errors, of all new ones with None. Return their number. In the caller's transaction."""
    open_too = " AND status <> %s" if numbers is not None else " AND status = 1"
    values: list[Any] = [int(state), by, source, *([int(state)] if numbers is not None else [])]
    cursor.execute(
        f"UPDATE {_errors(meta)} SET status = %s, settled_by = %s WHERE source = %s{open_too}{_among(numbers)}",
        values,
    )
    return int(cursor.rowcount)


def clear_errors(cursor: Any, meta: MetaTables, source: str, numbers: Sequence[int] | None) -> int:
    """Delete errors, all of the source's with None. Return their number. In the caller's transaction."""
    cursor.execute(f"DELETE FROM {_errors(meta)} WHERE source = %s{_among(numbers)}", (source,))
    return int(cursor.rowcount)


def _among(numbers: Sequence[int] | None) -> str:
    if numbers is None:
        return ""
    return f" AND id IN ({', '.join(str(int(number)) for number in numbers)})" if numbers else " AND FALSE"
