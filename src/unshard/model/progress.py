"""The progress of the dump and load units, and byte counts as text."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from unshard.model.table import TableName


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a dump or a load, as counts of the work that is durably done.

    `rows_total_estimate` comes from the server's statistics or from the dump. `rows_before` is the part of `rows_done`
    that earlier runs have done; before this run has begun, it is all of it.
    """

    tables_done: int = 0
    tables_total: int = 0
    rows_done: int = 0
    rows_total_estimate: int = 0
    bytes_done: int = 0
    bytes_total: int = 0
    rows_before: int = 0


class CopyStage(StrEnum):
    """The stage of one table's copy. `DUMPED` waits for the load, where there is one."""

    WAITING = "waiting"
    DUMPING = "dumping"
    DUMPED = "dumped"
    LOADING = "loading"
    LOADED = "loaded"


@dataclass(frozen=True, slots=True)
class TableProgress:
    """The progress of copying one source table.

    Args:
        rows: those in finished files of its dump, or those that its load has committed.
        rows_about: the server's estimate, or the number in the dump; None while it is unknown.
        size: the bytes of its files.
    """

    table: TableName
    stage: CopyStage
    rows: int = 0
    rows_about: int | None = None
    size: int = 0


def size_text(count: float) -> str:
    """Return a number of bytes as text, in powers of 1000."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000 or unit == "GB":
            return f"{count:,.0f} {unit}" if unit == "B" else f"{count:,.1f} {unit}"
        count /= 1000
    raise AssertionError("GB is the last unit")
