"""The verbs of `unshard ctl binlog-schema`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from unshard.cli.ctl_binlog import Task, run
from unshard.cli.structures import TableWish, delete_structure, list_structure, update_structure
from unshard.model.table import TableName

schema = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="See and set the structure that a task knows of a source's table. Stop the task first.",
)
Database = Annotated[str, typer.Argument(metavar="DB", help="The schema, as the source names it.")]
Named = Annotated[str, typer.Argument(metavar="TABLE", help="The table, as the source names it.")]
Source = Annotated[
    list[str] | None,
    typer.Option("--source", "-s", metavar="SOURCE", help="A source's id, or its file. Else all of the task."),
]


@schema.command("list")
def list_(task: Task, database: Database, table: Named, source: Source = None) -> None:
    """Print the CREATE TABLE that is tracked at the checkpoint: what the rows behind it are read by."""
    run(lambda: list_structure(_wish(task, source, database, table), typer.echo))


@schema.command()
def update(
    task: Task,
    database: Database,
    table: Named,
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE", exists=True, dir_okay=False, help="A CREATE TABLE statement.")
    ] = None,
    source: Source = None,
    from_source: Annotated[
        bool, typer.Option("--from-source", help="As it is on the source now; -s is a file.")
    ] = False,
    from_target: Annotated[
        bool, typer.Option("--from-target", help="As it is on the target now; -s is a file.")
    ] = False,
) -> None:
    """Set the structure of a table: the one that it had on the source at the task's checkpoint.

    A task that runs meanwhile is stopped by it (SYNC-001).
    """
    wish = _wish(task, source, database, table)
    run(lambda: update_structure(wish, typer.echo, file, from_source=from_source, from_target=from_target))


@schema.command()
def delete(task: Task, database: Database, table: Named, source: Source = None) -> None:
    """Forget the structure: that of the target's table is taken when a row of it comes next."""
    run(lambda: delete_structure(_wish(task, source, database, table), typer.echo))


def _wish(task: Path, source: list[str] | None, database: str, table: str) -> TableWish:
    return TableWish(task, tuple(source or ()), TableName(database, table))
