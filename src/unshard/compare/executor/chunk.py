"""Spark task: compare one range of a table. What it finds are suspects: rows may be in flight to the target.

| step | reads | ends where |
|---|---|---|
| 1 the servers sum up their rows, where both can | counts and checksums | they are equal |
| 2 rows are read and summed up here, by a part of their hash | all rows of the range | all sums are equal |
| 3 rows of the sums that differ are read again | rows with one of these hashes | |

All of it is seen by one snapshot of each server, so that the steps speak of the same rows.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import MySQLdb
import numpy as np
import pyarrow as pa

from unshard.compare.executor.checksum import Digest, digest_of, digest_sql
from unshard.compare.executor.rows import (
    ATTEMPTS,
    SideConnections,
    key_literals,
    row_hashes,
    shard_batches,
    target_batches,
)
from unshard.compare.ranges import KeyRange, shard_condition, target_condition
from unshard.compare.tables import ComparedShard, ComparedTable
from unshard.dump.outcome import enclose
from unshard.model.table import Table
from unshard.mysql.connection import Endpoint, Side, rows, server_error
from unshard.retry import retrying

SUMS = 1 << 16
"""Into how many sums the rows of a range go in step 2."""

MOST_ROWS = 200_000
"""Rows of each side that step 3 keeps at most."""

MOST_SUSPECTS = 20_000
"""Keys that a range tells of at most."""


@dataclass(frozen=True, slots=True)
class ChunkOrder:
    """A range of a table, and how many rows a second this task may read of the sources; 0: any."""

    table: ComparedTable
    part: KeyRange
    rows_per_second: float = 0.0


@dataclass(frozen=True, slots=True)
class ChunkFinding:
    """What a range holds. `suspects` are keys as SQL literals; of a table without a key hashes of rows, as text.

    `beyond`: rows that differ, and are not among the suspects: there were too many. `seconds` is the time it took.
    """

    source_rows: int
    target_rows: int
    suspects: tuple[tuple[str, ...], ...] = ()
    beyond: int = 0
    seconds: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form, read back by `from_dict`."""
        return {
            "source_rows": self.source_rows,
            "target_rows": self.target_rows,
            "suspects": [list(key) for key in self.suspects],
            "beyond": self.beyond,
            "seconds": round(self.seconds, 3),
        }

    @classmethod
    def from_dict(cls, form: dict[str, Any]) -> ChunkFinding:
        suspects = tuple(tuple(key) for key in form["suspects"])
        return cls(form["source_rows"], form["target_rows"], suspects, form["beyond"], form["seconds"])


@dataclass(slots=True)
class _RowSums:
    """Number, sum and XOR of the hashes of rows, by the low bits of the hash."""

    count: np.ndarray = field(default_factory=lambda: np.zeros(SUMS, dtype=np.int64))
    total: np.ndarray = field(default_factory=lambda: np.zeros(SUMS, dtype=np.uint64))
    xor: np.ndarray = field(default_factory=lambda: np.zeros(SUMS, dtype=np.uint64))

    def add(self, hashes: np.ndarray) -> None:
        at = (hashes % np.uint64(SUMS)).astype(np.int64)
        np.add.at(self.count, at, 1)
        np.add.at(self.total, at, hashes)
        np.bitwise_xor.at(self.xor, at, hashes)

    def unlike(self, other: _RowSums) -> np.ndarray:
        """Which of the sums differ."""
        found: np.ndarray = (self.count != other.count) | (self.total != other.total) | (self.xor != other.xor)
        return found


def compare_chunk(payload: bytes) -> bytes:
    """Spark task: compare the range of a pickled ChunkOrder; a ChunkFinding as outcome. Safe to run again."""
    order: ChunkOrder = pickle.loads(payload)
    return enclose(lambda: retrying(partial(_compared, order), attempts=ATTEMPTS).to_dict())


def _compared(order: ChunkOrder) -> ChunkFinding:
    begun = time.monotonic()
    connections = SideConnections()
    try:
        found = _Chunk(order, connections).compare()
    finally:
        connections.close()
    seconds = time.monotonic() - begun
    return ChunkFinding(found.source_rows, found.target_rows, found.suspects, found.beyond, seconds)


