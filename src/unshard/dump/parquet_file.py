"""Writes rows into a Parquet file. Its row groups are the pieces that the load commits one by one."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

PIECE_ROWS = 10_000
PIECE_BYTES = 8 << 20


class ParquetFile:
    """A Parquet file, open for writing. A row group is closed at PIECE_ROWS rows or PIECE_BYTES of Arrow data.

    A thread encodes and writes one row group while the caller reads the next one from the source.
    """

    suffix = "parquet"

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._sink = pa.OSFile(str(path), "wb")
        self._writer = pq.ParquetWriter(
            self._sink,
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
        """Write the pending rows and the footer. A file without rows still has its footer.

        Nothing of the file stays open, also where the disk refuses.
        """
        try:
            self._flush(self._write)
            self._wait()
            self._writer.close()
        finally:
            if self._thread is not None:
                self._thread.shutdown()
            self._sink.close()

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
