"""Keys that differed when continuous validation last compared them, and that are not decided yet."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from unshard.model.table import TableName
from unshard.mysql.connection import rows
from unshard.target.meta import MetaTables
from unshard.target.validation import Key

LONGEST_NAME = 64


@dataclass(frozen=True, slots=True)
class PendingKey:
    """A key whose rows differed when they were last compared.

    `kind`: 0 the target lacks the row, 1 both sides have one, 2 the source lacks it. `origin` is the source table whose
    change led to the comparison; `since` is the time of that, unix seconds. `number` 0: not stored. `columns` are the
    key's columns; () in records of earlier versions.
    """

    origin: TableName
    target: TableName
    key: Key
    kind: int
    since: float
    number: int = 0
    columns: tuple[str, ...] = ()

    def is_of(self, key: Sequence[str]) -> bool:
        """Return whether the values are those of a key with these columns."""
        if self.columns:
            return [name.lower() for name in self.columns] == [name.lower() for name in key]
        return len(self.key) == len(key)


def row_pk(key: Key) -> str:
    """Return DM's name of a row: the values of its key with tabs between, or the SHA-256 of a long name."""
    values = [value[1:-1] if value[:1] == "'" else value for value in key]
    text = "\t".join(values)
    if any("\t" in value for value in values):
        text = repr(values)
    whole = len(text) <= LONGEST_NAME and values == text.split("\t")
    return text if whole else hashlib.sha256(text.encode()).hexdigest()


def add_pending(cursor: Any, meta: MetaTables, source: str, found: Iterable[PendingKey]) -> None:
    """Add keys that differed. In the caller's transaction."""
    values = [
        (source, one.origin.schema, one.origin.table, row_pk(one.key), _pending_data(one), one.kind) for one in found
    ]
    statement = (
        f"INSERT INTO {meta.named('validator_pending_change')}"
        " (source, schema_name, table_name, row_pk, data, revision) VALUES (%s, %s, %s, %s, %s, %s)"
    )
    if values:
        cursor.executemany(statement, values)


def _pending_data(one: PendingKey) -> str:
    target = [one.target.schema, one.target.table]
    form = {"key": list(one.key), "tp": one.kind, "target": target, "since": one.since}
    return json.dumps({**form, "columns": list(one.columns)})


def load_pending(connection: Any, meta: MetaTables, source: str, after: int, limit: int) -> list[PendingKey]:
    """Return the oldest pending keys with a number greater than `after`."""
    found = rows(
        connection,
        f"SELECT id, schema_name, table_name, data FROM {meta.named('validator_pending_change')}"
        " WHERE source = %s AND id > %s ORDER BY id LIMIT %s",
        (source, after, limit),
    )
    pending = []
    for number, schema, table, data in found:
        form = json.loads(data)
        target, origin = TableName(*form["target"]), TableName(schema, table)
        columns = tuple(form.get("columns", ()))
        pending.append(PendingKey(origin, target, tuple(form["key"]), form["tp"], form["since"], int(number), columns))
    return pending


def drop_pending(cursor: Any, meta: MetaTables, source: str, settled: Iterable[PendingKey]) -> None:
    """Delete settled keys. In the caller's transaction."""
    statement = (
        f"DELETE FROM {meta.named('validator_pending_change')}"
        " WHERE source = %s AND schema_name = %s AND table_name = %s AND row_pk = %s"
    )
    for one in settled:
        cursor.execute(statement, (source, one.origin.schema, one.origin.table, row_pk(one.key)))
