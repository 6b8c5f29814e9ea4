"""How many rows a load has in all, by what is loaded of it."""

from __future__ import annotations

from unshard.load.checkpoint import FileState
from unshard.load.seen_states import rows_in_all


def state(size: int, done_rows: int, *, finished: bool) -> FileState:
    return FileState(1, 1, 0, 0, done_rows, size, finished)


STATES = {
    "small": state(1_400, 500, finished=True),
    "first": state(24_000, 10_000, finished=False),
    "second": state(30_900, 0, finished=False),
}


def test_the_rows_that_the_dump_tells() -> None:
    assert rows_in_all([500, 20_027], STATES) == 20_527
    assert rows_in_all([500], {}) == 500


def test_by_the_files_that_are_loaded_where_the_dump_does_not_tell() -> None:
    """Rows of a file that is under way are not set against bytes of others."""
    assert rows_in_all([500, None], STATES) == 500 * 56_300 // 1_400
    assert rows_in_all([None], {"first": state(24_000, 10_000, finished=False)}) == 0
    assert rows_in_all([], {}) == 0
