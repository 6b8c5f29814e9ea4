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
