"""Spark task: compares one range of a table. Differences are only candidates: rows may be in flight to the target.

| step | reads | ends where |
|---|---|---|
| 1 the servers sum up their rows, where both can (`canonical`) | counts and checksums | they are equal |
| 2 rows are read and summed up here, by a part of their hash | all rows of the range | all sums are equal |
| 3 rows of the sums that differ are read again | rows with one of these hashes | |

All steps read from one snapshot of each server, so they see the same rows.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import MySQLdb
import numpy as np
import pyarrow as pa

from unshard.compare.executor.row_digest import Digest, digest_of, digest_sql
from unshard.compare.executor.rows import (
    SideConnections,
    asked_again,
    key_literals,
    row_hashes,
    shard_batches,
    target_batches,
)
from unshard.compare.ranges import KeyRange, shard_condition, target_condition
from unshard.compare.tables import ComparedShard, ComparedTable
from unshard.errors import enclose
from unshard.model.table import Table
from unshard.mysql.connection import Endpoint, Side, rows, server_error

SUMS = 1 << 16
"""Into how many sums the rows of a range go in step 2."""

MOST_ROWS, MOST_BYTES = 50_000, 64 << 20
"""Rows of each side that step 3 keeps at most, and about how much memory they may take."""

MOST_SUSPECTS = 20_000
"""Keys that a range tells of at most."""


@dataclass(frozen=True, slots=True)
class ChunkOrder:
    """The range of a table that a Spark task is to compare.

    `rows_per_second` is the most rows a second that the task may read of the sources; 0: any. `reads`: step 1, the
    comparison of the servers' checksums, is left out. `shared`: the target has rows of other sources in the range too,
    so only rows of the source that the target lacks are looked for. `most`: the most keys that are returned.
    """

    table: ComparedTable
    part: KeyRange
    rows_per_second: float = 0.0
    reads: bool = False
    shared: bool = False
    most: int = MOST_SUSPECTS


@dataclass(frozen=True, slots=True)
class ChunkFinding:
    """The result of comparing a range.

    `suspects` are keys as SQL literals; for a table without a key they are hashes of rows, as text. `beyond` counts
    rows that may differ and are not among the suspects, because there were too many. `seconds` is the time of the
    comparison, `source_seconds` the time for which the busiest source server worked for it.
    """

    source_rows: int
    target_rows: int
    suspects: tuple[tuple[str, ...], ...] = ()
    beyond: int = 0
    seconds: float = 0.0
    source_seconds: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form, which `from_dict` reads."""
        return {
            "source_rows": self.source_rows,
            "target_rows": self.target_rows,
            "suspects": [list(key) for key in self.suspects],
            "beyond": self.beyond,
            "seconds": round(self.seconds, 3),
            "source_seconds": round(self.source_seconds, 4),
        }

    @classmethod
    def from_dict(cls, form: dict[str, Any]) -> ChunkFinding:
        """Read the form of `to_dict`."""
        suspects = tuple(tuple(key) for key in form["suspects"])
        return cls(
            form["source_rows"], form["target_rows"], suspects, form["beyond"], form["seconds"], form["source_seconds"]
        )


@dataclass(slots=True)
class _RowSums:
    """The number, the sum and the XOR of row hashes, in an array with an entry for each value of a hash's low bits."""

    count: np.ndarray = field(default_factory=lambda: np.zeros(SUMS, dtype=np.int64))
    total: np.ndarray = field(default_factory=lambda: np.zeros(SUMS, dtype=np.uint64))
    xor: np.ndarray = field(default_factory=lambda: np.zeros(SUMS, dtype=np.uint64))

    def add(self, hashes: np.ndarray) -> None:
        at = (hashes % np.uint64(SUMS)).astype(np.int64)
        np.add.at(self.count, at, 1)
        np.add.at(self.total, at, hashes)
        np.bitwise_xor.at(self.xor, at, hashes)

    def unlike(self, other: _RowSums) -> np.ndarray:
        """Return a mask of the entries whose sums differ."""
        found: np.ndarray = (self.count != other.count) | (self.total != other.total) | (self.xor != other.xor)
        return found


