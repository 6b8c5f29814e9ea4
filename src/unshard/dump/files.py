"""Names of dump files.

Files that are being written are in the folder `parts` of a run. Their names are `MARK-RANDOM.parquet`, and
`MARK-RANDOM-ROWS.parquet` when they are whole. Only the progress of a dump reads these names.
"""

from __future__ import annotations

import hashlib
import os
import re
import zlib
from pathlib import Path

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
