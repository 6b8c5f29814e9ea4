"""`config export` and `config import`: all tasks and sources as files, in DM's layout.

`tasks/<name>.yaml`, `sources/<source-id>.yaml`, and `relay_workers.json`, which has the workers whose relay was
started by name, for each source. The files hold passwords as the cluster keeps them: only their owner may read them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from unshard.api.verbs import ConfigExport, OperateSource, StartTask
from unshard.config.document import text_of
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
    """A name as that of a file, whatever is in it; `.` at its begin and `/` would lead elsewhere."""
    safe = quote(name, safe=" @,;=+")
    return f"%2E{safe[1:]}" if safe.startswith(".") else safe


def _taken(answer: Mapping[str, Any]) -> bool:
    """Whether it was done, or there is nothing to do: it was there already."""
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
