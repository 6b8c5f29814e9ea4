"""The verbs of `validation`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import typer

from unshard.api.verbs import Validation
from unshard.ctl.session import CtlSession, conclude
from unshard.ctl.words import TaskMaybe, TaskWord, source_ids, task_name

validation = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Compare the rows that change on both ends while a task runs, and show those that differ. With the task's "
    "file no master is needed: what is found is in the target.",
)
AllTasks = Annotated[bool, typer.Option("--all-task", help="All tasks, of the sources of -s where some are named.")]
ErrorId = Annotated[int, typer.Argument(metavar="ID", help="The error, as show-error prints it.", show_default=False)]
Every = Annotated[bool, typer.Option("--all", help="All errors; what is settled by hand leaves ignored ones alone.")]


@validation.command()
def start(
    context: typer.Context,
    task: TaskMaybe = "",
    all_task: AllTasks = False,
    mode: Annotated[
        Literal["full", "fast"],
        typer.Option("--mode", help="full compares each column, fast whether the row is there."),
    ] = "full",
    start_time: Annotated[
        str,
        typer.Option(
            "--start-time",
            metavar="TIME",
            help="Compare the rows that changed since then too. All rows are compared for it: for a task of mode all "
            "with one source.",
        ),
    ] = "",
) -> None:
    """Validate the rows that change from now on, and take up what an earlier validation has left.

    In a task of mode all the other rows are compared too, at a limited rate.
    """
    _check(task, all_task=all_task)
    _run(context, "start", task, all_task=all_task, mode=mode, start_time=start_time)


@validation.command()
def stop(context: typer.Context, task: TaskMaybe = "", all_task: AllTasks = False) -> None:
    """Validate no more. Rows that change from now on are not looked at; what was found stays on record."""
    _check(task, all_task=all_task)
    _run(context, "stop", task, all_task=all_task)


@validation.command()
def status(
    context: typer.Context,
    task: TaskWord,
    table_stage: Annotated[
        Literal["", "running", "stopped"],
        typer.Option("--table-stage", metavar="STAGE", help="Only tables that are validated (running), or not."),
    ] = "",
) -> None:
    """Print how far the validation is, and which tables can't be validated, and why."""
    _run(context, "status", task, table_stage=table_stage)


@validation.command("show-error")
def show_error(
    context: typer.Context,
    task: TaskWord,
    error: Annotated[
        Literal["unprocessed", "ignored", "resolved", "all"],
        typer.Option("--error", metavar="STATE", help="unprocessed, ignored, resolved or all."),
    ] = "unprocessed",
) -> None:
    """Print the rows that differ, as they are on both ends."""
    _run(context, "show-error", task, error=error)


@validation.command("ignore-error")
def ignore_error(context: typer.Context, task: TaskWord, number: ErrorId = 0, every: Every = False) -> None:
    """Say that a row may differ. It is not looked at again, unless it changes."""
    _run(context, "ignore-error", task, id=number, all=every)


@validation.command("resolve-error")
def resolve_error(context: typer.Context, task: TaskWord, number: ErrorId = 0, every: Every = False) -> None:
    """Say that a row is right. One that a later look finds right is resolved without this."""
    _run(context, "resolve-error", task, id=number, all=every)


@validation.command("clear-error")
def clear_error(context: typer.Context, task: TaskWord, number: ErrorId = 0, every: Every = False) -> None:
    """Delete an error from the record."""
    _run(context, "clear-error", task, id=number, all=every)


@validation.command()
def update(
    context: typer.Context,
    task: TaskWord,
    cutover_binlog_pos: Annotated[
        str, typer.Option("--cutover-binlog-pos", metavar="POS", help="Such as '(mysql-bin.000003, 1234)'.")
    ] = "",
    cutover_binlog_gtid: Annotated[
        str, typer.Option("--cutover-binlog-gtid", metavar="GTID", help="The GTID set to cut over at.")
    ] = "",
) -> None:
    """Note where a source is to be cut over; status tells when all rows up to there are judged."""
    _run(
        context,
        "update",
        task,
        cutover_binlog_pos=cutover_binlog_pos,
        cutover_binlog_gtid=cutover_binlog_gtid,
    )


def _check(task: str, *, all_task: bool) -> None:
    if bool(task) == all_task:
        raise typer.BadParameter("name a task, or give --all-task")


def _run(context: typer.Context, op: str, task: str, **fields: Any) -> None:
    session: CtlSession = context.obj

    def answer() -> dict[str, Any]:
        sources = source_ids(session.sources)
        form = {"op": op, "task": task_name(task), "sources": sources, **fields}
        request = Validation.model_validate(form)
        if task and session.direct(task):
            from unshard.ctl import direct

            return direct.validation(task, session.sources, request)
        return session.client.ask(request)

    conclude(session, Validation.verb, answer)


def register(table: typer.Typer) -> None:
    """Add the verbs of this module to the table."""
    table.add_typer(validation, name="validation")
