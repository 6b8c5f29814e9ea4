"""Verbs of a cluster's sources and of their relays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal

import typer

from unshard.api.verbs import (
    OperateSource,
    PauseRelay,
    PurgeRelay,
    Request,
    ResumeRelay,
    StartRelay,
    StopRelay,
    TransferSource,
    UpdateSource,
)
from unshard.config.document import text_of
from unshard.ctl.session import CtlSession, ask, guarded
from unshard.ctl.words import source_id, source_ids

SAMPLE_SOURCE = """\
source-id: "shop-01"             # its name in tasks and commands

# follow by GTID: wanted where the source may fail over to another server
enable-gtid: true

# keep the relay log also while no task needs it
enable-relay: false
# relay-binlog-name: ""          # where the relay log begins; empty: at the oldest binlog of the source
# relay-binlog-gtid: ""
# relay-dir: "./relay-dir"

from:
  host: "127.0.0.1"
  port: 3306
  user: "unshard"
  # plain, `env:NAME`, `file:PATH`, or what `unshard ctl encrypt` prints
  password: "env:SHOP_01_PASSWORD"

# which events of this source no task gets
# filters:
#   - schema-pattern: "shop"
#     table-pattern: "*"
#     events: ["truncate table"]
#     action: Ignore

# how long relay files are kept that nobody needs any more
# purge:
#   interval: 3600               # seconds between two looks
#   expires: 0                   # hours; 0: no limit of age
#   remain-space: 15             # GB that stay free on the disk
"""
"""The source file that `operate-source -p` prints, to begin with."""


Workers = Annotated[list[str] | None, typer.Argument(metavar="WORKER…", help="DM's old way: on these workers.")]


def operate_source(
    context: typer.Context,
    op: Annotated[Literal["create", "update", "stop", "show"] | None, typer.Argument(show_default=False)] = None,
    files: Annotated[list[str] | None, typer.Argument(metavar="SOURCE.yaml…")] = None,
    worker: Annotated[
        str, typer.Option("--worker", "-w", metavar="WORKER", help="Bind the source to this worker.")
    ] = "",
    sample: Annotated[
        bool, typer.Option("--print-sample-config", "-p", help="Print a sample source file and exit.")
    ] = False,
) -> None:
    """Create, change, remove or show the cluster's sources. `stop` and `show` take names by -s too."""
    session: CtlSession = context.obj
    words = tuple(files or ())
    if sample:
        typer.echo(SAMPLE_SOURCE, nl=False)
        return
    if op is None:
        raise typer.BadParameter("say create, update, stop or show")
    if op in ("create", "update"):
        if not words:
            raise typer.BadParameter(f"{op} needs the file of a source")
        texts = guarded(lambda: tuple(text_of(word) for word in words))
        ask(session, OperateSource(op=op, config=texts, worker=worker))
        return
    names = guarded(lambda: source_ids((*words, *session.sources)))
    if op == "stop" and not names:
        raise typer.BadParameter("name the sources to stop, by file or with -s")
    ask(session, OperateSource(op=op, source_id=names))


def update_source(
    context: typer.Context,
    file: Annotated[str, typer.Argument(metavar="SOURCE.yaml", help="The new file of an existing source.")],
) -> None:
    """Replace a source's file. Pause its tasks before, and resume them after."""
    ask(context.obj, guarded(lambda: UpdateSource(config=text_of(file))))


def transfer_source(
    context: typer.Context,
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="A source's id, or its file.")],
    worker: Annotated[str, typer.Argument(metavar="WORKER", help="A worker that is free.")],
) -> None:
    """Move a source to another worker; its tasks go on there."""
    ask(context.obj, guarded(lambda: TransferSource(source=source_id(source), worker=worker)))


def start_relay(context: typer.Context, workers: Workers = None) -> None:
    """Keep the relay log of a source (-s) also while no task needs it."""
    _relay(context, lambda sources: StartRelay(sources=sources, workers=tuple(workers or ())), one=True)


def stop_relay(context: typer.Context, workers: Workers = None) -> None:
    """Keep the relay log of a source (-s) only while a task needs it."""
    _relay(context, lambda sources: StopRelay(sources=sources, workers=tuple(workers or ())), one=True)


def pause_relay(context: typer.Context) -> None:
    """Pause the relays of sources (-s)."""
    _relay(context, lambda sources: PauseRelay(sources=sources))


def resume_relay(context: typer.Context) -> None:
    """Resume the relays of sources (-s)."""
    _relay(context, lambda sources: ResumeRelay(sources=sources))


def purge_relay(
    context: typer.Context,
    filename: Annotated[str, typer.Option("--filename", "-f", metavar="BINLOG", help="Files before this one.")] = "",
    sub_dir: Annotated[
        str,
        typer.Option("--sub-dir", metavar="FOLDER", help="Its sub-directory of the relay log; default: the newest."),
    ] = "",
    time: Annotated[
        str,
        typer.Option(
            "--time", "-t", metavar="TIME", help="Files last written before: 'YYYY-MM-DD HH:MM:SS' (UTC), or RFC 3339."
        ),
    ] = "",
) -> None:
    """Delete relay files of sources (-s), as far as no task needs them: before a file, or before a time."""
    if not (filename or time):
        raise typer.BadParameter("name a file with --filename, or a time with --time")
    _relay(context, lambda sources: PurgeRelay(sources=sources, filename=filename, sub_dir=sub_dir, time=time))


def _relay(context: typer.Context, request: Callable[[Any], Request], *, one: bool = False) -> None:
    session: CtlSession = context.obj
    sources = guarded(lambda: source_ids(session.sources))
    if not sources or (one and len(sources) > 1):
        raise typer.BadParameter("name one source with -s" if one else "name the sources with -s")
    ask(session, request(sources))


def register(table: typer.Typer) -> None:
    """Add the verbs of this module to the table."""
    table.command("operate-source")(operate_source)
    table.command("update-source")(update_source)
    table.command("transfer-source")(transfer_source)
    table.command("start-relay")(start_relay)
    table.command("stop-relay")(stop_relay)
    table.command("pause-relay")(pause_relay)
    table.command("resume-relay")(resume_relay)
    table.command("purge-relay")(purge_relay)
