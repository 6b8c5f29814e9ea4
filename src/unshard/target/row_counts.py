"""The ledger in the target: the number of changes by source, table and outcome.

Changes of an open batch that found no row are recorded by the transactions that applied their chunks. A later attempt
skips those chunks and could not count them again. The records are deleted when their batch is closed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from unshard.target.meta import COUNTS, MetaTables

NameAndRule = tuple[str, str]
LONGEST_RULE = 255


def add_to_ledger(cursor: Any, meta: MetaTables, source: str, tables: Mapping[str, Mapping[str, int]]) -> None:
    """Add the counts of a batch, by target table. Runs in the transaction that moves the checkpoint over it."""
    sums = ", ".join(f"{name} = {name} + VALUES({name})" for name in COUNTS)
    cursor.executemany(
        f"INSERT INTO {meta.ledger} (source, target, {', '.join(COUNTS)})"
        f" VALUES ({', '.join(['%s'] * (2 + len(COUNTS)))}) ON DUPLICATE KEY UPDATE {sums}",
        [(source, target, *(counts[name] for name in COUNTS)) for target, counts in sorted(tables.items())],
    )


def add_left_out(
    cursor: Any, meta: MetaTables, source: str, column: Literal["changes", "events"], counts: Mapping[NameAndRule, int]
) -> None:
    """Add the changes or row events of a batch that a rule left out. Runs in the same transaction.

    `changes` were decoded, and their name is the target table's. `events` were not; their name is the source table's,
    or stands for several (`sync.planning.skipped_events`).
    """
    cursor.executemany(
        f"INSERT INTO {meta.left_out} (source, name, rule, {column}) VALUES (%s, %s, %s, %s)"
        f" ON DUPLICATE KEY UPDATE {column} = {column} + VALUES({column})",
        [(source, name, rule[:LONGEST_RULE], count) for (name, rule), count in sorted(counts.items())],
    )


def tables_with_events(connection: Any, meta: MetaTables, source: str, most: int) -> list[str]:
    """Return the names, at most so many, under which row events of a source are recorded as left out."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT DISTINCT name FROM {meta.left_out} WHERE source = %s AND events > 0 ORDER BY name LIMIT %s",
            (source, most),
        )
        return [name for (name,) in cursor.fetchall()]


Missed = Mapping[tuple[int, int], Mapping[str, tuple[int, str]]]
"""By (chunk, first change of its piece) and target table: how many changes found no row, the key of one as SQL text."""


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
    """Record the changes of a chunk, or of its piece from change `step` on, that found no row.

    Runs in the transaction that applies the chunk.
    """
    cursor.executemany(
        f"INSERT INTO {meta.missing} (source, part, batch_id, chunk, step, target, missing, example)"
        " VALUES (%s, %s, %s, %s, %s, %s, %s, %s)",
        [(source, part, batch_id, chunk, step, target, *found) for target, found in sorted(missed.items())],
    )


def missing_of(connection: Any, meta: MetaTables, source: str, part: int, batch_id: int) -> Missed:
    """Return the changes of a partition's applied chunks that found no row."""
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
    """Delete the records of a closed batch; the caller's transaction adds their sums to the ledger."""
    cursor.execute(f"DELETE FROM {meta.missing} WHERE source = %s", (source,))
