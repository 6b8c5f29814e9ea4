"""Names of dump files, and writing that survives a power cut: temporary name, fsync, rename."""

from __future__ import annotations

import json
import os
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from unshard.errors import DumpError, Where
from unshard.model.table import TableName

_ODD = re.compile(r'[\x00-\x1f%"*./:<>?\\|]|-(?=schema)', re.IGNORECASE)
_ESCAPED = re.compile(r"%([0-9A-Fa-f]{2})")
_BLOCK_BYTES = 1 << 20


def escape_name(name: str) -> str:
    """A schema or table name as part of a file name, as dumpling escapes it (`%2E` for a dot)."""
    return _ODD.sub(lambda found: f"%{ord(found[0]):02X}", name)


def unescape_name(name: str) -> str:
    """The name that `escape_name` wrote."""
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), name)


def stem(table: TableName) -> str:
    """`schema.table`, escaped: what the names of all files of a table begin with."""
    return f"{escape_name(table.schema)}.{escape_name(table.table)}"


def data_name(table: TableName, number: int, suffix: str) -> str:
    """`schema.table.00001.parquet`; numbers count from 1."""
    return f"{stem(table)}.{number:05d}.{suffix}"


def table_schema_name(table: TableName) -> str:
    return f"{stem(table)}-schema.sql"


def database_schema_name(schema: str) -> str:
    return f"{escape_name(schema)}-schema-create.sql"


def checksum(path: Path) -> int:
    """CRC-32 of a file's bytes."""
    value = 0
    with path.open("rb") as file:
        while block := file.read(_BLOCK_BYTES):
            value = zlib.crc32(block, value)
    return value


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
    """What the disk refuses in here becomes DumpError DUMP-009 about `path`."""
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
    """The same, but that a power cut may bring the old file back until the caller has synced the folder."""
    with disk(path), _temporary(path, text) as temporary:
        temporary.replace(path)


def write_once(path: Path, form: Any) -> bool:
    """Write JSON to `path` unless it is there already; whether this call wrote it. Safe between processes.

    The file is whole or not there; a power cut may lose it until the caller has synced the folder.

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
    """A durable file beside `path`; removed at the end, if it is still there."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{os.urandom(4).hex()}.tmp")
    try:
        with temporary.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        yield temporary
    finally:
        temporary.unlink(missing_ok=True)
