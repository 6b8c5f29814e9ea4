"""A run's lines: plain text on a terminal; with time and level in a file or a pipe."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal, TextIO

if TYPE_CHECKING:  # a mistake in a file is told, by `error_text`, before rich is loaded
    from rich.console import Console

Level = Literal["INFO", "WARN", "ERROR"]
_STAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ (INFO |WARN |ERROR) ")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


def utc_now() -> datetime:
    """Return the current time in UTC."""
    return datetime.now(UTC)


def utc_text(time: datetime) -> str:
    """Return a time in UTC as text, to the second."""
    return f"{time:%Y-%m-%dT%H:%M:%SZ}"


def stamped(text: str, level: Level) -> str:
    """Return the text with time and level before its first line, and without control codes."""
    return f"{utc_text(utc_now())} {level:<5} {_CONTROLS.sub('?', text)}"


def unstamped(line: str) -> str:
    """Return the line without time and level, as a terminal shows it."""
    return _STAMP.sub("", line, count=1)


def error_text(text: str, stream: TextIO | None) -> str:
    """Return an error's text in the form for the stream: with a time and level unless it is a terminal."""
    return text if stream is not None and stream.isatty() else stamped(text, "ERROR")


class Printer:
    """The printer of a run's lines to a console. A console that is quiet shows none of them."""

    def __init__(self, console: Console) -> None:
        self.console = console

    @property
    def is_terminal(self) -> bool:
        """True if the output is a terminal."""
        return self.console.is_terminal

    def tell(self, text: str, level: Level = "INFO") -> None:
        """Print one line, or several of which the first has time and level where this is no terminal."""
        line = text if self.is_terminal else stamped(text, level)
        self.console.print(line, markup=False, highlight=False, soft_wrap=True)
