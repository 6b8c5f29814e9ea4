"""Verbs of a cluster's members."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from unshard.api.verbs import ListMember, LogLevel, OfflineMember, OperateLeader
from unshard.ctl.session import ask

Names = Annotated[list[str] | None, typer.Option("--name", "-n", metavar="NAME", help="Only these; repeatable.")]


def list_member(
    context: typer.Context,
    leader: Annotated[bool, typer.Option("--leader", "-l", help="The master that leads.")] = False,
    master: Annotated[bool, typer.Option("--master", "-m", help="The masters.")] = False,
    worker: Annotated[bool, typer.Option("--worker", "-w", help="The workers.")] = False,
    name: Names = None,
) -> None:
    """Show the masters and workers of the cluster, and which source each worker serves."""
    ask(context.obj, ListMember(leader=leader, master=master, worker=worker, names=_names(name)))


def offline_member(
    context: typer.Context,
    name: Annotated[str, typer.Option("--name", "-n", metavar="NAME", help="The member.")],
    master: Annotated[bool, typer.Option("--master", help="It is a master.")] = False,
    worker: Annotated[bool, typer.Option("--worker", help="It is a worker.")] = False,
) -> None:
    """Remove a master or worker that is gone for good. One that is alive is refused."""
    if master == worker:
        raise typer.BadParameter("give either --master or --worker")
    ask(context.obj, OfflineMember(type="master" if master else "worker", name=name))


def operate_leader(
    context: typer.Context,
    op: Annotated[Literal["evict", "cancel-evict"], typer.Argument()],
) -> None:
    """Let another master lead (evict), or let the evicted one lead again (cancel-evict)."""
    ask(context.obj, OperateLeader(op=op))


def log_level(
    context: typer.Context,
    level: Annotated[
        Literal["debug", "info", "warn", "error"] | None,
        typer.Argument(metavar="LEVEL", help="debug, info, warn or error; default: show it."),
    ] = None,
    name: Names = None,
) -> None:
    """Show or set the log level of masters and workers, without a restart. A restart takes the level of the file."""
    ask(context.obj, LogLevel(level=level or "", names=_names(name)))


def _names(given: list[str] | None) -> tuple[str, ...]:
    return tuple(part for text in given or () for part in text.split(",") if part)


def register(table: typer.Typer) -> None:
    """Add the verbs of this module to the table."""
    table.command("list-member")(list_member)
    table.command("offline-member")(offline_member)
    table.command("operate-leader")(operate_leader)
    table.command("log-level")(log_level)
