"""The newest lines of the log, in memory, for readers outside of this process."""

from __future__ import annotations

import logging
from collections import deque
from dataclasses import dataclass, field
from secrets import token_hex
from threading import Lock

from structlog.typing import EventDict, WrappedLogger

LINES = 2000
LONGEST_TEXT = 2000
"""Characters of a value that are kept."""


@dataclass(slots=True)
class LogRing:
    """A buffer of the newest `LINES` log lines as they were written, after credentials are redacted.

    `life` identifies the process; lines count from 1. Any thread may use it.
    """

    life: str = field(default_factory=lambda: token_hex(8))
    _lines: deque[tuple[int, dict[str, str]]] = field(default_factory=lambda: deque(maxlen=LINES))
    _newest: int = 0
    _lock: Lock = field(default_factory=Lock)

    def keep(self, log: WrappedLogger, method: str, event: EventDict) -> str:
        """Store the line; return "", as the last processor of a formatter."""
        del log, method
        line = {str(name): _bounded(value) for name, value in event.items()}
        with self._lock:
            self._newest += 1
            self._lines.append((self._newest, line))
        return ""

    def since(self, life: str, number: int, most: int) -> list[tuple[int, dict[str, str]]]:
        """Return the newest lines with their numbers, at most `most`, after line `number` of the process `life`.

        All lines count where `life` names another process.
        """
        with self._lock:
            found = [(at, line) for at, line in self._lines if life != self.life or at > number]
        return found[-most:]


class RingHandler(logging.Handler):
    """A log handler that stores each line through its formatter. A handler of a file formats a line more than once."""

    def emit(self, record: logging.LogRecord) -> None:
        """Store the record in the ring. A record that can't be stored raises nothing."""
        try:
            self.format(record)
        except Exception:  # noqa: BLE001 - as every handler: a line that can't be kept stops nobody
            self.handleError(record)


def _bounded(value: object) -> str:
    text = value if isinstance(value, str) else str(value)
    return text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}…"


RING = LogRing()
"""That of this process."""
