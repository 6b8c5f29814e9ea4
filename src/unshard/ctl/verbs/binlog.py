"""The verbs of `binlog` and `binlog-schema`, and dmctl's old forms of them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from unshard.api.verbs import Binlog, BinlogSchema
from unshard.config.document import text_of
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
    table.add_typer(schema, name="binlog-schema")
    table.command("operate-schema", hidden=True)(operate_schema)


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
