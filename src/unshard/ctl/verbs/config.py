"""Verbs that show and carry configurations, and dmctl's old forms of them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from unshard.api.verbs import Config, UpdateSource, UpdateTask
from unshard.config.document import text_of
from unshard.ctl.folder import export_to, import_from
from unshard.ctl.session import CtlSession, ask, conclude, guarded
from unshard.ctl.words import source_id, task_name
from unshard.errors import ConfigError, Where

Kind = Literal["task", "source", "master", "worker", "task-template"]
Name = Annotated[str, typer.Argument(metavar="NAME")]
Save = Annotated[
    Path | None, typer.Option("--path", "-p", metavar="FILE", help="Write it to this file; default: print it.")
]
Folder = Annotated[Path, typer.Option("--dir", "-d", metavar="FOLDER", help="Of tasks/, sources/, relay_workers.json.")]
New = Annotated[str, typer.Argument(metavar="FILE", hidden=True)]

config = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Show configurations that are in force, passwords as ******; carry all of them to another cluster.",
)


@config.command()
def task(context: typer.Context, name: Name, file: New = "", path: Save = None) -> None:
    """Print or save a task."""
    if name == "update" and file:
        ask(context.obj, guarded(lambda: UpdateTask(task=text_of(file))))
        return
    _config(context, "task", name, path)


@config.command()
def source(context: typer.Context, name: Name, file: New = "", path: Save = None) -> None:
    """Print or save a source."""
    if name == "update" and file:
        ask(context.obj, guarded(lambda: UpdateSource(config=text_of(file))))
        return
    _config(context, "source", name, path)


@config.command()
def master(context: typer.Context, name: Name, path: Save = None) -> None:
    """Print or save a master's own settings."""
    _config(context, "master", name, path)


@config.command()
def worker(context: typer.Context, name: Name, path: Save = None) -> None:
    """Print or save a worker's own settings."""
    _config(context, "worker", name, path)


@config.command("task-template")
def task_template(context: typer.Context, name: Name, path: Save = None) -> None:
    """Print or save a template of a task."""
    _config(context, "task-template", name, path)


@config.command("export")
def export(context: typer.Context, folder: Folder = Path("configs")) -> None:
    """Write every task and source to a folder, in DM's layout, with passwords as the cluster keeps them."""
    session: CtlSession = context.obj
    conclude(session, "config-export", lambda: export_to(folder, session.client))


@config.command("import")
def import_(context: typer.Context, folder: Folder = Path("configs")) -> None:
    """Create the sources of a folder and start its tasks. What is there already is left as it is.

    Relays that workers were named for are not started; they stand in relay_workers.json.
    """
    session: CtlSession = context.obj
    conclude(session, "config-import", lambda: import_from(folder, session.client))


def get_config(
    context: typer.Context,
    kind: Annotated[Kind, typer.Argument()],
    name: Name,
    path: Annotated[Path | None, typer.Option("--file", "-f", metavar="FILE")] = None,
) -> None:
    """dmctl's old form of `config`."""
    _config(context, kind, name, path)


def get_task_config(
    context: typer.Context,
    name: Name,
    path: Annotated[Path | None, typer.Option("--file", "-f", metavar="FILE")] = None,
) -> None:
    """dmctl's old form of `config task`."""
    _config(context, "task", name, path)


def _config(context: typer.Context, kind: Kind, word: str, path: Path | None) -> None:
    session: CtlSession = context.obj
    names = {"task": task_name, "source": source_id}
    request = guarded(lambda: Config(type=kind, name=names.get(kind, str)(word)))
    if path is None:
        ask(session, request)
        return

    def saved() -> dict[str, object]:
        answer = session.client.ask(request)
        if not answer["result"]:
            return answer
        try:
            path.write_text(answer["cfg"], encoding="utf-8")
        except OSError as error:
            raise ConfigError("CONFIG-002", Where(file=str(path)), error.strerror or "") from None
        return {"result": True, "msg": f"written to {path}"}

    conclude(session, Config.verb, saved)


def register(table: typer.Typer) -> None:
    table.add_typer(config, name="config")
    table.command("get-config", hidden=True)(get_config)
    table.command("get-task-config", hidden=True)(get_task_config)
