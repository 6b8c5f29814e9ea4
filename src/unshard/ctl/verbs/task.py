"""Verbs of tasks: check, start, stop, pause, resume, update, status."""

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
from unshard.ctl.session import Session, ask, conclude, guarded
from unshard.ctl.verbs.arguments import TaskFile, TaskMaybe
from unshard.ctl.words import source_files, source_ids, task_name

StartTime = Annotated[
    str,
    typer.Option("--start-time", metavar="TIME", help="Begin at the binlog of then: 'YYYY-MM-DD HH:MM:SS' or RFC 3339"),
]
BatchSize = Annotated[int, typer.Option("--batch-size", min=1, metavar="N", help="How many tasks at a time.")]


def check_task(
    context: typer.Context,
    task: TaskFile,
    errors: Annotated[int, typer.Option("--error", "-e", min=0, metavar="N", help="At most N errors.")] = 10,
    warnings: Annotated[int, typer.Option("--warn", "-w", min=0, metavar="N", help="At most N warnings.")] = 10,
    start_time: StartTime = "",
    also: Annotated[
        list[str] | None, typer.Option("--also", metavar="ITEM", help="An opt-in item as well: primary_key.")
    ] = None,
) -> None:
    """Check a task before its start: settings, privileges, tables. Nothing is changed.

    Each lack is told with the command that mends it. Without a master the files of all sources are needed (-s). Exit
    code 0: nothing stands in the way, there may be warnings, 1: a check failed or a server can't be asked, 2: wrong
    use.
    """
    session: Session = context.obj

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
        bool, typer.Option("--remove-meta", help="Forget what the target has on record of an earlier run: start anew.")
    ] = False,
    reset: Annotated[
        bool,
        typer.Option(
            "--reset", help="Drop or empty the target's tables that this task has made or filled, then start anew."
        ),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Let --reset do so without a question.")] = False,
    start_time: StartTime = "",
) -> None:
    """Check a task and start it on its sources (-s: on these only); on all or none.

    --reset and --remove-meta are for a task that is stopped on all of its sources.
    """
    session: Session = context.obj
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
    """Let a task (or all tasks of -s) stand still; the batch in hand is finished."""
    _operate(context, PauseTask, task, batch_size)


def resume_task(context: typer.Context, task: TaskMaybe = "", batch_size: BatchSize = 5) -> None:
    """Let a task (or all tasks of -s) go on, after a pause or an error."""
    _operate(context, ResumeTask, task, batch_size)


def _operate(context: typer.Context, kind: Callable[..., TaskRequest], task: str, batch_size: int) -> None:
    session: Session = context.obj
    if not task and not session.sources:
        raise typer.BadParameter("name a task, or sources with -s")
    name, sources = guarded(lambda: (task_name(task), source_ids(session.sources)))
    ask(session, kind(name=name, sources=sources, batch_size=batch_size))


def update_task(context: typer.Context, task: TaskFile) -> None:
    """Give a paused task another file: rules, routes and the syncer's settings may change. Then resume it."""
    session: Session = context.obj
    request = guarded(lambda: UpdateTask(task=text_of(task), sources=source_ids(session.sources)))
    ask(session, request)


def query_status(
    context: typer.Context,
    task: TaskMaybe = "",
    more: Annotated[bool, typer.Option("--more", help="Everything about all tasks, not a line for each.")] = False,
) -> None:
    """Tell how tasks are: all in short, or everything about one (or about those of -s)."""
    session: Session = context.obj
    request = guarded(lambda: QueryStatus(name=task_name(task), sources=source_ids(session.sources), more=more))
    ask(session, request)


def register(table: typer.Typer) -> None:
    table.command("check-task")(check_task)
    table.command("start-task")(start_task)
    table.command("pause-task")(pause_task)
    table.command("resume-task")(resume_task)
    table.command("stop-task")(stop_task)
    table.command("update-task")(update_task)
    table.command("query-status")(query_status)
