"""The audit log: who asked to change what, from where, when, and what came of it. One JSON object a line.

A request is written before it runs and again when it is answered, with the same `id`; one without an answer
died on the way. A request that can't be written does not run. No body is ever written, only names from it.
"""

from __future__ import annotations

import json
import os
import re
import secrets
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import Any
from urllib.parse import parse_qsl

from unshard.config.document import parse_document
from unshard.errors import ClusterError, ConfigError
from unshard.log import logger

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
_BLOCK_BYTES = 1 << 20


class AuditLog:
    """An append-only file, made for this user alone; one that was renamed is begun anew. Thread-safe.

    Without a file the lines go to the process's log.
    """

    def __init__(self, file: str) -> None:
        self._file = file
        self._lock = Lock()
        if file:
            self._append("")

    def asked(self, who: Mapping[str, str], verb: str, named: Mapping[str, Any]) -> str:
        """Write that a request is about to be carried out; the id for its answer. Raises ClusterError CLUSTER-058."""
        number = secrets.token_hex(8)
        self._write({"id": number, "phase": "asked", **who, "verb": verb, "object": dict(named)})
        return number

    def answered(self, number: str, who: Mapping[str, str], verb: str, status: int, result: str) -> None:
        """Write what came of it. A log that is full now leaves a line in the process's log instead."""
        line = {"id": number, "phase": "answered", **who, "verb": verb, "status": status, "result": result}
        try:
            self._write(line)
        except ClusterError as error:
            logger("audit").error("answer not written", why=error.cause, **line)

    def refused(self, who: Mapping[str, str], verb: str, why: str) -> None:
        """Write a request that its caller had no right to."""
        try:
            self._write({"id": secrets.token_hex(8), "phase": "refused", **who, "verb": verb, "result": why})
        except ClusterError as error:
            logger("audit").error("refusal not written", why=error.cause, verb=verb, **who)

    def newest(self, count: int) -> list[dict[str, Any]]:
        """Return the last lines, oldest first.

        A line that a full disk has cut is skipped, and so are the lines of files that were renamed.
        """
        if not self._file:
            return []
        return list(_read(_last(Path(self._file), count)))

    def _write(self, line: Mapping[str, Any]) -> None:
        whole = {"time": datetime.now(UTC).isoformat(timespec="milliseconds"), **line}
        if self._file:
            self._append(json.dumps(whole, ensure_ascii=True) + "\n")
        else:
            logger("audit").info("audit", **whole)

    def _append(self, text: str) -> None:
        with self._lock:
            try:
                file = os.open(self._file, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
                try:
                    data = _behind(file) + text.encode()
                    if os.write(file, data) < len(data):
                        raise OSError(None, "the disk is full")
                    os.fsync(file)
                finally:
                    os.close(file)
            except OSError as error:
                values = {"file": self._file}
                raise ClusterError("CLUSTER-058", cause=error.strerror or "", values=values) from None


def _behind(file: int) -> bytes:
    """Return the bytes that end the line before, where a full disk has cut it. Else both lines would be lost."""
    size = os.fstat(file).st_size
    return b"\n" if size and os.pread(file, 1, size - 1) != b"\n" else b""


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


def _last(path: Path, count: int) -> list[str]:
    """Return the last lines of a file that may have grown for years: it is read from its end."""
    found = b""
    try:
        with path.open("rb") as file:
            left = file.seek(0, os.SEEK_END)
            while left and found.count(b"\n") <= count:
                left, end = max(0, left - _BLOCK_BYTES), left
                file.seek(left)
                found = file.read(end - left) + found
    except FileNotFoundError:
        return []
    return found.decode("utf-8", "replace").splitlines()[-count:]


def _read(lines: Iterable[str]) -> Iterable[dict[str, Any]]:
    for line in lines:
        try:
            yield json.loads(line)
        except ValueError:
            continue
