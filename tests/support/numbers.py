"""Tables of numbers in words that every source understands: MariaDB's `seq_1_to_9` is a table of MariaDB alone."""

from __future__ import annotations


def numbers(first: int, last: int) -> str:
    """Return a table for a FROM clause; its column `seq` has the numbers from `first` to `last`."""
    rest = " ".join(f"UNION ALL SELECT {number}" for number in range(first + 1, last + 1))
    return f"(SELECT {first} AS seq {rest}) AS numbers"
