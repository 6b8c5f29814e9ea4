"""The data source itself: its files, byte ranges, and the stream's offsets. `rows.py` makes the rows.

The driver walks the event headers and checks every checksum. Each partition decodes one run of whole transactions.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxBytes, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from unshard.binlog.headers import mapped, read_format
from unshard.binlog.rows import decode_range
from unshard.errors import Where
from unshard.model.position import Position
from unshard.model.table import Table
from unshard.spark.binlog.files import FileLog, open_log, stretches
from unshard.spark.binlog.options import Options, read_options
from unshard.spark.binlog.rows import ALL_TABLES, all_rows, images_of, table_schema, typed_rows
from unshard.spark.binlog.structures import Structures, newest_structure, server_structures

_ROWS_AT_ONCE = 50_000


class BinlogDataSource(DataSource):  # type: ignore[misc]
    """`format("binlog")`: a data source for the row changes in binlog or relay files.

    It has the changes of one table, with the table's columns, or of all tables.

    Options: `path` (a file, a folder of binlog files, a relay folder), `table` (`schema.table`; default: all tables),
    `startingPosition` (`file:offset`), `host`, `port`, `user`, `password` (a server to read structures from; needed if
    the binlog has no metadata), `rangeBytes` (bytes of binlog in a partition), `maxBytesPerTrigger` (bytes of binlog in
    a micro-batch).
    """

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self._read = read_options(dict(options))

    @classmethod
    def name(cls) -> str:
        """Return the name for `spark.read.format`."""
        return "binlog"

    def schema(self) -> StructType:
        """Return the schema.

        Raises BinlogError 057 if no event describes the table's structure and no server is given.
        """
        return ALL_TABLES if self._read.table is None else table_schema(self._structure)

    def reader(self, schema: StructType) -> BinlogReader:
        """Return a reader of what the log has now."""
        return BinlogReader(self._read, schema, self._structures())

    def streamReader(self, schema: StructType) -> BinlogStreamReader:
        """Return a reader that follows the log."""
        return BinlogStreamReader(self._read, schema, self._structures())

    @cached_property
    def _structure(self) -> Table:
        if self._read.server is not None:
            return server_structures(self._read).of_server(self._read.table)
        return newest_structure(self._read, open_log(self._read.path))

    def _structures(self) -> Structures:
        return server_structures(self._read) if self._read.server is not None else Structures(self._read.table)


@dataclass(frozen=True)
class FileRange(InputPartition):  # type: ignore[misc]
    """A run of whole transactions: a range of bytes in one file."""

    path: str
    start: int
    end: int
    checksum: bool


class _RangeReader:
    """The base of both readers: finds the ranges on the driver, and reads a range in a Spark task."""

    def __init__(self, options: Options, schema: StructType, structures: Structures) -> None:
        self.options = options
        self.schema = schema
        self.structures = structures

    def ranges(self, log: FileLog, start: Position, end: Position) -> Iterator[FileRange]:
        table = self.options.table
        for rows in stretches(log, start, end, self.options.range_bytes):
            if table is None or table in rows.log_range.tables:
                yield FileRange(str(rows.path), rows.log_range.start, rows.log_range.end, rows.checksum)

    def start(self, log: FileLog) -> Position:
        return self.options.start or Position(log.files()[0])

    def rows(self, piece: FileRange) -> Iterator[pa.RecordBatch]:
        wanted = to_arrow_schema(self.schema, timezone="UTC")
        convert = all_rows if self.options.table is None else typed_rows
        path = Path(piece.path)
        data = mapped(path, piece.end)
        log = np.frombuffer(data, np.uint8)
        decoded = decode_range(
            data,
            piece.start,
            piece.end,
            checksum=piece.checksum,
            wanted=self.structures.wanted(path.name),
            offsets=True,
            mariadb=read_format(data, Where(file=piece.path)).mariadb,
            where=Where(file=piece.path),
        )
        for images in images_of(decoded):
            for part in images.slices(_ROWS_AT_ONCE):
                yield convert(part, path.name, log, wanted)


class BinlogReader(_RangeReader, DataSourceReader):  # type: ignore[misc]
    """The reader of everything that the log has when a query begins."""

    def partitions(self) -> Sequence[FileRange]:
        """Return the ranges of the log from the start position to its present end."""
        log = open_log(self.options.path)
        return list(self.ranges(log, self.start(log), log.end()))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the batches of one partition; it runs in a task."""
        assert isinstance(partition, FileRange)
        return self.rows(partition)


class BinlogStreamReader(_RangeReader, DataSourceStreamReader, SupportsTriggerAvailableNow):  # type: ignore[misc]
    """The reader that follows the log as it grows.

    An offset is a position: `{"file": "mysql-bin.000003", "offset": 1234}`.
    """

    _limit: Position | None = None

    def initialOffset(self) -> dict[str, Any]:
        """Return the start position, as an offset."""
        return _offset(self.start(open_log(self.options.path)))

    def getDefaultReadLimit(self) -> ReadLimit:
        """Return the limit by `maxBytesPerTrigger`."""
        return ReadMaxBytes(self.options.trigger_bytes)

    def prepareForTriggerAvailableNow(self) -> None:
        """Fix the log's present end as the last offset."""
        self._limit = open_log(self.options.path).end()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Return the end of the last whole transaction within the limit."""
        log = open_log(self.options.path)
        most = None if isinstance(limit, ReadAllAvailable) else getattr(limit, "max_bytes", self.options.trigger_bytes)
        at, used = _position(start), 0
        for rows in stretches(log, at, self._limit or log.end(), self.options.range_bytes):
            at = rows.end.position
            used += rows.log_range.end - rows.log_range.start
            if most is not None and used >= most:
                break
        return _offset(at)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[FileRange]:
        """Return the ranges of the log between two offsets."""
        return list(self.ranges(open_log(self.options.path), _position(start), _position(end)))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the batches of one partition; it runs in a task."""
        assert isinstance(partition, FileRange)
        return self.rows(partition)


def _offset(position: Position) -> dict[str, Any]:
    return {"file": position.file, "offset": position.offset}


def _position(offset: dict[str, Any]) -> Position:
    return Position(offset["file"], offset["offset"])
