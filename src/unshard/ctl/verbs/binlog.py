"""The verbs of `binlog`, and dmctl's old form of them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import typer

from unshard.api.verbs import Binlog
from unshard.ctl.session import CtlSession, conclude
from unshard.ctl.words import TaskWord, source_ids, task_name

binlog = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Get a task past a statement or a row change that can't be applied. Without a master the task's file is "
    "needed, and the task is started again by hand.",
)
Place = Annotated[
    str,
    typer.Option("--binlog-pos", "-b", metavar="FILE:POS", help="The position; default: where the source has stopped."),
]
Sqls = Annotated[
    list[str],
    typer.Argument(metavar="SQL…", help="DDL with the schema of every table, in the source's names, separated by `;`."),
]
Op = Literal["skip", "replace", "revert", "inject", "list"]


@binlog.command()
def skip(context: typer.Context, task: TaskWord, place: Place = "") -> None:
    """Skip the statement at a position, or the row changes of the event or transaction there.

    A statement is not run; the structure that it gave the table at the source is tracked. Row changes that are left
    out are counted under `operator`. Kept in the target until the place is passed, then as a record.
    """
    _run(context, "skip", task, place)


@binlog.command()
def replace(context: typer.Context, task: TaskWord, sqls: Sqls, place: Place = "") -> None:
    """Run other statements in place of the one at a position; they are routed and tracked as it would be."""
    _run(context, "replace", task, place, sqls)


@binlog.command()
def inject(context: typer.Context, task: TaskWord, sqls: Sqls, place: Place = "") -> None:
    """Run other statements before the one at a position, and then that one."""
    _run(context, "inject", task, place, sqls)


@binlog.command()
def revert(context: typer.Context, task: TaskWord, place: Place = "") -> None:
    """Withdraw the operator for a position, unless it is used already."""
    _run(context, "revert", task, place)


@binlog.command("list")
def list_(
    context: typer.Context,
    task: TaskWord,
    place: Place = "",
    every: Annotated[bool, typer.Option("--all", help="Print used and reverted ones too.")] = False,
) -> None:
    """Print what waits to be used: op 1 skip, 2 replace, 4 inject."""
    _run(context, "list", task, place, every=every)


def handle_error(
    context: typer.Context,
    task: TaskWord,
    verb: Annotated[Op, typer.Argument(metavar="VERB", help="skip, replace, inject, revert or list.")],
    sqls: Annotated[list[str] | None, typer.Argument(metavar="SQL…")] = None,
    place: Place = "",
) -> None:
    """Run `binlog` in dmctl's old form."""
    _run(context, verb, task, place, sqls)


def _run(
    context: typer.Context, op: Op, task: str, place: str, sqls: list[str] | None = None, *, every: bool = False
) -> None:
    session: CtlSession = context.obj

    def answer() -> dict[str, Any]:
        request = Binlog(
            op=op,
            task=task_name(task),
            sources=source_ids(session.sources),
            binlog_pos=place,
            sqls=tuple(sqls or ()),
            every=every,
        )
        if session.direct(task):
            from unshard.ctl import direct

            return direct.binlog(task, session.sources, request)
        return session.client.ask(request)

    conclude(session, Binlog.verb, answer)


def register(table: typer.Typer) -> None:
    """Add the verbs of this module to the table."""
    table.add_typer(binlog, name="binlog")
    table.command("handle-error", hidden=True)(handle_error)
