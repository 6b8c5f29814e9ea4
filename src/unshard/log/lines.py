"""The two forms of a line: one JSON object, or TiDB's text form `[time] [LEVEL] [part] ["message"] [key=value]…`."""

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
    """The same fields, those that say when and whose first; the logger's name without `unshard.`."""
    del log, method
    event["logger"] = str(event.get("logger", "")).removeprefix("unshard.")
    return {**{name: event[name] for name in FIRST if name in event}, **event}


def as_json(log: WrappedLogger, method: str, event: EventDict) -> str:
    del log, method
    return json.dumps(event, ensure_ascii=False, default=str)


def as_text(log: WrappedLogger, method: str, event: EventDict) -> str:
    """TiDB's unified log format, which its tools read. Line breaks in values are escaped."""
    del log, method
    when = datetime.fromisoformat(event.pop("timestamp"))
    stamp = f"{when:%Y/%m/%d %H:%M:%S}.{when.microsecond // 1000:03d} +00:00"
    level = {"WARNING": "WARN", "CRITICAL": "FATAL"}.get(name := event.pop("level").upper(), name)
    head = f"[{stamp}] [{level}] [{event.pop('logger')}] [{json.dumps(str(event.pop('event')), ensure_ascii=False)}]"
    return " ".join([head, *(f"[{_word(name)}={_word(value)}]" for name, value in event.items())])


def _word(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return text if _PLAIN.match(text) else json.dumps(text, ensure_ascii=False)


# Lines that would come without end while something fails: ten a minute of each are enough.


MOST_A_MINUTE = 10
_MINUTE = 60.0


@dataclass(slots=True)
class Sampler:
    """Drops a line with `sampled=True` where ten of its kind (message, task, source) came within the minute.

    The next one that is written tells in `left_out` how many were dropped.
    """

    clock: Callable[[], float] = time.monotonic
    _seen: dict[tuple[object, ...], tuple[float, int]] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def __call__(self, log: WrappedLogger, method: str, event: EventDict) -> EventDict:
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
