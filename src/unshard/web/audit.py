"""The audit log: who asked to change what, from where, when, and what came of it. One JSON object a line.

A request is written before it runs and again when it is answered, with the same `id`; one without an answer
died on the way. A request that can't be written does not run. No body is ever written, only names from it.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import Any

from unshard.errors import ClusterError
from unshard.log import logger

_BLOCK_BYTES = 1 << 20


class AuditLog:
    """The audit log in an append-only file, which only this user may read. Thread-safe.

    A file that was renamed is begun anew. Without a file the lines go to the process's log.
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
