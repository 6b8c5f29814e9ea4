"""`unshard ctl`: dmctl's verbs, with its flags; DM's JSON off a terminal, a table on one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from unshard.checks.items import opt_in_names
from unshard.checks.result import DEFAULT_LIMIT, Report
from unshard.checks.run import check_task
from unshard.cli.ctl_binlog import binlog, handle_error
from unshard.cli.ctl_schema import schema
from unshard.cli.guard import FAILED, guarded
from unshard.config.files import load_source, load_task
from unshard.config.subtask import plan_subtasks

ctl = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="dmctl's verbs, with its flags and its JSON.")
ctl.add_typer(binlog, name="binlog")
ctl.add_typer(schema, name="binlog-schema")
ctl.command("handle-error", hidden=True)(handle_error)
_STYLES = {"success": "green", "warn": "yellow", "fail": "red"}


@ctl.callback()
def _verbs() -> None:
    """Keeps `check-task` a verb of its own."""


@ctl.command("check-task")
def check(
    task: Annotated[Path, typer.Argument(metavar="TASK.yaml", help="The task file, in DM's format.")],
    source: Annotated[
        list[Path], typer.Option("--source", "-s", metavar="SOURCE.yaml", help="A source file; once for each source.")
    ],
    errors: Annotated[int, typer.Option("--error", "-e", min=0, metavar="N", help="At most N errors.")] = DEFAULT_LIMIT,
    warnings: Annotated[
        int, typer.Option("--warn", "-w", min=0, metavar="N", help="At most N warnings.")
    ] = DEFAULT_LIMIT,
    also: Annotated[
        list[str] | None, typer.Option("--also", metavar="ITEM", help="An opt-in item as well: primary_key.")
    ] = None,
) -> None:
    """Check a task before its start, as `unshard run` does too: settings, privileges, tables. Nothing is changed.

    Each lack is told with the command that mends it. Exit code 0: nothing stands in the way, there may be warnings,
    1: a check failed or a server can't be asked, 2: wrong use.
    """
    unknown = sorted(set(also or ()).difference(opt_in_names()))
    if unknown:
        raise typer.BadParameter(f"--also takes {', '.join(opt_in_names())}, not {unknown[0]}")
    guarded(lambda: _check(task, source, errors, warnings, tuple(also or ())))


def _check(task_path: Path, sources: list[Path], errors: int, warnings: int, also: tuple[str, ...]) -> None:
    task = load_task(task_path)
    report = check_task(task, plan_subtasks(task, [load_source(path) for path in sources]), also)
    console = Console()
    if console.is_terminal:
        show_report(console, report, errors, warnings)
    else:
        typer.echo(json.dumps(report.to_dict(errors, warnings), indent=4, ensure_ascii=False))
    if not report.passed:
        raise typer.Exit(FAILED)


def show_report(console: Console, report: Report, errors: int, warnings: int) -> None:
    """Every check with its state, then each lack over the width of the terminal with what mends it."""
    table = Table("check", "of", "state", box=None, pad_edge=False)
    for result in report.results:
        table.add_row(result.name, result.extra, f"[{_STYLES[result.state]}]{result.state}[/]")
    console.print(table)
    for result in report.cut(errors, warnings).results:
        for finding in result.errors:
            style = _STYLES[finding.severity]
            console.print(f"\n{finding.severity}", style=style, end=" ", highlight=False)
            console.print(f"{result.name}: {finding.short_error}", markup=False, highlight=False, soft_wrap=True)
            console.print(f"  {finding.instruction}", markup=False, highlight=False, soft_wrap=True)
    counts = report.summary()
    told = f"\n{counts['successful']} of {counts['total']} fine, {counts['warning']} warned, {counts['failed']} failed"
    console.print(told, highlight=False)
