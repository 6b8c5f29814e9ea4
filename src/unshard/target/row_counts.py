"""The ledger in the target: what became of every change so far, by source and table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from unshard.target.meta import MetaTables

COUNTS = ("decoded", "filtered", "compacted", "inserted", "updated", "deleted", "missing")
"""The columns of a target table's row."""

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
    """Add what was left out of a batch. Runs in the same transaction.

    `changes` were decoded, their name is the target table's; of `events`, which were not, it is the source table's.
    """
    cursor.executemany(
        f"INSERT INTO {meta.left_out} (source, name, rule, {column}) VALUES (%s, %s, %s, %s)"
        f" ON DUPLICATE KEY UPDATE {column} = {column} + VALUES({column})",
        [(source, name, rule[:LONGEST_RULE], count) for (name, rule), count in sorted(counts.items())],
    )


# What the chunks of an open batch did not find, kept by the transactions that applied them.
#
# A later attempt skips those chunks and could not count it again. Rows are deleted when their batch is closed.


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
