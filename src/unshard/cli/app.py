"""The command `unshard`: its verbs, and how an error ends a run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from unshard.errors import UnshardError

FAILED = 1

app = typer.Typer(
    name="unshard",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Copy, follow and merge sharded MySQL and MariaDB tables into one target, exactly once.",
)


@app.callback()
def _verbs() -> None:
    """Keeps `run` a verb of its own."""


@app.command()
def run(
    task: Annotated[Path, typer.Argument(metavar="TASK.yaml", help="The task file, in DM's format.")],
    source: Annotated[
        list[Path], typer.Option("--source", "-s", metavar="SOURCE.yaml", help="A source file; once for each source.")
    ],
    log: Annotated[Path, typer.Option("--log", metavar="FILE", help="Where Spark's and our own log lines go.")] = Path(
        "unshard.log"
    ),
) -> None:
    """Run a task in this process: dump, load, then follow the binlog until Ctrl-C.

    Ctrl-C finishes the batch in hand and stops; the same command goes on from there. Exit code 0: done or stopped
    by hand, 1: an error, told on the terminal, 2: wrong use.
    """
    from unshard.cli.run import run_task

    _guarded(lambda: run_task(task, source, log, Console()))


@app.command()
def demo(
    rows: Annotated[int, typer.Option(help="Rows in each of the eight shards before the copy.")] = 5000,
    seconds: Annotated[int, typer.Option(help="How long the writers go on after the copy.")] = 15,
) -> None:
    """Show the main job on throwaway servers: two sources, eight shards, one merged table, one SIGKILL."""
    from unshard.cli.demo import run_demo

    _guarded(lambda: run_demo(Console(), rows=rows, seconds=seconds))


def _guarded(work: Callable[[], None]) -> None:
    """Run a command; an UnshardError becomes its text on stderr and exit code 1."""
    try:
        work()
    except UnshardError as error:
        Console(stderr=True).print(str(error), markup=False, highlight=False, soft_wrap=True)
        raise typer.Exit(FAILED) from error


def main() -> None:
    """Entry point of the `unshard` script."""
    app(prog_name="unshard")
