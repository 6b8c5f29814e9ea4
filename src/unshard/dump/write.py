"""Rows of one table into its files: a new file when one is full, each made durable when it is closed."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

import pyarrow as pa

from unshard.crash_point import reach
from unshard.dump.files import checksum, sync_file, sync_folder
from unshard.dump.metadata import DumpedFile
from unshard.dump.parquet_file import ParquetFile
from unshard.dump.read import dump_schema
from unshard.dump.sql_file import SqlFile
from unshard.errors import DumpError, Where
from unshard.model.table import Table

Format = Literal["parquet", "sql"]


class DataFile(Protocol):
    """What `ParquetFile` and `SqlFile` have in common. `size` is in bytes, about what the file will be."""

    rows: int

    @property
    def size(self) -> int: ...

    def write(self, batch: pa.RecordBatch) -> None: ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class FileLimits:
    """When a data file is full: whichever of rows and bytes comes first."""

    format: Format
    rows: int
    size: int
    statement_bytes: int


def write_files(parts: Path, table: Table, batches: Iterable[pa.RecordBatch], limits: FileLimits) -> list[DumpedFile]:
    """Write all batches; the files, in order, durable, under names in `parts` that no other attempt has.

    Final names are still "". A table without rows gives no file. Raises DumpError DUMP-009 when the disk refuses.
    """
    written: list[DumpedFile] = []
    file: DataFile | None = None
    path = parts
    try:
        for batch in batches:
            left = batch
            while left.num_rows:
                if file is None:
                    path = parts / f"{os.urandom(8).hex()}.{limits.format}"
                    file = _open(path, table, limits)
                room = limits.rows - file.rows
                file.write(left.slice(0, room))
                left = left.slice(room)
                if file.rows >= limits.rows or file.size >= limits.size:
                    written.append(_close(file, path))
                    file = None
        if file is not None:
            written.append(_close(file, path))
    except OSError as error:
        raise DumpError("DUMP-009", Where(table=str(table.name), file=str(path)), cause=str(error)) from error
    sync_folder(parts)
    return written


def _open(path: Path, table: Table, limits: FileLimits) -> DataFile:
    schema = dump_schema(table)
    if limits.format == "parquet":
        return ParquetFile(path, schema)
    return SqlFile(path, table, schema.names, limits.statement_bytes)


def _close(file: DataFile, path: Path) -> DumpedFile:
    reach("dump-file-before")
    file.close()
    sync_file(path)
    reach("dump-file-after")
    return DumpedFile("", path.name, file.rows, path.stat().st_size, checksum(path))