@dataclass(slots=True)
class _Chunk:
    """One range while it is compared."""

    order: ChunkOrder
    connections: SideConnections
    _begun: float = field(default_factory=time.monotonic)
    _read: int = 0

    def compare(self) -> ChunkFinding:
        table = self.order.table
        if table.server_side:
            source, target = self._source_digest(), self._target_digest()
            if source is not None and source == target:
                return ChunkFinding(source.rows, target.rows)
        here, there = _RowSums(), _RowSums()
        for batch in self._source_rows():
            here.add(row_hashes(batch))
        for batch in self._target_rows():
            there.add(row_hashes(batch))
        counts = int(here.count.sum()), int(there.count.sum())
        unlike = here.unlike(there)
        if not unlike.any():
            return ChunkFinding(*counts)
        ours, left_ours = _kept(self._source_rows(), unlike)
        theirs, left_theirs = _kept(self._target_rows(), unlike)
        suspects = _suspects(table, ours, theirs)
        beyond = max(len(suspects) - MOST_SUSPECTS, 0) + max(left_ours, left_theirs)
        return ChunkFinding(*counts, tuple(suspects[:MOST_SUSPECTS]), beyond)

    def _source_digest(self) -> Digest | None:
        total = Digest()
        for shard, condition in self._shards():
            found = self._digest(shard.endpoint, "source", shard.read, condition)
            if found is None:
                return None
            total += found
            self._pace(found.rows)
        return total

    def _target_digest(self) -> Digest | None:
        table = self.order.table
        return self._digest(table.endpoint, "target", table.read, target_condition(table, self.order.part))

    def _digest(self, endpoint: Endpoint, side: Side, read: Table, condition: str) -> Digest | None:
        statement = digest_sql(read, [column.name for column in self.order.table.columns], condition)
        connection = self.connections.get(endpoint, side)
        try:
            (row,) = rows(connection, statement)
        except MySQLdb.Error as error:
            raise server_error(error, endpoint, side, statement).at(table=str(read.name)) from error
        return digest_of(row)

    def _shards(self) -> Iterator[tuple[ComparedShard, str]]:
        """The source tables that have rows in the range, with the condition for them."""
        for shard in self.order.table.shards:
            condition = shard_condition(self.order.table, shard, self.order.part)
            if condition is not None:
                yield shard, " AND ".join(f"({one})" for one in (condition, shard.where) if one)

    def _source_rows(self) -> Iterator[pa.RecordBatch]:
        for shard, condition in self._shards():
            for batch in shard_batches(self.connections, self.order.table, shard, (condition,)):
                yield batch
                self._pace(len(batch))

    def _target_rows(self) -> Iterator[pa.RecordBatch]:
        table = self.order.table
        return target_batches(self.connections, table, (target_condition(table, self.order.part),))

    def _pace(self, count: int) -> None:
        """Rest until the sources have been read no faster than they may be."""
        self._read += count
        if self.order.rows_per_second:
            ahead = self._read / self.order.rows_per_second - (time.monotonic() - self._begun)
            time.sleep(max(ahead, 0.0))


def _kept(batches: Iterable[pa.RecordBatch], unlike: np.ndarray) -> tuple[list[pa.RecordBatch], int]:
    """The rows whose sum differs, at most MOST_ROWS, and how many more there are."""
    kept: list[pa.RecordBatch] = []
    count = left = 0
    for batch in batches:
        wanted = unlike[(row_hashes(batch) % np.uint64(SUMS)).astype(np.int64)]
        if not wanted.any():
            continue
        if count >= MOST_ROWS:
            left += int(wanted.sum())
            continue
        kept.append(batch.filter(pa.array(wanted)))
        count += len(kept[-1])
    return kept, left


def _suspects(table: ComparedTable, ours: list[pa.RecordBatch], theirs: list[pa.RecordBatch]) -> list[tuple[str, ...]]:
    """The keys of rows that one side has more often than the other; without a key the hashes of these rows."""
    hashes = [[row_hashes(batch) for batch in side] for side in (ours, theirs)]
    flat = [np.concatenate(side) if side else np.zeros(0, dtype=np.uint64) for side in hashes]
    distinct, place = np.unique(np.concatenate(flat), return_inverse=True)
    signs = np.concatenate([np.ones(len(flat[0]), dtype=np.int64), -np.ones(len(flat[1]), dtype=np.int64)])
    balance = np.zeros(len(distinct), dtype=np.int64)
    np.add.at(balance, place, signs)
    odd = distinct[balance != 0]
    if not table.key:
        return [(str(one),) for one in odd.tolist()]
    found: dict[tuple[str, ...], None] = {}
    for batch, its in zip([*ours, *theirs], [*hashes[0], *hashes[1]], strict=True):
        wanted = np.isin(its, odd)
        if wanted.any():
            found.update(dict.fromkeys(key_literals(batch.filter(pa.array(wanted)), table)))
    return list(found)
