"""The demo's proof: rows are equal, and by the target's own record nothing was applied twice.

A MariaDB has its record in its binlog. A TiDB has none; there the record is the versions of each row and of the
receipts. Checkpoints, open batches and the chunks that receipts count are read from outside of the run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import MySQLdb

from unshard.cli.demo.scene import MERGED, META, TASK, Shard
from unshard.model.position import Position
from unshard.model.table import TableName
from unshard.testing.binlog_count import Image, RowEvent, as_applied, row_events
from unshard.testing.servers import ThrowawayServer
from unshard.testing.tidb_history import Receipt, Transaction, Version, receipts, versions
from unshard.testing.tidb_server import TidbServer

_NOT_YET = frozenset({1146, 1049})  # no such table, no such schema
_OPEN = f"""
SELECT b.source, b.batch_id, b.begin_name, b.begin_pos, b.end_name, b.end_pos, p.part, p.chunk
FROM {META}.{TASK}_apply_batch b JOIN {META}.{TASK}_apply_partition p USING (source, batch_id)
WHERE b.state = 'open' AND b.plan LIKE '%"kind": "rows"%' ORDER BY source, part
"""
_CHECKPOINT = f"SELECT id, binlog_name, binlog_pos FROM {META}.{TASK}_syncer_checkpoint WHERE is_global"


@dataclass(frozen=True, slots=True)
class OpenBatchCount:
    """A batch that is planned and not closed; `chunks` are those applied, one figure a partition."""

    source: str
    batch_id: int
    begin: Position
    end: Position
    chunks: tuple[int, ...]

    @property
    def halfway(self) -> bool:
        """True if some partition has applied chunks and another has not come to its first."""
        return any(self.chunks) and not all(self.chunks)


class Watch:
    """A connection to the target that looks at the meta tables. Closed at the end of a `with` block."""

    def __init__(self, target: ThrowawayServer) -> None:
        self._connection = target.connection()

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def open_batches(self) -> list[OpenBatchCount]:
        """Return the open batches, with the chunks that each part has applied."""
        found: dict[tuple[str, int], OpenBatchCount] = {}
        for source, batch, begin, begin_at, end, end_at, _, chunk in self._rows(_OPEN):
            known = found.get((source, batch))
            found[source, batch] = OpenBatchCount(
                source,
                int(batch),
                Position(begin, int(begin_at)),
                Position(end, int(end_at)),
                (*(known.chunks if known else ()), int(chunk)),
            )
        return list(found.values())

    def checkpoints(self) -> dict[str, Position]:
        """Return the checkpoint of each source."""
        return {source: Position(file, int(offset)) for source, file, offset in self._rows(_CHECKPOINT)}

    def connections(self) -> int:
        """Return how many connections the target has beside this one: none once it has noticed a kill."""
        return sum(1 for row in self._rows("SHOW PROCESSLIST") if row[1] == "root") - 1

    def _rows(self, statement: str) -> list[Any]:
        with self._connection.cursor() as cursor:
            try:
                cursor.execute(statement)
            except MySQLdb.Error as error:
                if error.args[0] not in _NOT_YET:
                    raise
                return []
            return list(cursor.fetchall())


_RECEIPTS = TableName(META, f"{TASK}_apply_partition")
Chunk = tuple[str, str, str, str]  # source, batch, partition, chunk


@dataclass(frozen=True, slots=True)
class AppliedCounts:
    """The counts of the target's record; of `chunks_twice` to `without_receipt` there must be none.

    `chunks` counts chunks that have a receipt, `versions` the row images written into the merged table.
    `without_receipt` are versions and deletes that a transaction without exactly one receipt wrote, where the record
    tells of transactions.
    """

    record: str
    chunks: int
    chunks_twice: int
    versions: int
    versions_twice: int
    deletes: int
    deletes_twice: int
    without_receipt: int
    chunks_of: Mapping[tuple[str, int], int]

    @property
    def once(self) -> bool:
        """True if everything was applied exactly once."""
        return not (self.chunks_twice or self.versions_twice or self.deletes_twice or self.without_receipt)


@dataclass(frozen=True, slots=True)
class _Record:
    """The target's record, whatever kept it: how often each chunk, image of a row and deleted id is in it."""

    name: str
    chunks: Counter[Chunk]
    versions: Counter[Image]
    deletes: Counter[str]
    without_receipt: int = 0


def count_applied(shards: Sequence[Shard], target: ThrowawayServer) -> AppliedCounts:
    """Hold the target's record against the binlogs of the sources. Nobody writes meanwhile."""
    upstream: Counter[RowEvent] = Counter()
    for shard in shards:
        for event, times in row_events(shard.server, (shard.name,)).items():
            moved = RowEvent(MERGED, event.kind, _merged(event.before, shard), _merged(event.after, shard))
            upstream[moved] += times
    written, vanished = _versions(upstream), _vanished(upstream)
    record = _row_versions(target, upstream) if isinstance(target, TidbServer) else _binlog(target)
    of_batch: Counter[tuple[str, int]] = Counter()
    for source, batch, _, _ in record.chunks:
        of_batch[source, int(batch)] += 1
    return AppliedCounts(
        record.name,
        record.chunks.total(),
        (record.chunks - Counter(dict.fromkeys(record.chunks, 1))).total(),
        record.versions.total(),
        (record.versions - written).total(),
        record.deletes.total(),
        (record.deletes - vanished).total(),
        record.without_receipt,
        of_batch,
    )


def _binlog(target: ThrowawayServer) -> _Record:
    events = row_events(target, (MERGED, _RECEIPTS))
    merged = Counter({event: times for event, times in events.items() if event.table == MERGED})
    return _Record("the target's own binlog", _counted(events), _versions(merged), _vanished(merged))


