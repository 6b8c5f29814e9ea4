"""How a command ends by an error."""

from __future__ import annotations

from collections.abc import Callable

import typer
from rich.console import Console

from unshard.errors import UnshardError

FAILED = 1


def guarded(work: Callable[[], None]) -> None:
    """Run a command; an UnshardError becomes its text on stderr and exit code 1."""
    try:
        work()
    except UnshardError as error:
        Console(stderr=True).print(str(error), markup=False, highlight=False, soft_wrap=True)
        raise typer.Exit(FAILED) from error
