"""Durable file writes, which survive a power cut: temporary name, fsync, rename."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from unshard.errors import DumpError, Where


def sync_file(path: Path) -> None:
    """Make a file's bytes durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    sync_file(folder)


@contextmanager
def disk(path: Path, table: str | None = None) -> Iterator[None]:
    """Turn an OSError of the block into DumpError DUMP-009 about `path`."""
    try:
        yield
    except OSError as error:
        raise DumpError("DUMP-009", Where(table=table, file=str(path)), cause=str(error)) from error


def write_durably(path: Path, text: str) -> None:
    """Replace `path` by `text` so that after any crash it is the old file or the new one, whole.

    Raises DumpError DUMP-009 when the disk refuses.
    """
    with disk(path), _temporary(path, text) as temporary:
        temporary.replace(path)
        sync_folder(path.parent)


def write_whole(path: Path, text: str) -> None:
    """As `write_durably`, but a power cut may bring the old file back until the caller has synced the folder."""
    with disk(path), _temporary(path, text) as temporary:
        temporary.replace(path)


def write_once(path: Path, form: Any) -> bool:
    """Write JSON to `path` unless it exists already; return whether this call wrote it. Safe between processes.

    The file is whole or does not exist; a power cut may lose it until the caller has synced the folder.

    Raises DumpError DUMP-009 when the disk refuses.
    """
    with disk(path), _temporary(path, json.dumps(form)) as temporary:
        try:
            os.link(temporary, path)
        except FileExistsError:
            return False
        return True


@contextmanager
def _temporary(path: Path, text: str) -> Iterator[Path]:
    """Write the text durably to a new file beside `path`; at the end, remove the file if it still exists."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{os.urandom(4).hex()}.tmp")
    try:
        with temporary.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        yield temporary
    finally:
        temporary.unlink(missing_ok=True)
