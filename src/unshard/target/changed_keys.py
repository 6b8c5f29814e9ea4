"""Keys that batches have changed, and that continuous validation has not looked at yet.

`<task>_validator_changed_key` has them: `add_changed_keys` commits with the checkpoint of the batch, `drop_parts` with
the findings of the look.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from unshard.model.position import Location, Position
from unshard.mysql.connection import rows
from unshard.target.meta import MetaTables


def add_changed_keys(
    cursor: Any, meta: MetaTables, source: str, end: Location, parts: Iterable[tuple[str, int, bytes]]
) -> None:
    """Add parts of the keys that a batch up to `end` has changed: tables as JSON, the number of keys, the keys."""
    statement = (
        f"INSERT INTO {meta.named('validator_changed_key')}"
        " (source, binlog_name, binlog_pos, binlog_gtid, described, keys_count, size, data)"
        " VALUES (%s, %s, %s, %s, %s, %s, %s, %s)"
    )
    place = end.position.file, end.position.offset, end.gtid
    for described, count, data in parts:
        cursor.execute(statement, (source, *place, described, count, len(data), data))


@dataclass(frozen=True, slots=True)
class ChangedKeyPart:
    """A stored part of a batch's changed keys."""

    number: int
    end: Location
    described: str
    keys: int
    data: bytes


def oldest_parts(
    connection: Any, meta: MetaTables, source: str, *, most_parts: int, most_keys: int
) -> tuple[ChangedKeyPart, ...]:
    """Return the oldest parts in their order.

    At most `most_parts` of them, with at most `most_keys` keys together; but the first one in any case.
    """
    sizes = rows(
        connection,
        f"SELECT id, keys_count FROM {meta.named('validator_changed_key')} WHERE source = %s ORDER BY id LIMIT %s",
        (source, most_parts),
    )
    numbers: list[int] = []
    keys = 0
    for number, count in sizes:
        keys += int(count)
        if numbers and keys > most_keys:
            break
        numbers.append(int(number))
    if not numbers:
        return ()
    found = rows(
        connection,
        f"SELECT id, binlog_name, binlog_pos, binlog_gtid, described, keys_count, HEX(data) FROM"
        f" {meta.named('validator_changed_key')} WHERE source = %s AND id BETWEEN %s AND %s ORDER BY id",
        (source, numbers[0], numbers[-1]),
    )
    return tuple(
        ChangedKeyPart(
            int(number), Location(Position(file, int(offset)), gtid), described, int(count), bytes.fromhex(str(data))
        )
        for number, file, offset, gtid, described, count, data in found
    )


def drop_parts(cursor: Any, meta: MetaTables, numbers: Iterable[int]) -> None:
    """Delete the parts of these numbers, in the caller's transaction. `numbers` must not be empty."""
    listed = ", ".join(map(str, numbers))
    cursor.execute(f"DELETE FROM {meta.named('validator_changed_key')} WHERE id IN ({listed})")
