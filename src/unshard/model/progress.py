"""How far a unit of the full migration is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Progress:
    """Counts of what is durably done. `rows_total_estimate` comes from the server's statistics or the dump.

    `rows_before`: those of `rows_done` that earlier runs have done; all, before this one has begun.
    """

    tables_done: int = 0
    tables_total: int = 0
    rows_done: int = 0
    rows_total_estimate: int = 0
    bytes_done: int = 0
    bytes_total: int = 0
    rows_before: int = 0


# Amounts, for people.


def size_text(count: float) -> str:
    """Bytes, in powers of 1000."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000 or unit == "GB":
            return f"{count:,.0f} {unit}" if unit == "B" else f"{count:,.1f} {unit}"
        count /= 1000
    raise AssertionError("GB is the last unit")
