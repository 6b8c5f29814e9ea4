"""Rows of one table into its files: a new file when one is full, each made durable when it is closed."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

import pyarrow as pa

from unshard.crash_point import reach
from unshard.dump.files import checksum, disk, sync_file
from unshard.dump.metadata import DumpedFile
from unshard.dump.parquet_file import ParquetFile
from unshard.dump.read import dump_schema
from unshard.dump.sql_file import SqlFile
from unshard.model.table import Table

Format = Literal["parquet", "sql"]


ALIKE = 8
"""Files of one size: as many as there are connections that load them, and more."""


class DumpWriter(Protocol):
    """What `ParquetFile` and `SqlFile` have in common. `size` is in bytes, about what the file will be."""

    rows: int

    @property
    def size(self) -> int: ...

    def write(self, batch: pa.RecordBatch) -> None: ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class FileLimits:
    """When a data file is full: whichever of rows and bytes comes first.

    With `first_rows` the first files of a table are smaller, so that several connections can load a table that is not
    large: `ALIKE` files of so many rows, as many of twice as many, and so on up to `rows`. 0: each takes `rows`.
    """

    format: Format
    rows: int
    size: int
    statement_bytes: int
    first_rows: int = 0

    def rows_of(self, number: int) -> int:
        """The rows that file `number`, from 0 on, takes."""
        if not self.first_rows:
            return self.rows
        return min(self.rows, self.first_rows << min(number // ALIKE, 60))


def write_files(parts: Path, table: Table, batches: Iterable[pa.RecordBatch], limits: FileLimits) -> list[DumpedFile]:
    """Write all batches; the files, in order, durable, under names in `parts` that no other attempt has.

    Their names are durable once the folder is synced (`publish`); a record whose files a power cut has taken is
    dropped when the dump goes on. Final names are still "". A table without rows gives no file. Raises DumpError
    DUMP-009 when the disk refuses.
    """
    attempt = _Attempt(parts, table, limits)
    try:
        with disk(parts, str(table.name)):
            for batch in batches:
                attempt.write(batch)
            attempt.end_file()
    except BaseException:
        attempt.abandon()
        raise
    return attempt.written


@dataclass(slots=True)
class _Attempt:
    """The files of one attempt at some rows, at most one of them open."""

    parts: Path
    table: Table
    limits: FileLimits
    written: list[DumpedFile] = field(default_factory=list)
    _file: DumpWriter | None = None
    _path: Path = field(default_factory=Path)

    def write(self, batch: pa.RecordBatch) -> None:
        while batch.num_rows:
            if self._file is None:
                self._path = self.parts / f"{os.urandom(8).hex()}.{self.limits.format}"
                self._file = _open(self._path, self.table, self.limits)
            limit = self.limits.rows_of(len(self.written))
            room = limit - self._file.rows
            self._file.write(batch.slice(0, room))
            batch = batch.slice(room)
            if self._file.rows >= limit or self._file.size >= self.limits.size:
                self.end_file()

    def end_file(self) -> None:
        """Make the open file durable, if there is one."""
        if self._file is not None:
            self.written.append(_close(self._file, self._path))
            self._file = None

    def abandon(self) -> None:
        """Remove what it wrote: another attempt begins with other files, and a full disk needs the room."""
        if self._file is not None:
            with suppress(OSError, pa.ArrowException):
                self._file.close()
        for path in (self._path, *(self.parts / file.part for file in self.written)):
            with suppress(OSError):
                path.unlink()


def _open(path: Path, table: Table, limits: FileLimits) -> DumpWriter:
    schema = dump_schema(table)
    if limits.format == "parquet":
        return ParquetFile(path, schema)
    return SqlFile(path, table, schema.names, limits.statement_bytes)


def _close(file: DumpWriter, path: Path) -> DumpedFile:
    reach("dump-file-before")
    file.close()
    sync_file(path)
    reach("dump-file-after")
    return DumpedFile("", path.name, file.rows, path.stat().st_size, checksum(path))
