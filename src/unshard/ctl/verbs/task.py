"""Commands on tasks: check, start, stop, pause, resume, update, status."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from unshard.api.verbs import (
    CheckTask,
    PauseTask,
    QueryStatus,
    ResumeTask,
    StartTask,
    StopTask,
    TaskRequest,
    UpdateTask,
)
from unshard.config.document import text_of
from unshard.config.files import load_files
from unshard.ctl.session import CtlSession, ask, conclude, guarded
from unshard.ctl.words import TaskFile, TaskMaybe, source_files, source_ids, task_name

StartTime = Annotated[
    str,
    typer.Option(
        "--start-time",
        metavar="TIME",
        help="Begin at the binlog position of this time: 'YYYY-MM-DD HH:MM:SS' in the source's time zone, or RFC 3339"
        " with its zone",
    ),
]
BatchSize = Annotated[int, typer.Option("--batch-size", min=1, metavar="N", help="How many tasks at a time.")]


def check_task(
    context: typer.Context,
    task: TaskFile,
    errors: Annotated[int, typer.Option("--error", "-e", min=0, metavar="N", help="At most N errors.")] = 10,
    warnings: Annotated[int, typer.Option("--warn", "-w", min=0, metavar="N", help="At most N warnings.")] = 10,
    start_time: StartTime = "",
    also: Annotated[
        list[str] | None, typer.Option("--also", metavar="ITEM", help="Run an optional check too: primary_key.")
    ] = None,
) -> None:
    """Check a task before its start: settings, privileges, tables. Nothing is changed.

    Each problem is shown with the command that corrects it. Without a master the files of all sources are needed (-s).
    Exit code 0: the task can start, perhaps with warnings, 1: a check failed or a server can't be asked, 2: wrong use.
    """
    session: CtlSession = context.obj

    def answer() -> dict[str, Any]:
        request = CheckTask(
            task=text_of(task), err_cnt=errors, warn_cnt=warnings, start_time=start_time, also=tuple(also or ())
        )
        if session.direct(task):
            files = load_files(task, [Path(file) for file in source_files(session.sources)])
            from unshard.ctl import direct  # a mistake in the files is told before this is loaded

            return direct.check(files, request)
        return session.client.ask(request)

    conclude(session, CheckTask.verb, answer)


def start_task(
    context: typer.Context,
    task: TaskFile,
    remove_meta: Annotated[
        bool,
        typer.Option(
            "--remove-meta", help="Drop the target's records of an earlier run, not its rows, and start anew."
        ),
    ] = False,
    reset: Annotated[
        bool,
        typer.Option(
            "--reset", help="Drop or empty the target tables that this task has created or filled, then start anew."
        ),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask before --reset.")] = False,
    start_time: StartTime = "",
) -> None:
    """Check a task and start it on its sources (-s: on these only); on all or none.

    --reset and --remove-meta are for a task that is stopped on all of its sources.
    """
    session: CtlSession = context.obj
    request = guarded(
        lambda: StartTask(
            task=text_of(task),
            sources=source_ids(session.sources),
            remove_meta=remove_meta,
            reset="do" if reset else "",
            start_time=start_time,
        )
    )
    if reset and not yes:
        answer = guarded(lambda: session.client.ask(request.model_copy(update={"reset": "show"})))
        if answer.get("result"):
            for line in answer["reset"]:
                typer.echo(f"reset: {line}", err=True)
            typer.confirm("Go on?", abort=True, err=True)
    ask(session, request)


def stop_task(context: typer.Context, task: TaskMaybe = "", batch_size: BatchSize = 5) -> None:
    """Stop a task (or all tasks of -s) and forget it. Its records in the target stay: a start goes on from there."""
    _operate(context, StopTask, task, batch_size)


def pause_task(context: typer.Context, task: TaskMaybe = "", batch_size: BatchSize = 5) -> None:
    """Pause a task (or all tasks of -s) after the batch that is being applied."""
    _operate(context, PauseTask, task, batch_size)


def resume_task(context: typer.Context, task: TaskMaybe = "", batch_size: BatchSize = 5) -> None:
    """Resume a task (or all tasks of -s) after a pause or an error."""
    _operate(context, ResumeTask, task, batch_size)


def _operate(context: typer.Context, kind: Callable[..., TaskRequest], task: str, batch_size: int) -> None:
    session: CtlSession = context.obj
    if not task and not session.sources:
        raise typer.BadParameter("name a task, or sources with -s")
    name, sources = guarded(lambda: (task_name(task), source_ids(session.sources)))
    ask(session, kind(name=name, sources=sources, batch_size=batch_size))


def update_task(context: typer.Context, task: TaskFile) -> None:
    """Replace a paused task's file: rules, routes and syncer settings may change. Then resume it."""
    session: CtlSession = context.obj
    request = guarded(lambda: UpdateTask(task=text_of(task), sources=source_ids(session.sources)))
    ask(session, request)


def query_status(
    context: typer.Context,
    task: TaskMaybe = "",
    more: Annotated[bool, typer.Option("--more", help="Show everything about all tasks.")] = False,
) -> None:
    """Show the state of tasks: a line for each, or everything about one (or about those of -s)."""
    session: CtlSession = context.obj
    request = guarded(lambda: QueryStatus(name=task_name(task), sources=source_ids(session.sources), more=more))
    ask(session, request)


def register(table: typer.Typer) -> None:
    """Add the verbs of this module to the table."""
    table.command("check-task")(check_task)
    table.command("start-task")(start_task)
    table.command("pause-task")(pause_task)
    table.command("resume-task")(resume_task)
    table.command("stop-task")(stop_task)
    table.command("update-task")(update_task)
    table.command("query-status")(query_status)
