"""The log of Unshard: one line for each event, with fields that name its task, source and other circumstances.

Fields come from three places: the logger (`logger("sync", table=…)`), the thread (`fields(task=…, source=…, batch=…)`,
which applies to everything called within), and the line itself. A line with `sampled=True` is written at most ten times
a minute. Nothing is written before `configure` is called, since Spark's tasks call the same functions.

| module | contents |
|---|---|
| `lines` | the two formats of a line; lines that recur |
| `redaction` | the removal of secrets |
| `ring` | the newest lines, in memory |
| `rotation` | the rotation of log files by their size |
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import structlog

from unshard.errors import ConfigError, Where
from unshard.log.lines import Sampler, as_json, as_text, first_fields
from unshard.log.redaction import hide_credentials, redact
from unshard.log.ring import RING, RingHandler
from unshard.log.rotation import RotatingFile

Form = Literal["json", "text"]

LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warn": logging.WARNING, "error": logging.ERROR}
"""DM's names of levels. `fatal` and `warning` are accepted too, as in DM."""

_ALIASES = {"warning": "warn", "fatal": "error", "dpanic": "error", "panic": "error"}
_OURS = logging.getLogger("unshard")
_SERVERS = ("uvicorn", "uvicorn.error")
"""Loggers of libraries whose lines go to our log. uvicorn's access log stays off."""

_OURS.addHandler(logging.NullHandler())


@dataclass(frozen=True, slots=True)
class LogSettings:
    """The settings of the log: `log-file`, `log-level`, `log-format`, `redact-info-log`.

    Without a file, lines go to stderr.
    """

    file: Path | None = None
    level: str = "info"
    form: Form = "json"
    redact: bool = False


def configure(settings: LogSettings) -> None:
    """Send every line of this process to where `settings` says, and to no earlier place.

    Called by programs when they start, and again by one that rereads its settings. Raises ValueError for an unknown
    level, ConfigError CONFIG-029 if the file can't be written.
    """
    number = level_number(settings.level)
    if settings.file is None:
        handler: logging.Handler = logging.StreamHandler(sys.stderr)
    else:
        try:
            settings.file.parent.mkdir(parents=True, exist_ok=True)
            handler = RotatingFile(settings.file)
        except OSError as error:
            raise ConfigError("CONFIG-029", Where(file=str(settings.file)), str(error)) from error
    handler.setFormatter(_formatter(settings, as_json if settings.form == "json" else as_text))
    keeping = RingHandler()
    keeping.setFormatter(_formatter(settings, RING.keep))
    for log in (_OURS, *map(logging.getLogger, _SERVERS)):
        for old in log.handlers[:]:
            log.removeHandler(old)
            old.close()
        log.addHandler(handler)
        log.addHandler(keeping)
        log.setLevel(number)
        log.propagate = False


def _formatter(settings: LogSettings, last: structlog.typing.Processor) -> logging.Formatter:
    """Return a formatter that adds a line's fields and redacts credentials, for the processor `last`."""
    foreign: list[structlog.typing.Processor] = [
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        _stamp,
    ]
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=foreign,
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            structlog.processors.format_exc_info,
            hide_credentials,
            *([redact] if settings.redact else []),
            first_fields,
            last,
        ],
    )


def level_number(name: str) -> int:
    """Return the number of a level in `logging`. Raises ValueError."""
    known = name.strip().lower()
    try:
        return LEVELS[_ALIASES.get(known, known)]
    except KeyError:
        raise ValueError(f"no such log level: {name!r}; there are {', '.join(LEVELS)}") from None


def set_level(name: str) -> None:
    """Write only lines of this level and above from now on. Raises ValueError for an unknown level."""
    number = level_number(name)
    for log in (_OURS, *map(logging.getLogger, _SERVERS)):
        log.setLevel(number)
    logger("log").info("log level set", to=name)


def level() -> str:
    """Return the current level, by DM's name."""
    number = _OURS.getEffectiveLevel()
    return next((name for name, one in LEVELS.items() if one >= number), "error")


def logger(name: str, **known: str) -> structlog.stdlib.BoundLogger:
    """Return a logger under `unshard.` whose lines have the `known` fields."""
    bound: structlog.stdlib.BoundLogger = structlog.get_logger(f"unshard.{name}").bind(**known)
    return bound


@contextmanager
def fields(**known: str) -> Iterator[None]:
    """Give the `known` fields to the lines that this thread writes within the block.

    A new thread begins without any.
    """
    with structlog.contextvars.bound_contextvars(**known):
        yield


def known_fields() -> Mapping[str, Any]:
    """Return the fields that lines of this thread have now."""
    return structlog.contextvars.get_contextvars()


_stamp = structlog.processors.TimeStamper(fmt="iso", utc=True)
structlog.configure(
    processors=[
        structlog.stdlib.filter_by_level,
        structlog.contextvars.merge_contextvars,
        Sampler(),
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        _stamp,
        structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
    ],
    wrapper_class=structlog.stdlib.BoundLogger,
    logger_factory=structlog.stdlib.LoggerFactory(),
    cache_logger_on_first_use=True,
)
