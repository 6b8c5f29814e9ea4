"""Write rows into a Parquet file whose row groups are the pieces that the load commits one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from unshard.crash_point import reach
from unshard.dump.files import checksum, counted_part, disk, new_part, sync_file
from unshard.dump.metadata import DumpedFile
from unshard.dump.read import dump_schema
from unshard.kernels.literals import render
from unshard.model.table import Table, quote_name
from unshard.mysql.altered_values import raw_columns

PIECE_ROWS = 10_000
PIECE_BYTES = 8 << 20


class ParquetFile:
    """One file, open for writing. A row group is closed at PIECE_ROWS rows or PIECE_BYTES of Arrow data.

    A thread encodes and writes one row group while the caller reads the next one from the source.
    """

    suffix = "parquet"

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._writer = pq.ParquetWriter(
            path,
            schema,
            compression="zstd",
            compression_level=1,
            use_dictionary=False,
            write_statistics=False,
            store_schema=True,
        )
        self._pending: list[pa.RecordBatch] = []
        self._pending_rows = 0
        self._pending_bytes = 0
        self._path = path
        self._thread: ThreadPoolExecutor | None = None
        self._writing: Future[None] | None = None
        self.rows = 0

    def write(self, batch: pa.RecordBatch) -> None:
        """Append rows; they may stay in memory until a row group is full."""
        self._pending.append(batch)
        self._pending_rows += batch.num_rows
        self._pending_bytes += batch.nbytes
        self.rows += batch.num_rows
        if self._pending_rows >= PIECE_ROWS or self._pending_bytes >= PIECE_BYTES:
            self._flush(self._in_thread)

    @property
    def size(self) -> int:
        """Bytes in the file so far, plus those of the open row group as they lie in memory."""
        return self._path.stat().st_size + self._pending_bytes

    def close(self) -> None:
        """Write the pending rows and the footer. A file without rows still has its footer."""
        self._flush(self._write)
        self._wait()
        if self._thread is not None:
            self._thread.shutdown()
        self._writer.close()

    def _flush(self, write: Callable[[pa.Table], None]) -> None:
        if self._pending:
            table = pa.Table.from_batches(self._pending)
            self._wait()
            write(table)
        self._pending, self._pending_rows, self._pending_bytes = [], 0, 0

    def _write(self, table: pa.Table) -> None:
        self._writer.write_table(table, row_group_size=table.num_rows)

    def _in_thread(self, table: pa.Table) -> None:
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1)
        self._writing = self._thread.submit(self._write, table)

    def _wait(self) -> None:
        """Wait until the previous row group is written. Raises what its writing raised."""
        if self._writing is not None:
            self._writing.result()
            self._writing = None


# Write rows into a file of complete INSERT statements, as mydumper writes them and `myloader` reads them.


PROLOGUE = (
    "/*!40101 SET NAMES utf8mb4*/;\n"
    "/*!40014 SET FOREIGN_KEY_CHECKS=0*/;\n"
    "/*!40101 SET SQL_MODE='NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES'*/;\n"
    "/*!40103 SET TIME_ZONE='+00:00' */;\n"
)
_BARE = frozenset({"decimal"})


class SqlFile:
    """One file, open for writing. A statement is closed when it has `statement_bytes`; rows are never cut."""

    suffix = "sql"

    def __init__(self, path: Path, table: Table, columns: list[str], statement_bytes: int) -> None:
        self._file = path.open("wb")
        self._size = self._file.write(PROLOGUE.encode())
        names = ",".join(quote_name(name) for name in columns)
        self._head = f"INSERT INTO {quote_name(table.name.table)} ({names}) VALUES\n".encode()
        self._prefixes = [b"(" if number == 0 else b"," for number in range(len(columns))]
        self._bare = [table.column(name).type in _BARE for name in columns]
        self._limit = statement_bytes
        self._open_bytes = 0
        self.rows = 0

    def write(self, batch: pa.RecordBatch) -> None:
        """Append rows."""
        lines = render(batch.columns, self._prefixes, b")", self._bare)
        _, offsets, data = lines.buffers()
        ends = np.frombuffer(offsets, dtype=np.int32)[lines.offset : lines.offset + len(lines) + 1]
        view = memoryview(data) if data is not None else memoryview(b"")
        for start, end in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True):
            self._put(view[start:end])
        self.rows += batch.num_rows

    @property
    def size(self) -> int:
        """Bytes of the file so far."""
        return self._size

    def close(self) -> None:
        """End the open statement and close the file."""
        if self._open_bytes:
            self._size += self._file.write(b";\n")
        self._file.close()

    def _put(self, row: memoryview) -> None:
        if self._open_bytes and self._open_bytes + len(row) > self._limit:
            self._size += self._file.write(b";\n")
            self._open_bytes = 0
        written = self._file.write(b",\n" if self._open_bytes else self._head)
        written += self._file.write(row)
        self._open_bytes += written
        self._size += written


# Write the rows of one table into files: a new file when one is full, each made durable when it is closed.


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
            attempt.end_file()
    except BaseException:
        attempt.abandon()
        raise
    return attempt.written


@dataclass(slots=True)
class _Attempt:
    """The files that one attempt writes for some rows, at most one of them open."""

    parts: Path
    table: Table
    limits: FileLimits
    written: list[DumpedFile] = field(default_factory=list)
    _file: DumpWriter | None = None
    _path: Path = field(default_factory=Path)

    def write(self, batch: pa.RecordBatch) -> None:
        while batch.num_rows:
            if self._file is None:
                self._path = new_part(self.parts, self.table.name, self.limits.format)
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
        """Remove its files: another attempt begins with other files, and a full disk needs the room."""
        if self._file is not None:
            with suppress(OSError, pa.ArrowException):
                self._file.close()
        for path in (self._path, *(self.parts / file.part for file in self.written)):
            with suppress(OSError):
                path.unlink()


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
