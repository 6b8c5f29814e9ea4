"""The audit log: who asked to change what, from where, when, and what came of it. One JSON object a line.

A request is written before it is carried out and again when it is answered, with the same `id`; one without an answer
died on the way. What can't be written is not carried out. No body is ever written, only names from it.
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

from unshard.errors import ClusterError
from unshard.log import logger

_NAMED = ("task", "tasks", "name", "task_name", "source", "sources", "source_id", "source_name", "source_name_list",
          "worker", "worker_name", "lock_id", "op", "database", "table")  # fmt: skip
"""Keys of a body whose value names what is changed; a value is written only where it looks like a name."""

_NAME = re.compile(r"[\w.@`*-]{1,160}\Z")
_SHOWN_AT_MOST = 32
_BLOCK_BYTES = 1 << 20


class AuditLog:
    """An append-only file, made for this user alone; one that was moved away is begun anew. Thread-safe.

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
        """The last lines, oldest first; a torn one at the end of a full disk is left out, and what was moved away."""
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
                file = os.open(self._file, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
                try:
                    data = text.encode()
                    if os.write(file, data) < len(data):
                        raise OSError(None, "the disk is full")
                    os.fsync(file)
                finally:
                    os.close(file)
            except OSError as error:
                values = {"file": self._file}
                raise ClusterError("CLUSTER-058", cause=error.strerror or "", values=values) from None


def names_in(path: Mapping[str, Any], body: bytes) -> dict[str, Any]:
    """What a request names: from its path and from the keys of its JSON body that hold names. Never anything else."""
    named: dict[str, Any] = {key: str(value)[:160] for key, value in path.items()}
    try:
        given = json.loads(body) if body else {}
    except (ValueError, RecursionError):
        return named
    if isinstance(given, dict):
        for key in _NAMED:
            found = _names(given.get(key))
            if found:
                named.setdefault(key, found if isinstance(given[key], list) else found[0])
    return named


def _names(value: Any) -> list[str]:
    values = value if isinstance(value, list) else [value]
    return [one for one in values[:_SHOWN_AT_MOST] if isinstance(one, str) and _NAME.match(one)]


def _last(path: Path, count: int) -> list[str]:
    """The last lines of a file that may have grown for years: it is read from its end."""
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
