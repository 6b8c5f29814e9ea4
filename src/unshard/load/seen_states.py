"""The progress of the load as the status shows it: read from the load checkpoint, and cached for all callers."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from threading import Event, Lock, Thread

from unshard.errors import UnshardError
from unshard.load.checkpoint import FileState, LoadTables
from unshard.load.contents import SourceTable
from unshard.model.progress import CopyStage, TableProgress
from unshard.model.table import TableName
from unshard.mysql.connection import LOOK_SECONDS, Endpoint, session

SEEN_SECONDS = 1.0
"""So old a look may be that serves another caller."""
OWN_PACE_SECONDS = 5.0
"""How often a load looks, whether or not somebody asks."""
_REST = 20.0
"""After a look that took long, the time until the next one is so many times as long."""


@dataclass(slots=True)
class SeenStates:
    """The last known states of all files of a load. Any thread may ask.

    Threads that ask at the same time cause one query on the target.
    """

    tables: LoadTables
    endpoint: Endpoint = field(repr=False)
    _states: Mapping[str, FileState] = field(default_factory=dict)
    _until: float = 0.0
    _lock: Lock = field(default_factory=Lock)

    @property
    def last(self) -> Mapping[str, FileState]:
        """The states of the last look; none before the first."""
        return self._states

    def look(self) -> Mapping[str, FileState]:
        """Return the states; none of them where the load has not begun. Raises TargetError, soon."""
        with self._lock:
            if time.monotonic() >= self._until:
                with session(self.endpoint, "target", patience_seconds=LOOK_SECONDS) as connection:
                    self._states = self.tables.states(connection) if self.tables.exist(connection) else {}
                self._until = time.monotonic() + SEEN_SECONDS
            return self._states

    @contextmanager
    def looking(self) -> Iterator[None]:
        """Look at a pace of its own within the context: so no more is asked of the target where many want to know."""
        ended = Event()

        def look() -> None:
            rest = 0.0
            while not ended.wait(rest):
                begun = time.monotonic()
                with suppress(UnshardError):  # the load meets the same trouble, and decides
                    self.look()
                rest = max(OWN_PACE_SECONDS, _REST * (time.monotonic() - begun))

        thread = Thread(target=look, name=f"progress {self.tables.source}", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def forget(self) -> None:
        """Drop the states that are kept: the next `look` reads them from the target."""
        with self._lock:
            self._until = 0.0


def rows_of(table: SourceTable) -> int | None:
    """Return the row count of a table in the dump; None where the dump does not have it."""
    found = [file.rows for file in table.files]
    known = [rows for rows in found if rows is not None]
    return sum(known) if len(known) == len(found) else None


def rows_in_all(tables: Iterable[int | None], states: Mapping[str, FileState]) -> int:
    """Return the row count of the dump, given each table's count; 0 while it can't be estimated.

    Where the dump does not have the count of every table, it is estimated from the rows and bytes of the loaded files.
    A file under way does not count: its bytes are not recorded before its end.
    """
    told = list(tables)
    known = [rows for rows in told if rows is not None]
    if told and len(known) == len(told):
        return sum(known)
    done = [state for state in states.values() if state.finished]
    size = sum(state.size for state in done)
    rows = sum(state.done_rows for state in done)
    return rows * sum(state.size for state in states.values()) // size if size else 0


def table_progress(
    name: TableName, files: Sequence[str], states: Mapping[str, FileState], rows: int | None
) -> TableProgress:
    """Return one table's part of the load. `rows` is its row count in the dump."""
    here = [states[file] for file in files if file in states]
    done, size = sum(one.done_rows for one in here), sum(one.size for one in here)
    if len(here) == len(files) and all(one.finished for one in here):
        stage = CopyStage.LOADED
    elif any(one.finished or one.piece or one.step for one in here):
        stage = CopyStage.LOADING
    else:
        stage = CopyStage.DUMPED
    return TableProgress(name, stage, done, rows, size)
