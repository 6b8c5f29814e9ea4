"""Names of dump files, and writing that survives a power cut: temporary name, fsync, rename.

Files that are being written are in the folder `parts` of a run. Their names are `MARK-RANDOM.parquet`, and
`MARK-RANDOM-ROWS.parquet` when they are whole. Only the progress of a dump reads these names.
"""

from __future__ import annotations

import hashlib
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
    """Return a schema or table name as part of a file name, escaped as dumpling does (`%2E` for a dot)."""
    return _ODD.sub(lambda found: f"%{ord(found[0]):02X}", name)


def unescape_name(name: str) -> str:
    """Return the name that `escape_name` escaped."""
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), name)


def stem(table: TableName) -> str:
    """Return `schema.table`, escaped: the prefix of the names of all files of a table."""
    return f"{escape_name(table.schema)}.{escape_name(table.table)}"


def data_name(table: TableName, number: int, suffix: str) -> str:
    """Return a data file's name, `schema.table.00001.parquet`; numbers count from 1."""
    return f"{stem(table)}.{number:05d}.{suffix}"


def table_of_file(name: str) -> TableName | None:
    """Return the table that a data file has rows of, by the file's name; None for another file."""
    schema, _, rest = name.partition(".")
    table, _, rest = rest.partition(".")
    if not rest or table.endswith("-schema"):
        return None
    return TableName(unescape_name(schema), unescape_name(table))


def table_schema_name(table: TableName) -> str:
    """Return the name of the file with a table's CREATE TABLE."""
    return f"{stem(table)}-schema.sql"


def database_schema_name(schema: str) -> str:
    """Return the name of the file with a schema's CREATE DATABASE."""
    return f"{escape_name(schema)}-schema-create.sql"


def mark_of(table: TableName) -> str:
    """Return the prefix of the names of a table's parts. It has one length, however long the table's name is."""
    return hashlib.blake2b(stem(table).encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def new_part(parts: Path, table: TableName, suffix: str) -> Path:
    """Return a path for a new part that no other attempt has."""
    return parts / f"{mark_of(table)}-{os.urandom(8).hex()}.{suffix}"


def counted_part(path: Path, rows: int) -> Path:
    """Return the name of a part that is whole."""
    return path.with_stem(f"{path.stem}-{rows}")


def told_by_part(name: str) -> tuple[str, int]:
    """Return the table's mark and the row count that a part's name has; 0 rows while the part is being written."""
    mark, _, rest = name.partition(".")[0].partition("-")
    rows = rest.partition("-")[2]
    return mark, int(rows) if rows.isdecimal() else 0


def checksum(path: Path) -> int:
    """Return the CRC-32 of a file's bytes."""
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
