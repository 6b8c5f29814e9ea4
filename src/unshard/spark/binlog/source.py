"""The data source itself: which files, which byte ranges, and the stream's offsets. Rows are made in rows.py.

The driver walks the event headers and checks every checksum; each partition decodes one run of whole transactions.
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

from unshard.binlog.headers import read_format
from unshard.binlog.mapped import mapped
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
    """`format("binlog")`: the row changes in binlog or relay files, of one table with its columns, or of all.

    Options: `path` (a file, a folder of binlog files, a relay folder), `table` (`schema.table`; else all),
    `startingPosition` (`file:offset`), `host`, `port`, `user`, `password` (a server to read structures from; needed
    where the binlog has no metadata), `rangeBytes` (log a partition), `maxBytesPerTrigger` (log a micro-batch).
    """

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self._read = read_options(dict(options))

    @classmethod
    def name(cls) -> str:
        return "binlog"

    def schema(self) -> StructType:
        """Raises BinlogError 057 where no event tells the table's structure and no server is given."""
        return ALL_TABLES if self._read.table is None else table_schema(self._structure)

    def reader(self, schema: StructType) -> BinlogReader:
        return BinlogReader(self._read, schema, self._structures())

    def streamReader(self, schema: StructType) -> BinlogStreamReader:
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
    """A run of whole transactions: bytes of one file."""

    path: str
    start: int
    end: int
    checksum: bool


class _RangeReader:
    """What both readers do with a range, in a Spark task."""

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
    """One read of all that is there now."""

    def partitions(self) -> Sequence[FileRange]:
        log = open_log(self.options.path)
        return list(self.ranges(log, self.start(log), log.end()))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, FileRange)
        return self.rows(partition)


class BinlogStreamReader(_RangeReader, DataSourceStreamReader, SupportsTriggerAvailableNow):  # type: ignore[misc]
    """Follows the log as it grows. An offset is a position: `{"file": "mysql-bin.000003", "offset": 1234}`."""

    _limit: Position | None = None

    def initialOffset(self) -> dict[str, Any]:
        return _offset(self.start(open_log(self.options.path)))

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxBytes(self.options.trigger_bytes)

    def prepareForTriggerAvailableNow(self) -> None:
        self._limit = open_log(self.options.path).end()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """The end of the last whole transaction within the limit."""
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
        return list(self.ranges(open_log(self.options.path), _position(start), _position(end)))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, FileRange)
        return self.rows(partition)


def _offset(position: Position) -> dict[str, Any]:
    return {"file": position.file, "offset": position.offset}


def _position(offset: dict[str, Any]) -> Position:
    return Position(offset["file"], offset["offset"])
