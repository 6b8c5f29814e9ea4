"""When a data file of a dump is full."""

from __future__ import annotations

from pathlib import Path

from unshard.dump.settings import FIRST_ROWS, ROWS_PER_FILE, DumpSettings
from unshard.dump.write import ALIKE, FileLimits


def test_the_first_files_of_a_table_are_smaller() -> None:
    limits = FileLimits("parquet", 100, 1 << 20, 1000, first_rows=30)
    found = [limits.rows_of(number) for number in (0, ALIKE - 1, ALIKE, 2 * ALIKE, 1000 * ALIKE)]
    assert found == [30, 30, 60, 100, 100]


def test_a_number_of_rows_that_a_user_gives_is_that_of_every_file() -> None:
    assert DumpSettings(Path(), rows=700).limits.rows_of(0) == 700
    assert DumpSettings(Path()).limits.rows_of(0) == FIRST_ROWS
    assert DumpSettings(Path()).limits.rows_of(10_000) == ROWS_PER_FILE
