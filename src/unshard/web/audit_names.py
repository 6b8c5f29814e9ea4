"""Extracts from a request the names that the audit log writes. Nothing else of a request's body is logged."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl

from unshard.config.document import parse_document
from unshard.errors import ConfigError

_NAMED = (
    *("task", "tasks", "name", "names", "task_name", "type", "op", "level", "id", "owner", "action", "force_remove"),
    *("source", "sources", "source_id", "source_name", "source_name_list", "worker", "workers", "worker_name"),
    *("worker_name_list", "filename", "relay_binlog_name", "sub_dir", "relay_dir", "time", "binlog_pos"),
    *("database", "table", "schema_source", "from_source", "from_target"),
    *("start_time", "remove_meta", "reset", "overwrite", "force", "keep_meta", "all", "all_task"),
)
"""Keys of a body or query that name what is changed, or say how; a value is written only where it looks like a name."""

_OBJECTS = {"task": "name", "source": "source_name"}
"""Keys that hold an object in DM's REST, and what it is named by."""

_FILES = {"task": ("task", "name"), "config": ("source", "source-id")}
"""Keys that hold the text of a file, or several: what it describes, and where its name stands in it."""

_WITH_SPACES = frozenset({"id", "time", "start_time", "database", "table"})
_NAME = re.compile(r"[\w.@`*$:|+-]{1,400}\Z")
_LINE = re.compile(r"[^\x00-\x1f\x7f]{1,400}\Z")
_CAPITAL = re.compile(r"(?<!^)[A-Z]")
_SHOWN_AT_MOST = 32


def names_in(path: Mapping[str, Any], query: Mapping[str, str], body: bytes) -> dict[str, Any]:
    """Return the names in a request: in its path, and in the keys of query and JSON body that have names.

    Nothing else is returned. A file that is sent whole is named by its own name.
    """
    named: dict[str, Any] = {key: str(value)[:160] for key, value in path.items()}
    try:
        given = json.loads(body) if body else {}
    except (ValueError, RecursionError):
        given = _form_fields(body)
    form: dict[str, Any] = dict(query)
    if isinstance(given, dict):
        form.update((_CAPITAL.sub(r"_\g<0>", key).lower(), value) for key, value in given.items())
    for key in (*_NAMED, "config"):
        value = form.get(key)
        found = [one for each in _some(value) if (one := _shown(key, each))]
        if found:
            named.setdefault(_FILES[key][0] if key in _FILES else key, found if isinstance(value, list) else found[0])
    return named


def _form_fields(body: bytes) -> dict[str, str]:
    """Return the fields of a form that a browser sends."""
    try:
        return dict(parse_qsl(body.decode("ascii"), max_num_fields=200))
    except ValueError:
        return {}


def _some(value: Any) -> list[Any]:
    return value[:_SHOWN_AT_MOST] if isinstance(value, list) else [value]


def _shown(key: str, value: Any) -> str | int | bool | None:
    """Return the value itself, or the name of the object or file that it is; None where none of it may be shown."""
    if key in _OBJECTS and isinstance(value, dict):
        value = value.get(_OBJECTS[key])
    elif key in _FILES and isinstance(value, str) and not _NAME.match(value):
        try:
            value = parse_document(value, key).data.get(_FILES[key][1])
        except (ConfigError, RecursionError):
            return None
    if key == "id" and type(value) is int:
        return value or None
    fits = _LINE if key in _WITH_SPACES else _NAME
    return value if value is True or (isinstance(value, str) and fits.match(value)) else None