def compare_chunk(payload: bytes) -> bytes:
    """Spark task: compare the range of a pickled ChunkOrder; a ChunkFinding as outcome. Safe to run again."""
    order: ChunkOrder = pickle.loads(payload)
    return enclose(lambda: asked_again(partial(_compared, order)).to_dict())


def _compared(order: ChunkOrder) -> ChunkFinding:
    begun = time.monotonic()
    with SideConnections() as connections:
        chunk = _Chunk(order, connections)
        found = chunk.compare()
    return replace(found, seconds=time.monotonic() - begun, source_seconds=max(chunk.busy.values(), default=0.0))


@dataclass(slots=True)
class _Chunk:
    """The comparison of one range."""

    order: ChunkOrder
    connections: SideConnections
    busy: dict[Endpoint, float] = field(default_factory=dict)
    _begun: float = field(default_factory=time.monotonic)
    _read: int = 0
    _bytes: int = 0

    def compare(self) -> ChunkFinding:
        table = self.order.table
        if self.order.shared:
            return self._compare_shared()
        if table.server_side and not self.order.reads:
            source, target = self._digests()
            if source is not None and source == target:
                return ChunkFinding(source.rows, target.rows)
        here, there = _RowSums(), _RowSums()
        for batch in self._source_rows():
            here.add(row_hashes(batch))
            self._bytes += batch.nbytes
        for batch in self._target_rows():
            there.add(row_hashes(batch))
            self._bytes += batch.nbytes
        counts = int(here.count.sum()), int(there.count.sum())
        unlike = here.unlike(there)
        if not unlike.any():
            return ChunkFinding(*counts)
        room = min(MOST_ROWS, MOST_BYTES * sum(counts) // max(self._bytes, 1))
        kept, left = _within(np.maximum(here.count, there.count), unlike, room)
        ours, theirs = _of_sums(self._source_rows(), kept), _of_sums(self._target_rows(), kept)
        suspects, count = _suspects(table, ours, theirs, self.order.most)
        return ChunkFinding(*counts, tuple(suspects), count - len(suspects) + left)

    def _compare_shared(self) -> ChunkFinding:
        """Find the source's rows that the target lacks, by the hashes of all rows that it has in the range."""
        table, most = self.order.table, self.order.most
        theirs = np.concatenate([np.zeros(0, dtype=np.uint64), *(row_hashes(batch) for batch in self._target_rows())])
        keys: dict[tuple[str, ...], None] = {}
        count = beyond = 0
        for batch in self._source_rows():
            count += len(batch)
            unlike = ~np.isin(row_hashes(batch), theirs)
            if len(keys) >= most:
                beyond += int(unlike.sum())
            elif unlike.any():
                keys.update(dict.fromkeys(key_literals(batch.filter(pa.array(unlike)), table)))
        beyond += max(len(keys) - most, 0)
        return ChunkFinding(count, len(theirs), tuple(keys)[:most], beyond)

    def _digests(self) -> tuple[Digest | None, Digest | None]:
        """Return the sums of both sides. All servers work at the same time; the sources' snapshots are taken first."""
        table = self.order.table
        shards: dict[Endpoint, list[tuple[ComparedShard, str]]] = {}
        for shard, condition in self._shards():
            self.connections.get(shard.endpoint, "source")
            shards.setdefault(shard.endpoint, []).append((shard, condition))
        self.connections.get(table.endpoint, "target")
        with ThreadPoolExecutor(max(len(shards), 1), "source") as pool:
            sums = [pool.submit(self._source_digest, endpoint, its) for endpoint, its in shards.items()]
            target = self._digest(table.endpoint, "target", table.read, target_condition(table, self.order.part))
            found = [one.result() for one in sums]
        known = [one for one in found if one is not None]
        return sum(known, Digest()) if len(known) == len(found) else None, target

    def _source_digest(self, endpoint: Endpoint, shards: Sequence[tuple[ComparedShard, str]]) -> Digest | None:
        """Return the digest of all source tables on one server; None where it can't be had."""
        total = Digest()
        for shard, condition in shards:
            begun = time.monotonic()
            found = self._digest(endpoint, "source", shard.read, condition, shard.source)
            self._note_busy(endpoint, begun)
            if found is None:
                return None
            total += found
            self._pace(found.rows)
        return total

    def _note_busy(self, endpoint: Endpoint, begun: float) -> None:
        self.busy[endpoint] = self.busy.get(endpoint, 0.0) + time.monotonic() - begun

    def _digest(
        self, endpoint: Endpoint, side: Side, read: Table, condition: str, source: str | None = None
    ) -> Digest | None:
        statement = digest_sql(read, [column.name for column in self.order.table.columns], condition)
        connection = self.connections.get(endpoint, side)
        try:
            (row,) = rows(connection, statement)
        except MySQLdb.Error as error:
            raise server_error(error, endpoint, side, statement).at(source=source, table=str(read.name)) from error
        return digest_of(row)

    def _shards(self) -> Iterator[tuple[ComparedShard, str]]:
        """Yield the source tables that have rows in the range, each with its condition."""
        for shard in self.order.table.shards:
            condition = shard_condition(self.order.table, shard, self.order.part)
            if condition is not None:
                yield shard, " AND ".join(f"({one})" for one in (condition, shard.where) if one)

    def _source_rows(self) -> Iterator[pa.RecordBatch]:
        for shard, condition in self._shards():
            begun = time.monotonic()
            for batch in shard_batches(self.connections, self.order.table, shard, (condition,)):
                self._note_busy(shard.endpoint, begun)
                yield batch
                self._pace(len(batch))
                begun = time.monotonic()
            self._note_busy(shard.endpoint, begun)

    def _target_rows(self) -> Iterator[pa.RecordBatch]:
        table = self.order.table
        return target_batches(self.connections, table, (target_condition(table, self.order.part),))

    def _pace(self, count: int) -> None:
        """Rest until the sources have been read no faster than they may be."""
        self._read += count
        if self.order.rows_per_second:
            ahead = self._read / self.order.rows_per_second - (time.monotonic() - self._begun)
            time.sleep(max(ahead, 0.0))


def _within(counts: np.ndarray, unlike: np.ndarray, room: int) -> tuple[np.ndarray, int]:
    """Return the first unlike sums, with at most `room` rows but at least one sum, and the others' row count."""
    places = np.flatnonzero(unlike)
    total = np.cumsum(counts[places])
    fitting = max(int(np.searchsorted(total, room, side="right")), 1)
    kept = np.zeros(len(unlike), dtype=bool)
    kept[places[:fitting]] = True
    return kept, int(counts[places[fitting:]].sum())


def _of_sums(batches: Iterable[pa.RecordBatch], kept: np.ndarray) -> list[pa.RecordBatch]:
    """Return the rows that went into these sums."""
    found = []
    for batch in batches:
        wanted = kept[(row_hashes(batch) % np.uint64(SUMS)).astype(np.int64)]
        if wanted.any():
            found.append(batch.filter(pa.array(wanted)))
    return found


def _suspects(
    table: ComparedTable, ours: list[pa.RecordBatch], theirs: list[pa.RecordBatch], most: int
) -> tuple[list[tuple[str, ...]], int]:
    """Return at most `most` keys of rows that one side has more often than the other, and how many there are.

    For a table without a key they are hashes of these rows.
    """
    hashes = [[row_hashes(batch) for batch in side] for side in (ours, theirs)]
    flat = [np.concatenate(side) if side else np.zeros(0, dtype=np.uint64) for side in hashes]
    distinct, place = np.unique(np.concatenate(flat), return_inverse=True)
    signs = np.concatenate([np.ones(len(flat[0]), dtype=np.int64), -np.ones(len(flat[1]), dtype=np.int64)])
    balance = np.zeros(len(distinct), dtype=np.int64)
    np.add.at(balance, place, signs)
    odd = distinct[balance != 0]
    if not table.key:
        return [(str(one),) for one in odd[:most].tolist()], len(odd)
    found: dict[tuple[str, ...], None] = {}
    keys = [np.zeros(0, dtype=np.uint64)]
    for batch, its in zip([*ours, *theirs], [*hashes[0], *hashes[1]], strict=True):
        wanted = np.isin(its, odd)
        if wanted.any():
            rows_of_keys = batch.filter(pa.array(wanted))
            keys.append(row_hashes(rows_of_keys, table.key))
            if len(found) < most:
                found.update(dict.fromkeys(key_literals(rows_of_keys, table)))
    count = max(len(np.unique(np.concatenate(keys))), len(found))
    return list(found)[:most], count
