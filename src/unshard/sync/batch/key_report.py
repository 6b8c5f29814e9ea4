"""The report of the keys that a batch changes, for continuous validation.

The keys are of the target. A key is the SQL literals of its columns in the target, with a NUL between two of them; no
literal has one in it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from unshard.model.table import TableName

SEPARATOR = b"\0"
PART_BYTES = 1 << 20
"""Keys of one report take about so much before they are compressed: it is one row of a table in the target."""

_SCHEMA = pa.schema([pa.field("table", pa.int32(), nullable=False), pa.field("key", pa.binary(), nullable=False)])
_PACKED = pa.ipc.IpcWriteOptions(compression="zstd")


@dataclass(frozen=True, slots=True)
class KeyReportTable:
    """A source table of a report, with the number of its changes by kind, as far as they are in this report.

    `key` are the target's columns that identify a row; it is empty for a table without such a key.
    """

    source: TableName
    target: TableName
    key: tuple[str, ...]
    inserts: int = 0
    updates: int = 0
    deletes: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form, which `from_dict` reads."""
        names = {"source": [self.source.schema, self.source.table], "target": [self.target.schema, self.target.table]}
        counts = {"inserts": self.inserts, "updates": self.updates, "deletes": self.deletes}
        return {**names, "key": list(self.key), **counts}

    @classmethod
    def from_dict(cls, form: dict[str, Any]) -> KeyReportTable:
        """Read the form of `to_dict`."""
        names = TableName(*form["source"]), TableName(*form["target"])
        return cls(*names, tuple(form["key"]), form["inserts"], form["updates"], form["deletes"])


@dataclass(frozen=True, slots=True)
class KeyReport:
    """The changed keys of some tables.

    `data` has the keys in Arrow's format, compressed, each with its table's number.
    """

    tables: tuple[KeyReportTable, ...]
    keys: int
    data: bytes

    @property
    def described(self) -> str:
        """The tables as JSON text."""
        return json.dumps([table.to_dict() for table in self.tables])

    @classmethod
    def of(cls, described: str, keys: int, data: bytes) -> KeyReport:
        """Return a report from its stored parts."""
        return cls(tuple(KeyReportTable.from_dict(form) for form in json.loads(described)), keys, data)

    def unpacked(self) -> Iterator[tuple[KeyReportTable, pa.Array]]:
        """Yield each table with its keys."""
        batch = pa.ipc.open_stream(pa.py_buffer(self.data)).read_next_batch()
        numbers, keys = batch.column(0), batch.column(1)
        for number, table in enumerate(self.tables):
            yield table, keys.filter(pa.compute.equal(numbers, number))


def pack(found: Sequence[tuple[KeyReportTable, pa.Array]]) -> tuple[KeyReport, ...]:
    """Return reports of these tables, each with about `PART_BYTES` of keys at most. The first one has the counts."""
    if not found:
        return ()
    tables = tuple(table for table, _ in found)
    numbers = np.repeat(np.arange(len(found), dtype=np.int32), [len(keys) for _, keys in found])
    columns = [pa.array(numbers), pa.concat_arrays([keys for _, keys in found])]
    whole = pa.RecordBatch.from_arrays(columns, schema=_SCHEMA)
    rows = max(1, len(whole) * PART_BYTES // max(whole.nbytes, 1))
    bare = tuple(KeyReportTable(table.source, table.target, table.key) for table in tables)
    starts = range(0, max(len(whole), 1), rows)
    return tuple(_packed(tables if not start else bare, whole.slice(start, rows)) for start in starts)


def _packed(tables: tuple[KeyReportTable, ...], batch: pa.RecordBatch) -> KeyReport:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, _SCHEMA, options=_PACKED) as writer:
        writer.write_batch(batch)
    return KeyReport(tables, len(batch), sink.getvalue().to_pybytes())
