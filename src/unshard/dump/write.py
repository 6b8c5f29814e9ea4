"""Writes rows into files, of Parquet or of INSERT statements.

A new file begins when one is full; each is made durable when it is closed, while the next one is written.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

import pyarrow as pa

from unshard.crash_point import reach
from unshard.dump.durable import disk, sync_file
from unshard.dump.files import checksum, counted_part, new_part
from unshard.dump.metadata import DumpedFile
from unshard.dump.parquet_file import ParquetFile
from unshard.dump.read import dump_schema
from unshard.dump.sql_file import SqlFile
from unshard.model.table import Table
from unshard.mysql.altered_values import raw_columns

Format = Literal["parquet", "sql"]


ALIKE = 8
"""The number of files of one size: as many as there are connections that load them, and more."""


class DumpWriter(Protocol):
    """The common interface of `ParquetFile` and `SqlFile`. `size` is in bytes, about what the file will have."""

    rows: int

    @property
    def size(self) -> int:
        """Bytes of the file so far, about what the closed file will have."""

    def write(self, batch: pa.RecordBatch) -> None:
        """Add the rows of the batch."""

    def close(self) -> None:
        """Write what is pending and close the file. It takes no rows after that."""


@dataclass(frozen=True, slots=True)
class FileLimits:
    """The size at which a data file is full: `rows` rows or `size` bytes, whichever comes first.

    An INSERT of an SQL file ends at `statement_bytes`.

    With `first_rows` the first files of a table are smaller, so that several connections can load a table that is not
    large: `ALIKE` files of `first_rows` rows, then as many of twice the rows, and so on up to `rows`. 0: each takes
    `rows`.
    """

    format: Format
    rows: int
    size: int
    statement_bytes: int
    first_rows: int = 0

    def rows_of(self, number: int) -> int:
        """Return the number of rows that file `number`, from 0 on, takes."""
        if not self.first_rows:
            return self.rows
        return min(self.rows, self.first_rows << min(number // ALIKE, 60))


def write_files(parts: Path, table: Table, batches: Iterable[pa.RecordBatch], limits: FileLimits) -> list[DumpedFile]:
    """Write all batches; return the files in order, durable, under names in `parts` that no other attempt has.

    Their names are durable once the folder is synced (`publish`); a record whose files a power cut has removed is
    dropped when the dump is resumed. Final names are still "". A table without rows gives no file. Raises DumpError
    DUMP-009 when the disk refuses.
    """
    attempt = _Attempt(parts, table, limits)
    try:
        with disk(parts, str(table.name)):
            for batch in batches:
                attempt.write(batch)
            return attempt.finish()
    except BaseException:
        attempt.abandon()
        raise


@dataclass(slots=True)
class _Attempt:
    """The files that one attempt writes for some rows.

    At most one of them is open, and a thread closes at most one other: it encodes the last rows, and waits for the disk
    and for the checksum, while the source's rows are read into the next file.
    """

    parts: Path
    table: Table
    limits: FileLimits
    written: list[DumpedFile] = field(default_factory=list)
    _file: DumpWriter | None = None
    _paths: list[Path] = field(default_factory=list)
    _thread: ThreadPoolExecutor | None = None
    _closing: Future[DumpedFile] | None = None

    def write(self, batch: pa.RecordBatch) -> None:
        while batch.num_rows:
            if self._file is None:
                self._paths.append(new_part(self.parts, self.table.name, self.limits.format))
                self._file = _open(self._paths[-1], self.table, self.limits)
            limit = self.limits.rows_of(len(self._paths) - 1)
            room = limit - self._file.rows
            self._file.write(batch.slice(0, room))
            batch = batch.slice(room)
            if self._file.rows >= limit or self._file.size >= self.limits.size:
                self._end_file(self._file)

    def finish(self) -> list[DumpedFile]:
        """Make all files durable, and return them in order."""
        self._await_closing()
        last, self._file = self._file, None
        if last is not None:
            self.written.append(_close(last, self._paths[-1]))
        if self._thread is not None:
            self._thread.shutdown()
        return self.written

    def abandon(self) -> None:
        """Remove its files: another attempt begins with other files, and a full disk needs the room."""
        if self._thread is not None:
            self._thread.shutdown()
        if self._file is not None:
            with suppress(OSError, pa.ArrowException):
                self._file.close()
        closed = [] if self._closing is None or self._closing.exception() else [self._closing.result()]
        for path in (*self._paths, *(self.parts / file.part for file in (*self.written, *closed))):
            with suppress(OSError):
                path.unlink()

    def _end_file(self, file: DumpWriter) -> None:
        """Let the thread close the open file, after the one before."""
        self._await_closing()
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, "close")
        self._closing = self._thread.submit(_close, file, self._paths[-1])
        self._file = None

    def _await_closing(self) -> None:
        """Wait until the file before is durable. Raises what its closing raised."""
        if self._closing is not None:
            self.written.append(self._closing.result())
            self._closing = None


def remove_parts(parts: Path, files: Iterable[DumpedFile]) -> None:
    """Remove files that `write_files` has returned, and that no record has. Idempotent."""
    for file in files:
        (parts / file.part).unlink(missing_ok=True)


def raw_names(table: Table, form: Format) -> frozenset[str]:
    """Return the columns of text that a file of this format holds as bytes; the load may convert those of Parquet."""
    return frozenset(column.name for column in raw_columns(table)) if form == "parquet" else frozenset()


def _open(path: Path, table: Table, limits: FileLimits) -> DumpWriter:
    schema = dump_schema(table, raw_names(table, limits.format))
    if limits.format == "parquet":
        return ParquetFile(path, schema)
    return SqlFile(path, table, schema.names, limits.statement_bytes)


def _close(file: DumpWriter, path: Path) -> DumpedFile:
    reach("dump-file-before")
    file.close()
    sync_file(path)
    reach("dump-file-after")
    counted = counted_part(path, file.rows)
    written = DumpedFile("", counted.name, file.rows, path.stat().st_size, checksum(path))
    path.rename(counted)
    return written
