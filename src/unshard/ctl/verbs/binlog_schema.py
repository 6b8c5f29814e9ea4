"""The verbs of `binlog-schema`, and dmctl's old form of them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from unshard.api.verbs import BinlogSchema
from unshard.config.document import text_of
from unshard.ctl.session import CtlSession, conclude
from unshard.ctl.words import TaskWord, source_ids, task_name

schema = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Show and set the structure that a task tracks for a source's table. Pause or stop the task first.",
)
Database = Annotated[str, typer.Argument(metavar="DB", help="The schema, as the source names it.")]
Named = Annotated[str, typer.Argument(metavar="TABLE", help="The table, as the source names it.")]
SqlFile = Annotated[
    Path | None, typer.Argument(metavar="FILE", exists=True, dir_okay=False, help="A CREATE TABLE statement.")
]
Flush = Annotated[bool, typer.Option("--flush", hidden=True, help="dmctl's; what is set is always saved.")]
Sync = Annotated[bool, typer.Option("--sync", hidden=True, help="dmctl's, of optimistic mode.")]
_NEW_OPS: dict[str, Literal["list", "update", "delete"]] = {"get": "list", "set": "update", "remove": "delete"}


@schema.command("list")
def list_structure(context: typer.Context, task: TaskWord, database: Database, table: Named) -> None:
    """Print the CREATE TABLE that is tracked at the checkpoint: what the rows behind it are read by."""
    _run_on_structure(context, "list", task, database, table)


@schema.command()
def update(
    context: typer.Context,
    task: TaskWord,
    database: Database,
    table: Named,
    file: SqlFile = None,
    from_source: Annotated[
        bool,
        typer.Option(
            "--from-source", help="Take it from the source as it is now; without a master -s is the source's file."
        ),
    ] = False,
    from_target: Annotated[
        bool,
        typer.Option(
            "--from-target", help="Take it from the target as it is now; without a master -s is a source's file."
        ),
    ] = False,
    flush: Flush = True,
    sync: Sync = True,
) -> None:
    """Set the structure of a table: the one that it had on the source at the task's checkpoint.

    A task that runs meanwhile is stopped by it (SYNC-001).
    """
    del flush, sync
    _run_on_structure(context, "update", task, database, table, file, from_source=from_source, from_target=from_target)


@schema.command()
def delete(context: typer.Context, task: TaskWord, database: Database, table: Named) -> None:
    """Forget the tracked structure: with the next row that of the target's table is taken."""
    _run_on_structure(context, "delete", task, database, table)


def operate_schema(
    context: typer.Context,
    op: Annotated[Literal["get", "set", "remove"], typer.Argument()],
    task: TaskWord,
    database: Annotated[str, typer.Option("--database", "-d", metavar="DB")],
    table: Annotated[str, typer.Option("--table", "-t", metavar="TABLE")],
    file: SqlFile = None,
    flush: Flush = True,
    sync: Sync = True,
) -> None:
    """Run `binlog-schema` in dmctl's old form."""
    del flush, sync
    _run_on_structure(context, _NEW_OPS[op], task, database, table, file)


def _run_on_structure(
    context: typer.Context,
    op: Literal["list", "update", "delete"],
    task: str,
    database: str,
    table: str,
    file: Path | None = None,
    *,
    from_source: bool = False,
    from_target: bool = False,
) -> None:
    session: CtlSession = context.obj

    def answer() -> dict[str, Any]:
        request = BinlogSchema(
            op=op,
            task=task_name(task),
            database=database,
            table=table,
            sources=source_ids(session.sources),
            schema=text_of(file) if file is not None else "",
            from_source=from_source,
            from_target=from_target,
        )
        if session.direct(task):
            from unshard.ctl import direct

            return direct.schema(task, session.sources, request)
        return session.client.ask(request)

    conclude(session, BinlogSchema.verb, answer)


def register(table: typer.Typer) -> None:
    """Add the verbs of this module to the table."""
    table.add_typer(schema, name="binlog-schema")
    table.command("operate-schema", hidden=True)(operate_schema)
