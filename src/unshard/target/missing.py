"""What the chunks of an open batch did not find, kept by the transactions that applied them.

A later attempt skips those chunks and could not count it again. Rows are deleted when their batch is closed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from unshard.target.meta import MetaTables

Missed = Mapping[tuple[int, int], Mapping[str, tuple[int, str]]]
"""By chunk, the first change of its piece, and target table: how many changes found no row, and the key of one of them
as SQL text."""


def note_missing(
    cursor: Any,
    meta: MetaTables,
    source: str,
    part: int,
    batch_id: int,
    chunk: int,
    step: int,
    missed: Mapping[str, tuple[int, str]],
) -> None:
    """Keep what a chunk, or its piece from change `step` on, did not find; in the transaction that applies it."""
    cursor.executemany(
        f"INSERT INTO {meta.missing} (source, part, batch_id, chunk, step, target, missing, example)"
        " VALUES (%s, %s, %s, %s, %s, %s, %s, %s)",
        [(source, part, batch_id, chunk, step, target, *found) for target, found in sorted(missed.items())],
    )


def missing_of(connection: Any, meta: MetaTables, source: str, part: int, batch_id: int) -> Missed:
    """What the applied chunks of a partition did not find."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT chunk, step, target, missing, example FROM {meta.missing}"
            " WHERE source = %s AND part = %s AND batch_id = %s",
            (source, part, batch_id),
        )
        found: dict[tuple[int, int], dict[str, tuple[int, str]]] = {}
        for chunk, step, target, missing, example in cursor.fetchall():
            found.setdefault((int(chunk), int(step)), {})[target] = int(missing), example
    return found


def forget_missing(cursor: Any, meta: MetaTables, source: str) -> None:
    """The batch is closed; the caller's transaction adds its sums to the ledger."""
    cursor.execute(f"DELETE FROM {meta.missing} WHERE source = %s", (source,))
