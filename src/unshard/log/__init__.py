"""Our log: one line an event, with the fields that say whose line it is.

Fields come from three places: the logger (`logger("sync", table=…)`), the thread (`fields(task=…, source=…, batch=…)`,
which holds for whatever is called within), and the line itself. A line with `sampled=True` is written ten times a
minute at most. Nothing is written anywhere before `configure` is called: Spark's tasks call the same functions.
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
from unshard.log.hide import hide_credentials, redact
from unshard.log.lines import Sampler, as_json, as_text, first_fields
from unshard.log.rotation import RotatingFile

Form = Literal["json", "text"]

LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warn": logging.WARNING, "error": logging.ERROR}
"""DM's names. `fatal` and `warning` are understood too, as by DM."""

_ALIASES = {"warning": "warn", "fatal": "error", "dpanic": "error", "panic": "error"}
_OURS = logging.getLogger("unshard")
_SERVERS = ("uvicorn", "uvicorn.error")
"""Loggers of libraries whose lines belong into our log; uvicorn's access log stays off."""

_OURS.addHandler(logging.NullHandler())


@dataclass(frozen=True, slots=True)
class LogSettings:
    """`log-file`, `log-level`, `log-format`, `redact-info-log`. Without a file lines go to stderr."""

    file: Path | None = None
    level: str = "info"
    form: Form = "json"
    redact: bool = False


def configure(settings: LogSettings) -> None:
    """Send every line of this process where `settings` says, and nowhere else any more.

    Called by programs when they start, and again by one that reads its settings anew. Raises ValueError for a level
    that isn't one, ConfigError CONFIG-029 where the file can't be written.
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
    hidden = [redact] if settings.redact else []
    foreign: list[structlog.typing.Processor] = [
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        _stamp,
    ]
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=foreign,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.format_exc_info,
                hide_credentials,
                *hidden,
                first_fields,
                as_json if settings.form == "json" else as_text,
            ],
        )
    )
    for log in (_OURS, *map(logging.getLogger, _SERVERS)):
        for old in log.handlers[:]:
            log.removeHandler(old)
            old.close()
        log.addHandler(handler)
        log.setLevel(number)
        log.propagate = False


def level_number(name: str) -> int:
    """The number that `logging` has for a level's name. Raises ValueError."""
    known = name.strip().lower()
    try:
        return LEVELS[_ALIASES.get(known, known)]
    except KeyError:
        raise ValueError(f"no such log level: {name!r}; there are {', '.join(LEVELS)}") from None


def set_level(name: str) -> None:
    """Write lines of this level and above from now on. Raises ValueError for a level that isn't one."""
    number = level_number(name)
    for log in (_OURS, *map(logging.getLogger, _SERVERS)):
        log.setLevel(number)
    logger("log").info("log level set", to=name)


def level() -> str:
    """The level of now, by DM's name."""
    number = _OURS.getEffectiveLevel()
    return next((name for name, one in LEVELS.items() if one >= number), "error")


def logger(name: str, **known: str) -> structlog.stdlib.BoundLogger:
    """A logger under `unshard.` whose lines carry the `known` fields."""
    bound: structlog.stdlib.BoundLogger = structlog.get_logger(f"unshard.{name}").bind(**known)
    return bound


@contextmanager
def fields(**known: str) -> Iterator[None]:
    """Lines that this thread writes within the block carry the `known` fields. A new thread begins without any."""
    with structlog.contextvars.bound_contextvars(**known):
        yield


def known_fields() -> Mapping[str, Any]:
    """The fields that lines of this thread carry now."""
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
