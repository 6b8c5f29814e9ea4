"""The lines of the log, in two formats.

A line is a JSON object, or in TiDB's text format `[time] [LEVEL] [part] ["message"] [key=value]…`. Lines that would
recur endlessly while something fails are limited to ten a minute of each.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from threading import Lock
from typing import Any

import structlog
from structlog.typing import EventDict, WrappedLogger

FIRST = ("timestamp", "level", "logger", "event", "task", "source", "worker", "batch")
_PLAIN = re.compile(r"[^\s\"=\[\]]+\Z")


def first_fields(log: WrappedLogger, method: str, event: EventDict) -> EventDict:
    """Return the same fields, with time, message, task and source first, and the logger's name without `unshard.`."""
    del log, method
    event["logger"] = str(event.get("logger", "")).removeprefix("unshard.")
    return {**{name: event[name] for name in FIRST if name in event}, **event}


def as_json(log: WrappedLogger, method: str, event: EventDict) -> str:
    """Return the line as a JSON object: the last processor of a formatter."""
    del log, method
    return json.dumps(event, ensure_ascii=False, default=str)


def as_text(log: WrappedLogger, method: str, event: EventDict) -> str:
    """Return the line in TiDB's unified log format, which TiDB's tools read. Line breaks in values are escaped."""
    del log, method
    when = datetime.fromisoformat(event.pop("timestamp"))
    stamp = f"{when:%Y/%m/%d %H:%M:%S}.{when.microsecond // 1000:03d} +00:00"
    level = {"WARNING": "WARN", "CRITICAL": "FATAL"}.get(name := event.pop("level").upper(), name)
    head = f"[{stamp}] [{level}] [{event.pop('logger')}] [{json.dumps(str(event.pop('event')), ensure_ascii=False)}]"
    return " ".join([head, *(f"[{_word(name)}={_word(value)}]" for name, value in event.items())])


def _word(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return text if _PLAIN.match(text) else json.dumps(text, ensure_ascii=False)


MOST_A_MINUTE = 10
_MINUTE = 60.0


@dataclass(slots=True)
class Sampler:
    """A log processor that drops a line with `sampled=True` if ten of its kind came within the minute.

    Lines of one kind have the same message, task and source. The next line of the kind that is written has the number
    of dropped lines in `left_out`.
    """

    clock: Callable[[], float] = time.monotonic
    _seen: dict[tuple[object, ...], tuple[float, int]] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def __call__(self, log: WrappedLogger, method: str, event: EventDict) -> EventDict:
        """Return the line; raise DropEvent for a `sampled` one beyond `MOST_A_MINUTE` of its kind, task and source.

        The first line of the next minute has the number of the dropped ones in `left_out`.
        """
        del log, method
        if not event.get("sampled"):
            return event
        kind, now = (event["event"], event.get("task"), event.get("source")), self.clock()
        with self._lock:
            begun, count = self._seen.get(kind, (now, 0))
            left_out = 0
            if now - begun >= _MINUTE:
                begun, left_out, count = now, max(0, count - MOST_A_MINUTE), 0
            self._seen[kind] = (begun, count + 1)
        if count >= MOST_A_MINUTE:
            raise structlog.DropEvent
        return {**event, "left_out": left_out} if left_out else event
