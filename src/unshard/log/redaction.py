"""The removal of secrets from texts and from lines of the log.

Credentials are always removed, values of rows and statements with `redact-info-log`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from structlog.typing import EventDict, WrappedLogger

from unshard.credentials import without_credentials

NEVER_VALUES = frozenset({"timestamp", "level", "logger", "event", "task", "source", "worker", "batch", "table"})
NEVER_VALUES |= {"binlog", "position", "code", "kind", "unit", "to", "before", "now", "lock", "sampled", "left_out"}
"""Fields that name things and never contain a value of a row."""

_VALUE = re.compile(
    r"`(?:[^`]|``)*`|(?<!\w)(?:[xXbBnN]|_\w+ ?)?(?:'(?:[^'\\]|\\.|'')*(?:'|\Z)|\"(?:[^\"\\]|\\.|\"\")*(?:\"|\Z))"
    r"|(?<![\w.:$@/-])-?(?:0x[0-9a-fA-F]+|\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)(?![\w:-]|\.\d)",
    re.DOTALL,
)
"""A literal, as in SQL and in messages of servers, also one that was cut off before its end.

A name in backticks is matched too, so that it can be left unchanged.
"""


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


def _each(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {name: inner if name in NEVER_VALUES else _each(inner, change) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_each(inner, change) for inner in value]
    return value
