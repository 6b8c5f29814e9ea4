"""The user's settings of a dump."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from unshard.dump.plan import Consistency
from unshard.dump.write import FileLimits, Format

ROWS_PER_FILE = 100_000
FIRST_ROWS = 12_500
"""The number of rows of a table's first files: each file is a transaction or two of the load."""


@dataclass(frozen=True, slots=True)
class DumpSettings:
    """The user's settings (`mydumpers.<name>`). Sizes are in bytes.

    Args:
        threads: the most tasks that dump at a time.
        rows: rows of a file; 0 means ROWS_PER_FILE, and fewer in the first files.
        chunk_filesize: the size at which a file is full.
        statement_size: the size of an INSERT in an SQL file.
        where: a condition on the rows of all tables; "" for none.
        attempt: as in `SubtaskConfig`.
        follows: the binlog is followed after the copy; if not, the copy must be of one moment by itself.
    """

    directory: Path
    threads: int = 4
    rows: int = 0
    chunk_filesize: int = 64 << 20
    statement_size: int = 1_000_000
    where: str = ""
    format: Format = "parquet"
    consistency: Consistency = "auto"
    attempt: str = ""
    follows: bool = True

    @property
    def limits(self) -> FileLimits:
        """Limits of the data files; where `rows` is not set, the first files of a table are smaller."""
        limits = FileLimits(self.format, self.rows or ROWS_PER_FILE, self.chunk_filesize, self.statement_size)
        return limits if self.rows else replace(limits, first_rows=FIRST_ROWS)

    def fixed(self) -> dict[str, Any]:
        """Return the settings that a dump keeps from its start to its end."""
        return {
            "rows": self.rows,
            "chunk_filesize": self.chunk_filesize,
            "statement_size": self.statement_size,
            "where": self.where,
            "format": self.format,
            "consistency": self.consistency,
        }
