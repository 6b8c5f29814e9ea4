"""How a process that serves is told to stop."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event


@contextmanager
def stopped_by_signal(stop: Event) -> Iterator[None]:
    """SIGINT and SIGTERM set `stop`; a second SIGINT breaks off."""

    def ask(number: int, frame: object) -> None:
        del frame
        stop.set()
        signal.signal(number, signal.default_int_handler)

    kept = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)
