"""Finds which of the rows that a chunk changes exist in the target, by their keys, and locks those that do."""

from __future__ import annotations

from typing import Any

from unshard.sync.changes.merge import Keys, count_query, lock_query


def first_missing(connection: Any, keys: Keys) -> int | None:
    """Return the number of the first key that no row has, within the connection's transaction; None: all have one.

    Halves the list while a half finds fewer rows than it has keys, so it asks once for each doubling of the list's
    length.
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


def lock_rows(connection: Any, keys: Keys) -> list[tuple[int, int, bool]]:
    """Lock the rows of the keys, which are all different, until the connection's transaction ends.

    Returns runs of keys in order, as (first, last, whether their rows exist): the rows of a run exist all, or none
    does. Halves the list where only some exist.
    """
    runs: list[tuple[int, int, bool]] = []
    waiting = [(0, len(keys))]
    while waiting:
        first, last = waiting.pop()
        found = _count(connection, lock_query(keys, first, last))
        if found in (0, last - first):
            runs.append((first, last, found > 0))
        else:
            middle = (first + last) // 2
            waiting += [(middle, last), (first, middle)]
    return runs


def _found(connection: Any, keys: Keys, first: int, last: int) -> int:
    return _count(connection, count_query(keys, first, last))


def _count(connection: Any, query: bytes) -> int:
    connection.query(query)
    ((count,),) = connection.store_result().fetch_row(maxrows=0)
    return int(count)
