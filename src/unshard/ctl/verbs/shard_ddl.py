"""Verbs of sharding DDL, and dmctl's old names of them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import typer

from unshard.api.verbs import ShardDdlLock, ShardDdlLockUnlock
from unshard.ctl.session import CtlSession, conclude
from unshard.ctl.words import ListGroup, TaskMaybe, source_ids, task_name

lock = typer.Typer(
    cls=ListGroup,
    rich_markup_mode=None,
    help="Show sharding DDL that waits for other shards, or settle it by hand. `shard-ddl-lock TASK` is "
    "`shard-ddl-lock list TASK`.",
)


@lock.command("list")
def list_(context: typer.Context, task: TaskMaybe = "") -> None:
    """Show the locks: the DDL, which sources have it, which are missing. Of one task, or of the sources of -s.

    With the task's file no master is needed: the locks are in the target.
    """
    session: CtlSession = context.obj

    def answer() -> dict[str, Any]:
        request = ShardDdlLock(task=task_name(task), sources=source_ids(session.sources))
        if session.direct(task):
            from unshard.ctl import direct

            return direct.locks(task, session.sources, request)
        return session.client.ask(request)

    conclude(session, ShardDdlLock.verb, answer)


@lock.command()
def unlock(
    context: typer.Context,
    lock_id: Annotated[str, typer.Argument(metavar="ID", help="The lock, as it is listed.")],
    task: TaskMaybe = "",
    owner: Annotated[
        str,
        typer.Option(
            "--owner", "-o", metavar="SOURCE", help="The source that runs the DDL; default: the lock's owner."
        ),
    ] = "",
    force_remove: Annotated[
        bool, typer.Option("--force-remove", "-f", help="Remove the lock though its owner can't run the DDL.")
    ] = False,
    action: Annotated[
        Literal["skip", "exec"],
        typer.Option(
            "--action", "-a", help="Optimistic mode: exec lets the shard have it, skip leaves it out of the target."
        ),
    ] = "skip",
    database: Annotated[
        str, typer.Option("--database", "-d", metavar="DB", help="Optimistic mode: the shard's schema.")
    ] = "",
    table: Annotated[str, typer.Option("--table", "-t", metavar="TABLE", help="Optimistic mode: the shard.")] = "",
) -> None:
    """Run a DDL without the sources that are missing. When they meet it later, it is skipped or waits anew.

    Do it only when a source that is missing will never run the DDL. With the file of the lock's task it needs no
    master: the locks are in the target.
    """
    session: CtlSession = context.obj

    def answer() -> dict[str, Any]:
        if task and not lock_id.startswith(f"{(name := task_name(task))}-`"):
            raise typer.BadParameter(f"{lock_id} is no lock of task {name}")
        request = ShardDdlLockUnlock(
            id=lock_id,
            owner=owner,
            force_remove=force_remove,
            action=action,
            database=database,
            table=table,
            sources=source_ids(session.sources),
        )
        if session.direct(task):
            from unshard.ctl import direct

            return direct.unlock(task, session.sources, request)
        return session.client.ask(request)

    conclude(session, ShardDdlLockUnlock.verb, answer)


def register(table: typer.Typer) -> None:
    """Add the verbs of this module to the table."""
    table.add_typer(lock, name="shard-ddl-lock")
    table.command("show-ddl-locks", hidden=True)(list_)
    table.command("unlock-ddl-lock", hidden=True)(unlock)
