"""Which row it is that an UPDATE or DELETE does not find."""

from __future__ import annotations

from typing import Any

from unshard.sync.steps.merge import Keys

EXAMPLE_LENGTH = 200


def first_missing(connection: Any, keys: Keys) -> int | None:
    """The number of the first of the keys that no row has, within the connection's transaction; None: all are there.

    Halves the list as long as a half finds fewer rows than it has keys, so it asks once for each doubling.
    """
    first, last = 0, len(keys)
    if _found(connection, keys, first, last) >= last - first:
        return None
    while last - first > 1:
        middle = (first + last) // 2
        if _found(connection, keys, first, middle) < middle - first:
            last = middle
        else:
            first = middle
    return first


def example_of(keys: Keys, number: int) -> str:
    """The condition that finds the row of that number, for people: cut, and with what is no text escaped."""
    text = keys.where(number, number + 1).decode("utf-8", "backslashreplace")
    return text if len(text) <= EXAMPLE_LENGTH else text[: EXAMPLE_LENGTH - 1] + "…"


def _found(connection: Any, keys: Keys, first: int, last: int) -> int:
    table = keys.target.name.quoted.encode()
    connection.query(b"SELECT COUNT(*) FROM " + table + b" WHERE " + keys.where(first, last))
    ((count,),) = connection.store_result().fetch_row(maxrows=0)
    return int(count)
