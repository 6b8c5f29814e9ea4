"""Our log: one JSON object a line, with the fields that say whose line it is."""

from __future__ import annotations

import logging
from pathlib import Path

import structlog


def configure(path: Path) -> None:
    """Send every log line of this process to `path`, appending. Called once, by the command line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handler = logging.FileHandler(path, encoding="utf-8")
    handler.setFormatter(logging.Formatter("%(message)s"))
    root = logging.getLogger("unshard")
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    root.propagate = False
    structlog.configure(
        processors=[
            structlog.stdlib.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(),
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )


def logger(name: str, **fields: str) -> structlog.stdlib.BoundLogger:
    """A logger under `unshard.` whose lines carry `fields`."""
    bound: structlog.stdlib.BoundLogger = structlog.get_logger(f"unshard.{name}").bind(**fields)
    return bound
