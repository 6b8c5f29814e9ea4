"""The record of values that were clamped to the range of the target, by the keys of their rows.

`<task>_clamped_value` has a row for each: the source and its table, the target's table, the key as a condition, the
column, the value in the source, and the place: a file of the dump, or the end of a batch in the binlog. It is written
in the transaction that writes the rows of a file, or that closes the batch. A later value of the same row and column
takes the place of an earlier one; one that is no longer in the row stays. All rows of a table without a key share one
record.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from unshard.target.meta import CLAMPED_VALUE, MetaTables
from unshard.transform.latest_time import ClampedValue

_LONGEST_KEY = 350


def create(connection: Any, meta: MetaTables) -> None:
    """Create the table. Idempotent."""
    with connection.cursor() as cursor:
        cursor.execute(CLAMPED_VALUE.format(name=meta.clamped_value))


def note_clamped(cursor: Any, meta: MetaTables, source: str, values: Iterable[ClampedValue], place: str) -> None:
    """Record the values, in the caller's transaction. May run again with the same values."""
    cursor.executemany(
        f"INSERT INTO {meta.clamped_value} (source, source_table, target, row_key, name, value, place)"
        " VALUES (%s, %s, %s, %s, %s, %s, %s)"
        " ON DUPLICATE KEY UPDATE target = VALUES(target), value = VALUES(value), place = VALUES(place)",
        [
            (source, str(one.table), str(one.target), _shown(one.key), one.column, one.value, place[-160:])
            for one in values
        ],
    )


def _shown(key: str) -> str:
    return key if len(key) <= _LONGEST_KEY else key[: _LONGEST_KEY - 1] + "…"
