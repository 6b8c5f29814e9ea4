"""Names of dump files, and writing that survives a power cut: temporary name, fsync, rename."""

from __future__ import annotations

import json
import os
import re
import zlib
from pathlib import Path
from typing import Any

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


def write_durably(path: Path, text: str) -> None:
    """Replace `path` by `text` so that after any crash it is the old file or the new one, whole."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with temporary.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    sync_folder(path.parent)


def write_once(path: Path, form: Any) -> bool:
    """Write JSON to `path` unless it is there already; whether this call wrote it. Safe between processes."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{os.urandom(4).hex()}.tmp")
    with temporary.open("w", encoding="utf-8") as file:
        json.dump(form, file)
        file.flush()
        os.fsync(file.fileno())
    try:
        os.link(temporary, path)
    except FileExistsError:
        return False
    finally:
        temporary.unlink()
    sync_folder(path.parent)
    return True
