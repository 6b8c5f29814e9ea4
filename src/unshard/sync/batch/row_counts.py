"""The reports of a batch's tasks: the ledger of changes, and the keys that it changes.

The ledger counts every change by its outcome, by target table. A batch closes only when the sums agree.

The keys are of the target, for continuous validation. A key is the SQL literals of its columns in the target, with a
NUL between two of them; no literal has one in it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from unshard.errors import SyncError, Where
from unshard.model.change import Op
from unshard.model.table import TableName
from unshard.target.row_counts import COUNTS

SEPARATOR = b"\0"
PART_BYTES = 1 << 20
"""Keys of one report take about so much before they are compressed: it is one row of a table in the target."""

_SCHEMA = pa.schema([pa.field("table", pa.int32(), nullable=False), pa.field("key", pa.binary(), nullable=False)])
_PACKED = pa.ipc.IpcWriteOptions(compression="zstd")


@dataclass(frozen=True, slots=True)
class KeyReportTable:
    """A source table of a report. `key` are the target's columns that name a row; none: it has no such key.

    The other figures count row changes, as far as they are in this report.
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
    """Changed keys of some tables; `data` has them in Arrow's form, compressed, each with its table's number."""

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


K = TypeVar("K")

_COLUMN = {Op.INSERT: "inserted", Op.INSERT_SET: "inserted", Op.UPDATE: "updated", Op.DELETE: "deleted"}


@dataclass(frozen=True, slots=True)
class RowCounts:
    """Counts of changes of one target table.

    decoded = filtered + compacted + inserted + updated + deleted, where a change of the key counts as two, unless it is
    filtered. `rules`: the filtered changes by rule. `missing`: updates and deletes that found no row. `example`: the
    condition of one of them, as SQL.
    """

    decoded: int = 0
    compacted: int = 0
    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    missing: int = 0
    example: str = ""
    filtered: int = 0
    rules: Mapping[str, int] = field(default_factory=dict)

    def __add__(self, other: RowCounts) -> RowCounts:
        sums: dict[str, Any] = {name: getattr(self, name) + getattr(other, name) for name in COUNTS}
        return RowCounts(**sums, example=self.example or other.example, rules=_sum(self.rules, other.rules))

    @property
    def counts(self) -> dict[str, int]:
        """The counts by name of the column in the target."""
        return {name: getattr(self, name) for name in COUNTS}

    @property
    def applied(self) -> int:
        """The number of changes that were applied."""
        return self.inserted + self.updated + self.deleted


Ledger = Mapping[int, RowCounts]
"""The counts by target id."""


def entry_of(op: Op, rows: int, missing: int = 0, example: str = "") -> RowCounts:
    """Return the counts of one statement's applied changes."""
    counts: dict[str, Any] = {_COLUMN[op]: rows}
    return RowCounts(**counts, missing=missing, example=example)


def add_up(ledgers: Iterable[Mapping[K, RowCounts]]) -> dict[K, RowCounts]:
    """Return the sum of ledgers, by their keys."""
    total: dict[K, RowCounts] = {}
    for ledger in ledgers:
        for target, entry in ledger.items():
            total[target] = total.get(target, RowCounts()) + entry
    return total


Filtered = Mapping[tuple[int, str], int]
"""Changes that are left out, by target id and rule; an UPDATE is one, also if it changes the key."""


@dataclass(frozen=True, slots=True)
class Seen:
    """The changes and row events that were seen before the exchange.

    `changes`: the changes that were distributed, by target id. `filtered`: those that a rule left out. `events`: the
    row events decoded. `skipped`: the row events that were skipped undecoded, by source table. `keys`: the changed
    keys, for continuous validation where it is on; each task reports a part of them.
    """

    changes: Mapping[int, int] = field(default_factory=dict)
    filtered: Filtered = field(default_factory=dict)
    events: int = 0
    skipped: Mapping[TableName, int] = field(default_factory=dict)
    keys: tuple[KeyReport, ...] = field(default=(), compare=False)

    def __add__(self, other: Seen) -> Seen:
        return Seen(
            _sum(self.changes, other.changes),
            _sum(self.filtered, other.filtered),
            self.events + other.events,
            _sum(self.skipped, other.skipped),
            self.keys + other.keys,
        )

    @property
    def met(self) -> int:
        """The number of all row events."""
        return self.events + sum(self.skipped.values())

    def left_out(self) -> dict[int, RowCounts]:
        """Return the ledger of what the rules left out."""
        return add_up(
            {target: RowCounts(decoded=count, filtered=count, rules={rule: count})}
            for (target, rule), count in self.filtered.items()
        )


@dataclass(frozen=True, slots=True)
class Account:
    """The row counts of a batch.

    `tables`: the counts by name of the target table. `skipped`: the row events that were skipped undecoded, by name of
    the source table and by rule.
    """

    tables: Mapping[str, RowCounts] = field(default_factory=dict)
    skipped: Mapping[tuple[str, str], int] = field(default_factory=dict)

    def __add__(self, other: Account) -> Account:
        return Account(add_up([self.tables, other.tables]), _sum(self.skipped, other.skipped))


def _sum(one: Mapping[K, int], other: Mapping[K, int]) -> dict[K, int]:
    """Return the sums by key, without those that are 0."""
    return dict(Counter(one) + Counter(other))


@dataclass(frozen=True, slots=True)
class LedgerReport:
    """The report of a task on its share.

    `seen`: what it saw before the exchange. If each task keeps its own partitions, each sees the whole range, so all
    must see the same; in a shuffled batch the sightings of all reports add up. `ledger`: its counts. `seconds`: by
    step. `error` is an `UnshardError.to_dict()` or None. `chunks`: by partition, how many there have been in the batch.
    """

    share: int
    seen: Seen
    ledger: Ledger
    seconds: Mapping[str, float]
    error: dict[str, Any] | None = None
    chunks: Mapping[int, int] = field(default_factory=dict)


def balance(
    reports: Iterable[LedgerReport], *, shuffled: bool, row_events: int, where: Where
) -> tuple[dict[int, RowCounts], Mapping[TableName, int]]:
    """Return the batch's ledger, and the row events that were skipped by source table.

    `row_events` is how many the index counted. Raises SyncError SYNC-002 when a change is unaccounted for, SYNC-064
    when a row event is.
    """
    reports = list(reports)
    applied = add_up(report.ledger for report in reports)
    sightings = [report.seen + Seen() for report in reports]
    if shuffled:
        sightings = [sum(sightings, Seen())]
    kept = {target: entry.decoded for target, entry in applied.items() if entry.decoded}
    for seen in sightings:
        check_events(seen, row_events, where)
        if seen.changes != kept:
            raise SyncError("SYNC-002", where, cause=f"seen {seen.changes}, shared out {kept}")
        if seen != sightings[0]:
            raise SyncError("SYNC-002", where, cause=f"one task saw {sightings[0]}, another {seen}")
    total = add_up([applied, sightings[0].left_out()])
    for target, entry in total.items():
        if entry.decoded != entry.filtered + entry.compacted + entry.applied:
            raise SyncError("SYNC-002", where, cause=f"target {target}: {entry}")
    return total, sightings[0].skipped


def check_events(seen: Seen, row_events: int, where: Where) -> None:
    """Raise SyncError SYNC-064 unless the decoder met exactly the row events that the index counted."""
    if seen.met != row_events:
        values = {"indexed": str(row_events), "decoded": str(seen.events), "skipped": str(seen.met - seen.events)}
        raise SyncError("SYNC-064", where, values=values)
