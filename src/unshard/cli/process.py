"""The exit of a process: the exit code of a command that fails, and the stop of a server by a signal."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event
from typing import TypeVar

import typer

from unshard.errors import UnshardError, told_together

FAILED = 1
BROKEN_OFF = 130
"""By a Ctrl-C that nobody heeds, as shells have it; typer ends so."""
_T = TypeVar("_T")


def guarded(work: Callable[[], _T], form: Callable[[str], str] = str) -> _T:
    """Return the result of a command's work. Print an UnshardError, or each of a group, on stderr; exit with code 1.

    `form` converts the text of an error to its form on stderr.
    """
    try:
        return work()
    except UnshardError as error:
        typer.echo(form(str(error)), err=True)
        raise typer.Exit(FAILED) from error
    except ExceptionGroup as group:
        typer.echo(form(told_together(group)), err=True)
        raise typer.Exit(FAILED) from group


@contextmanager
def stopped_by_signal(stop: Event) -> Iterator[None]:
    """Let SIGINT and SIGTERM set `stop`; a second SIGINT ends the process."""

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
