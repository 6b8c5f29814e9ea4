"""A command whose COMMIT waits, so that others meet what it has locked."""

from __future__ import annotations

from types import TracebackType
from typing import Any

from support.stopped_threads import Aside


class HeldCommits:
    """A connection that waits for `aside.goes_on` before each COMMIT, and sets `aside.begun` when it does."""

    def __init__(self, connection: Any, aside: Aside) -> None:
        self._connection, self._aside = connection, aside

    def cursor(self) -> _HeldCursor:
        """Return a cursor, to be used as a context."""
        return _HeldCursor(self._connection.cursor(), self._aside)


class _HeldCursor:
    def __init__(self, cursor: Any, aside: Aside) -> None:
        self._cursor, self._aside = cursor, aside

    def __enter__(self) -> _HeldCursor:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._cursor.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cursor, name)

    def execute(self, statement: str, values: Any = None) -> None:
        """Run the statement; a COMMIT waits."""
        if statement == "COMMIT":
            self._aside.begun.set()
            assert self._aside.goes_on.wait(60)
        self._cursor.execute(statement, values)
