"""Commands that show, export and import configurations.

`config export` and `config import` take all tasks and sources as files, in DM's layout: `tasks/<name>.yaml`,
`sources/<source-id>.yaml`, and `relay_workers.json`, which has for each source the workers whose relay was started by
name. The files hold passwords as the cluster stores them: only their owner may read them. dmctl's old forms of the
verbs are here too.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal
from urllib.parse import quote

import typer

from unshard.api.verbs import Config, ConfigExport, OperateSource, StartTask, UpdateSource, UpdateTask
from unshard.config.document import text_of
from unshard.ctl.session import CtlSession, ask, conclude, guarded
from unshard.ctl.words import source_id, task_name
from unshard.errors import ClusterError, ConfigError, Where

if TYPE_CHECKING:
    from unshard.ctl.client import MasterClient

TASKS, SOURCES, RELAY_WORKERS = "tasks", "sources", "relay_workers.json"
_THERE_ALREADY = ("already exist",)


def export_to(folder: Path, client: MasterClient) -> dict[str, Any]:
    """Write what the cluster has; files of the same names are replaced. Raises ConfigError CONFIG-002."""
    answer = client.ask(ConfigExport())
    if not answer["result"]:
        return answer
    try:
        for kind in (TASKS, SOURCES):
            (folder / kind).mkdir(parents=True, exist_ok=True)
            for name, text in answer[kind].items():
                _write(folder / kind / f"{file_name(name)}.yaml", text)
        _write(folder / RELAY_WORKERS, json.dumps(answer.get("relayWorkers") or {}, indent=4))
    except OSError as error:
        raise ConfigError("CONFIG-002", Where(file=str(error.filename or folder)), error.strerror or "") from None
    counts = f"{len(answer[TASKS])} tasks and {len(answer[SOURCES])} sources"
    return {"result": True, "msg": f"export configs to directory `{folder}` succeed: {counts}"}


def import_from(folder: Path, client: MasterClient) -> dict[str, Any]:
    """Create the sources, then start the tasks; stops at the first that the master refuses.

    What is there already stays as it is. May run again. Raises ClusterError CLUSTER-046, ConfigError CONFIG-002.
    """
    tasks, sources = (sorted((folder / kind).glob("*.yaml")) for kind in (TASKS, SOURCES))
    if not tasks and not sources and not (folder / RELAY_WORKERS).is_file():
        raise ClusterError("CLUSTER-046", values={"folder": folder})
    for path in sources:
        answer = client.ask(OperateSource(op="create", config=(text_of(path),)))
        if not _taken(answer):
            return _refused(path, answer)
    for path in tasks:
        answer = client.ask(StartTask(task=text_of(path)))
        if not _taken(answer):
            return _refused(path, answer)
    return {
        "result": True,
        "msg": f"import configs from directory `{folder}` succeed: {len(tasks)} tasks and {len(sources)} sources",
    }


def file_name(name: str) -> str:
    """Return a name as a file name, whatever is in it: a leading `.` and `/` would lead to other folders."""
    safe = quote(name, safe=" @,;=+")
    return f"%2E{safe[1:]}" if safe.startswith(".") else safe


def _taken(answer: Mapping[str, Any]) -> bool:
    """Return whether the request was done, or there was nothing to do."""
    if answer["result"]:
        return True
    refused = [one for one in answer.get("sources") or () if not one.get("result")]
    messages = [str(one.get("msg", "")) for one in refused] or [str(answer.get("msg", ""))]
    return all(any(words in message for words in _THERE_ALREADY) for message in messages)


def _refused(path: Path, answer: Mapping[str, Any]) -> dict[str, Any]:
    return {**answer, "msg": f"{path}: {answer.get('msg') or 'refused'}"}


def _write(path: Path, text: str) -> None:
    """Replace a file by one that only its owner may read."""
    fresh = path.with_name(f"{path.name}.new")
    with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
    fresh.replace(path)


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
    """Run `config` in dmctl's old form."""
    _config(context, kind, name, path)


def get_task_config(
    context: typer.Context,
    name: Name,
    path: Annotated[Path | None, typer.Option("--file", "-f", metavar="FILE")] = None,
) -> None:
    """Run `config task` in dmctl's old form."""
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
    """Add the verbs of this module to the table."""
    table.add_typer(config, name="config")
    table.command("get-config", hidden=True)(get_config)
    table.command("get-task-config", hidden=True)(get_task_config)
