"""Tables of numbers in words that every source understands: MariaDB's `seq_1_to_9` is a table of MariaDB alone."""

from __future__ import annotations


def numbers(first: int, last: int) -> str:
    """Return a table for a FROM clause; its column `seq` has the numbers from `first` to `last`."""
    digits = "(SELECT 0 AS d " + " ".join(f"UNION ALL SELECT {digit}" for digit in range(1, 10)) + ")"
    places = range(len(str(last - first)))
    value = " + ".join([str(first), *(f"{10**place} * d{place}.d" for place in places)])
    joined = ", ".join(f"{digits} AS d{place}" for place in places)
    return f"(SELECT {value} AS seq FROM {joined} WHERE {value} <= {last}) AS numbers"