def _row_versions(target: TidbServer, upstream: Counter[RowEvent]) -> _Record:
    """Return the record of every row that the shards ever had, from the versions that TiDB keeps."""
    moved, _ = receipts(target)
    ids = {(event.after or event.before)[0] for event in as_applied(upstream)}
    found = versions(target, MERGED, ids)
    written = [version for history in found.values() for version in history]
    return _Record(
        "the row versions that the target keeps",
        _moved_on(moved),
        Counter(version.image for version in written if version.image is not None),
        Counter(key for key, history in found.items() for version in history if version.image is None),
        sum(not _has_one_receipt(version, moved) for version in written),
    )


def _has_one_receipt(version: Version, moved: Mapping[Transaction, Sequence[Receipt]]) -> bool:
    return len(moved.get(version.transaction, ())) == 1


def _merged(image: Image, shard: Shard) -> Image:
    """Return a source row's image as it has to be in the merged table: the id has the shard's bits."""
    return (str(int(image[0]) + shard.bits), *image[1:]) if image else image


def _versions(events: Counter[RowEvent]) -> Counter[Image]:
    """Count how often each row got its image. Compaction skips some of these versions; none may occur more often."""
    counts: Counter[Image] = Counter()
    for event, times in events.items():
        if event.after:
            counts[event.after] += times
    return counts


def _vanished(events: Counter[RowEvent]) -> Counter[str]:
    """Count how often each id vanished: was deleted, or was changed into another."""
    counts: Counter[str] = Counter()
    for event, times in events.items():
        if event.before and (not event.after or event.after[0] != event.before[0]):
            counts[event.before[0]] += times
    return counts


def _counted(events: Counter[RowEvent]) -> Counter[Chunk]:
    """Count how often each chunk of each batch was counted, by the update that commits together with its rows."""
    counts: Counter[Chunk] = Counter()
    for event, times in events.items():
        if event.table != _RECEIPTS or event.kind != "UPDATE":
            continue
        (_, _, _, batch_before, chunk_before, *_), (source, part, _, batch, chunk, *_) = event.before, event.after
        if batch == batch_before and int(chunk) == int(chunk_before) + 1:
            counts[source.strip("'"), batch, part, chunk] += times
    return counts


def _moved_on(moved: Mapping[Transaction, Sequence[Receipt]]) -> Counter[Chunk]:
    """Count how often each chunk was counted, by a receipt's versions.

    A batch begins at chunk 0; a step is of a chunk that is not complete.
    """
    counts: Counter[Chunk] = Counter()
    for receipt in (receipt for of_one in moved.values() for receipt in of_one):
        if receipt.of[0] == str(_RECEIPTS):
            _, source, part = receipt.of
            batch, chunk, step = receipt.to
            counts[source, batch, part, chunk] += chunk != "0" and step == "0"
    return +counts


_ID_BITS = 44
_SUM = """
SELECT COUNT(*), COALESCE(SUM(CAST(CONV(LEFT(MD5(CONCAT_WS(',', id + {bits}, k, QUOTE(c), QUOTE(pad))), 12), 16, 10)
    AS UNSIGNED)), 0) FROM {table} {where}
"""


@dataclass(frozen=True, slots=True)
class Sum:
    """The number of rows, and the sum of their digests, which no order of rows changes."""

    rows: int
    checksum: int

    def __add__(self, other: Sum) -> Sum:
        return Sum(self.rows + other.rows, self.checksum + other.checksum)

    def __str__(self) -> str:
        return f"{self.checksum % (1 << 32):08x}"


@dataclass(frozen=True, slots=True)
class ShardProof:
    """A shard beside those rows of the merged table whose id names it."""

    shard: Shard
    source: Sum
    target: Sum


@dataclass(frozen=True, slots=True)
class Proof:
    """All that is shown."""

    shards: tuple[ShardProof, ...]
    merged: Sum
    applied: AppliedCounts

    @property
    def source(self) -> Sum:
        """Rows and checksum of all shards together."""
        return sum((proof.source for proof in self.shards), Sum(0, 0))

    @property
    def equal(self) -> bool:
        """True if all shards together equal the merged table, and each shard its part of it."""
        return self.source == self.merged and all(proof.source == proof.target for proof in self.shards)

    @property
    def once(self) -> bool:
        """True if everything was applied exactly once."""
        return self.applied.once


def prove(shards: Sequence[Shard], target: ThrowawayServer) -> Proof:
    """Compare the data, then read what all servers have logged. Nobody writes meanwhile."""
    return Proof(
        tuple(_shard_proof(shard, target) for shard in shards),
        _sum(target, MERGED, 0, ""),
        count_applied(shards, target),
    )


def _shard_proof(shard: Shard, target: ThrowawayServer) -> ShardProof:
    where = f"WHERE id >> {_ID_BITS} = {shard.bits >> _ID_BITS}"
    return ShardProof(shard, _sum(shard.server, shard.name, shard.bits, ""), _sum(target, MERGED, 0, where))


def _sum(server: ThrowawayServer, name: TableName, bits: int, where: str) -> Sum:
    ((rows, checksum),) = server.query(_SUM.format(bits=bits, table=name.quoted, where=where))
    return Sum(int(rows), int(checksum))


def chunks_left(proof: Proof, batch: OpenBatchCount) -> int:
    """Return how many chunks of the batch were applied after the kill."""
    return proof.applied.chunks_of.get((batch.source, batch.batch_id), 0) - sum(batch.chunks)
