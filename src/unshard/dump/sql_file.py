"""Writes rows into a file of INSERT statements, as mydumper writes them and `myloader` reads them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from unshard.kernels.literals import render
from unshard.model.table import Table, quote_name
from unshard.mysql.types import as_written

PROLOGUE = (
    "/*!40101 SET NAMES utf8mb4*/;\n"
    "/*!40014 SET FOREIGN_KEY_CHECKS=0*/;\n"
    "/*!40101 SET SQL_MODE='NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES'*/;\n"
    "/*!40103 SET TIME_ZONE='+00:00' */;\n"
)
_BARE = frozenset({"decimal"})


class SqlFile:
    """An SQL file, open for writing. A statement is closed when it has `statement_bytes`; rows are never cut."""

    suffix = "sql"

    def __init__(self, path: Path, table: Table, columns: list[str], statement_bytes: int) -> None:
        self._file = path.open("wb")
        self._size = self._file.write(PROLOGUE.encode())
        names = ",".join(quote_name(name) for name in columns)
        self._head = f"INSERT INTO {quote_name(table.name.table)} ({names}) VALUES\n".encode()
        self._prefixes = [b"(" if number == 0 else b"," for number in range(len(columns))]
        self._columns = [table.column(name) for name in columns]
        self._bare = [column.type in _BARE for column in self._columns]
        self._limit = statement_bytes
        self._open_bytes = 0
        self.rows = 0

    def write(self, batch: pa.RecordBatch) -> None:
        """Append rows."""
        columns = [as_written(*one) for one in zip(self._columns, batch.columns, strict=True)]
        lines = render(columns, self._prefixes, b")", self._bare)
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
