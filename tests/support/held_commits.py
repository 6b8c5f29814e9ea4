"""Commands whose COMMIT waits, so that others meet what they have locked."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any

from support.stopped_threads import Aside
from support.waiting import wait_until
from unshard.model.position import Position
from unshard.sync.checkpoint.store import CheckpointStore
from unshard.target.operators import revert
from unshard.testing.hold import stands_still
from unshard.testing.throwaway_server import ThrowawayServer


def opened_during_revert(
    server: ThrowawayServer, connection: Any, store: CheckpointStore, place: Position, opened: Callable[[], bool]
) -> bool:
    """The result of `opened`, which opens a batch, while a command takes back the operator of that position."""
    reverts = Aside(lambda aside: revert(HeldCommits(connection, aside), store.meta, "s1", place, "me"))
    assert reverts.begun.wait(60)
    outcome: list[bool] = []
    opens = Aside(lambda _: outcome.append(opened()))
    wait_until(lambda: stands_still(server), "the batch waits")
    reverts.goes_on.set()
    assert (reverts.join(), opens.join()) == (None, None)
    return outcome == [True]


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
