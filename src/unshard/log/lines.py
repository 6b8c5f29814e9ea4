"""The lines of the log: two formats, without secrets; the newest lines stay in memory.

A line is a JSON object, or in TiDB's text format `[time] [LEVEL] [part] ["message"] [key=value]…`. Credentials are
always removed, values of rows and statements with `redact-info-log`. Lines that would recur endlessly while something
fails are limited to ten a minute of each. The newest lines are for readers outside of this process.
"""

from __future__ import annotations

import json
import logging
import re
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from secrets import token_hex
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
    """Drops a line with `sampled=True` if ten of its kind (message, task, source) came within the minute.

    The next line that is written has the number of dropped lines in `left_out`.
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


NEVER_VALUES = frozenset({"timestamp", "level", "logger", "event", "task", "source", "worker", "batch", "table"})
NEVER_VALUES |= {"binlog", "position", "code", "kind", "unit", "to", "before", "now", "lock", "sampled", "left_out"}
"""Fields that name things and never contain a value of a row."""

_QUOTED = r"'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.|\"\")*\""
_VALUE = re.compile(
    r"`(?:[^`]|``)*`|(?<!\w)(?:[xXbBnN]|_\w+ ?)?(?:'(?:[^'\\]|\\.|'')*(?:'|\Z)|\"(?:[^\"\\]|\\.|\"\")*(?:\"|\Z))"
    r"|(?<![\w.:$@/-])-?(?:0x[0-9a-fA-F]+|\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)(?![\w:-]|\.\d)",
    re.DOTALL,
)
"""A literal, as in SQL and in messages of servers, also one that was cut off before its end.

A name in backticks is matched too, so that it can be left unchanged.
"""

_CREDENTIALS = (
    re.compile(
        rf"(\bidentified\s+(?:(?:with|via)\s+\S+\s+)?(?:by|as|using)\s+(?:password\s*\(?\s*)?)(?:{_QUOTED})", re.I
    ),
    re.compile(rf"(\bpassword\s*\(\s*)(?:{_QUOTED})", re.I),
    re.compile(rf"(\b(?:password|passwd|secret|token)\b[\"']?\s*[=:]\s*)(?:{_QUOTED}|[^\s,;)}}\"']+)", re.I),
    re.compile(r"(\bauthorization[\"']?\s*[=:]\s*(?:[\"']?bearer\s+)?)[^\s,;)}\"']+", re.I),
    re.compile(r"(\w://[^\s:/@]*:)[^\s/@]+(?=@)"),
)


def hide_credentials(log: WrappedLogger, method: str, event: EventDict) -> EventDict:
    """Replace passwords and tokens by `******`, wherever a server or a library put them into a text."""
    del log, method
    return {name: _each(value, without_credentials) for name, value in event.items()}


def redact(log: WrappedLogger, method: str, event: EventDict) -> EventDict:
    """Replace values by `?`, as TiDB's own tools do; names, positions and messages stay."""
    del log, method
    return {name: value if name in NEVER_VALUES else _each(value, redacted) for name, value in event.items()}


def redacted(text: str) -> str:
    """Return a text with each literal replaced by `?`."""
    return _VALUE.sub(lambda found: found[0] if found[0].startswith("`") else "?", text)


def without_credentials(text: str) -> str:
    """Return a text with each password and token in it, in a URL too, replaced by `******`."""
    for pattern in _CREDENTIALS:
        text = pattern.sub(r"\1******", text)
    return text


def _each(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {name: inner if name in NEVER_VALUES else _each(inner, change) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_each(inner, change) for inner in value]
    return value


LINES = 2000
LONGEST_TEXT = 2000
"""Characters of a value that are kept."""


@dataclass(slots=True)
class LogRing:
    """At most `LINES` lines as they were written, after credentials are redacted. Any thread may use it.

    `life` names the process; lines count from 1.
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
    """Hands each line to its formatter, which keeps it: a handler of a file formats a line more than once."""

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
