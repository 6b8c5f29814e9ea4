"""The verbs of `unshard ctl binlog`, and dmctl's old form of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from unshard.cli.guard import FAILED, guarded
from unshard.cli.operators import Wish, WrongUse, give_operator, list_operators, revert_operator
from unshard.target.operators import Op

binlog = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Get a task past a statement or a row change that can't be applied.",
)
Task = Annotated[Path, typer.Argument(metavar="TASK.yaml", help="The task file, in DM's format.")]
Source = Annotated[
    list[str] | None,
    typer.Option("--source", "-s", metavar="SOURCE", help="A source's id, or its file. Else all that have stopped."),
]
Place = Annotated[
    str,
    typer.Option("--binlog-pos", "-b", metavar="FILE:POS", help="The place; else where the source has stopped."),
]
Sqls = Annotated[
    list[str], typer.Argument(metavar="SQL…", help="DDL with every table's schema, in the source's names; `;` between.")
]


@binlog.command()
def skip(task: Task, source: Source = None, place: Place = "") -> None:
    """Leave out the statement there, or the row changes of the event or transaction there.

    A statement is not run; the structure that it gave the table at the source is tracked. Row changes that are left
    out are counted under `operator`. Kept in the target until the place is passed, then as a record.
    """
    run(lambda: give_operator(Wish(task, _named(source), place), Op.SKIP, typer.echo))


@binlog.command()
def replace(task: Task, sqls: Sqls, source: Source = None, place: Place = "") -> None:
    """Run other statements in the place of the one there; they are routed and tracked as it would be."""
    run(lambda: give_operator(Wish(task, _named(source), place, tuple(sqls)), Op.REPLACE, typer.echo))


@binlog.command()
def inject(task: Task, sqls: Sqls, source: Source = None, place: Place = "") -> None:
    """Run other statements before the one there, and then that one."""
    run(lambda: give_operator(Wish(task, _named(source), place, tuple(sqls)), Op.INJECT, typer.echo))


@binlog.command()
def revert(task: Task, source: Source = None, place: Place = "") -> None:
    """Take back what was given for the place, as long as it is not used."""
    run(lambda: revert_operator(Wish(task, _named(source), place), typer.echo))


@binlog.command("list")
def list_(
    task: Task,
    source: Source = None,
    place: Place = "",
    every: Annotated[bool, typer.Option("--all", help="Used and reverted ones too.")] = False,
) -> None:
    """Print what is given and not used yet: op 1 skip, 2 replace, 4 inject."""
    run(lambda: list_operators(Wish(task, _named(source), place), typer.echo, every=every))


def handle_error(
    task: Task,
    verb: Annotated[str, typer.Argument(metavar="VERB", help="skip, replace, inject, revert or list.")],
    sqls: Annotated[list[str] | None, typer.Argument(metavar="SQL…")] = None,
    source: Source = None,
    place: Place = "",
) -> None:
    """dmctl's old form of `binlog`."""
    wish = Wish(task, _named(source), place, tuple(sqls or ()))
    if verb in ("revert", "list"):
        run(lambda: (revert_operator if verb == "revert" else list_operators)(wish, typer.echo))
        return
    if verb not in tuple(Op):
        raise typer.BadParameter(f"{verb} is none of skip, replace, inject, revert, list")
    run(lambda: give_operator(wish, Op(verb), typer.echo))


def run(work: Callable[[], bool]) -> None:
    """Exit code 0: done for every source, 1: an error, which is printed, 2: wrong use."""

    def checked() -> None:
        if not work():
            raise typer.Exit(FAILED)

    try:
        guarded(checked)
    except WrongUse as error:
        raise typer.BadParameter(str(error)) from None


def _named(source: list[str] | None) -> tuple[str, ...]:
    return tuple(source or ())
