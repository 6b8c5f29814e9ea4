"""Work in a thread that a test stops in the middle, as a frozen process stands there."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event, Thread
from typing import Any

from unshard.mysql.connection import rows
from unshard.sync.checkpoint.store import CheckpointStore


class Aside:
    """Work in a thread; `join` gives what it has failed with. It is in the middle once `begun` is set."""

    def __init__(self, work: Callable[[Aside], Any]) -> None:
        self.begun, self.goes_on = Event(), Event()
        self.error: Exception | None = None
        self.thread = Thread(target=self._run, args=(work,), daemon=True)
        self.thread.start()

    def _run(self, work: Callable[[Aside], Any]) -> None:
        try:
            work(self)
        except Exception as error:  # noqa: BLE001 - for the test
            self.error = error

    def join(self) -> Exception | None:
        self.thread.join(60)
        assert not self.thread.is_alive()
        return self.error


def frozen_before(store: CheckpointStore, statement: str) -> Aside:
    def change(aside: Aside) -> None:
        def operation(connection: Any) -> None:
            aside.begun.set()
            aside.goes_on.wait(60)
            rows(connection, statement)

        store.change(operation)

    aside = Aside(change)
    assert aside.begun.wait(60)
    return aside
