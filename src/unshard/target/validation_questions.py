"""Questions about rows between the validators of a task.

A row of a merged table that a source lacks may be another source's. The validator that finds it puts a question to each
other source, and takes the row for wrong only where all have answered that they lack it.
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


class RowAnswer(IntEnum):
    """The answer to a row question.

    OPEN: not answered yet. LACKS: the source has no such row. ANSWERS: the source has the row, or does not know.
    """

    OPEN = 0
    LACKS = 1
    ANSWERS = 2


@dataclass(frozen=True, slots=True)
class RowQuestion:
    """A question of one source's validator to another: whether that source has the row of a key.

    `columns` are the key's columns; () in questions of earlier versions.
    """

    number: int
    asked: str
    target: TableName
    key: Key
    answer: RowAnswer = RowAnswer.OPEN
    columns: tuple[str, ...] = ()


def _questions(meta: MetaTables) -> str:
    return meta.named("validator_question")


def ask_others(cursor: Any, meta: MetaTables, source: str, others: Iterable[str], pending: PendingKey) -> None:
    """Ask each of the other sources, again where it was asked before. In the caller's transaction."""
    target, key = pending.target, json.dumps({"key": list(pending.key), "columns": list(pending.columns)})
    for other in others:
        cursor.execute(
            f"INSERT INTO {_questions(meta)} (source, asked, dst_schema_name, dst_table_name, row_pk, row_key)"
            " VALUES (%s, %s, %s, %s, %s, %s) ON DUPLICATE KEY UPDATE row_key = VALUES(row_key), answer = 0",
            (source, other, target.schema, target.table, row_pk(pending.key), key),
        )


def questions_of(connection: Any, meta: MetaTables, source: str) -> list[RowQuestion]:
    """Return the source's own questions with their answers."""
    return _load(connection, meta, "source = %s", (source,))


def questions_to(connection: Any, meta: MetaTables, source: str, limit: int) -> list[RowQuestion]:
    """Return open questions to the source, the oldest first."""
    return _load(connection, meta, "asked = %s AND answer = 0", (source,), f" LIMIT {int(limit)}")


def answer_questions(cursor: Any, meta: MetaTables, numbers: Sequence[int], answer: RowAnswer) -> None:
    """Answer questions. In the caller's transaction."""
    if numbers:
        some = ", ".join(str(number) for number in numbers)
        cursor.execute(f"UPDATE {_questions(meta)} SET answer = %s WHERE id IN ({some})", (int(answer),))


def drop_questions(cursor: Any, meta: MetaTables, source: str, target: TableName, key: Key) -> None:
    """Delete the source's questions about a key. In the caller's transaction."""
    cursor.execute(
        f"DELETE FROM {_questions(meta)}"
        " WHERE source = %s AND dst_schema_name = %s AND dst_table_name = %s AND row_pk = %s",
        (source, target.schema, target.table, row_pk(key)),
    )


def _load(
    connection: Any, meta: MetaTables, condition: str, values: Sequence[str], more: str = ""
) -> list[RowQuestion]:
    columns = "id, asked, dst_schema_name, dst_table_name, row_key, answer"
    found = rows(connection, f"SELECT {columns} FROM {_questions(meta)} WHERE {condition} ORDER BY id{more}", values)
    return [_question(one) for one in found]


def _question(row: Sequence[Any]) -> RowQuestion:
    number, asked, schema, table, key, answer = row
    form = json.loads(key)
    form = form if isinstance(form, dict) else {"key": form, "columns": ()}  # earlier versions have the values alone
    values, columns = tuple(form["key"]), tuple(form["columns"])
    return RowQuestion(int(number), asked, TableName(schema, table), values, RowAnswer(int(answer)), columns)
