"""What the demo shows at the end: equal rows, and from the target's own binlog that nothing was applied twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from unshard.cli.demo.receipts import OpenBatch
from unshard.cli.demo.scene import MERGED, META, TASK, Shard
from unshard.model.table import TableName
from unshard.testing.binlog_count import Image, RowEvent, row_events
from unshard.testing.servers import MariadbServer

_RECEIPTS = TableName(META, f"{TASK}_apply_partition")
_ID_BITS = 44
_SUM = """
SELECT COUNT(*), COALESCE(SUM(CAST(CONV(LEFT(MD5(CONCAT_WS(',', id + {bits}, k, QUOTE(c), QUOTE(pad))), 12), 16, 10)
    AS UNSIGNED)), 0) FROM {table} {where}
"""
Chunk = tuple[str, str, str, str]  # source, batch, partition, chunk, as the binlog prints them


@dataclass(frozen=True, slots=True)
class Sum:
    """How many rows, and the sum of their digests, which no order of rows changes."""

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
    """All that is shown.

    `chunks` counts chunks that the target's binlog has a receipt for, `versions` the row images written into the
    merged table. What `chunks_twice`, `versions_twice` and `deletes_twice` count must not be.
    """

    shards: tuple[ShardProof, ...]
    merged: Sum
    chunks: int
    chunks_twice: int
    versions: int
    versions_twice: int
    deletes: int
    deletes_twice: int
    chunks_of: dict[tuple[str, int], int]

    @property
    def source(self) -> Sum:
        return sum((proof.source for proof in self.shards), Sum(0, 0))

    @property
    def equal(self) -> bool:
        return self.source == self.merged and all(proof.source == proof.target for proof in self.shards)

    @property
    def once(self) -> bool:
        return not (self.chunks_twice or self.versions_twice or self.deletes_twice)


def prove(shards: Sequence[Shard], target: MariadbServer) -> Proof:
    """Compare the data, then read all binlogs. Nobody writes meanwhile."""
    events = row_events(target, (MERGED, _RECEIPTS))
    receipts = _receipts(events)
    merged = Counter({event: times for event, times in events.items() if event.table == MERGED})
    upstream: Counter[RowEvent] = Counter()
    for shard in shards:
        for event, times in row_events(shard.server, (shard.name,)).items():
            moved = RowEvent(MERGED, event.kind, _merged(event.before, shard), _merged(event.after, shard))
            upstream[moved] += times
    versions, deletes = _versions(merged), _vanished(merged)
    of_batch: Counter[tuple[str, int]] = Counter()
    for source, batch, _, _ in receipts:
        of_batch[source.strip("'"), int(batch)] += 1
    return Proof(
        tuple(_shard_proof(shard, target) for shard in shards),
        _sum(target, MERGED, 0, ""),
        receipts.total(),
        (receipts - Counter(dict.fromkeys(receipts, 1))).total(),
        versions.total(),
        (versions - _versions(upstream)).total(),
        deletes.total(),
        (deletes - _vanished(upstream)).total(),
        dict(of_batch),
    )


def _shard_proof(shard: Shard, target: MariadbServer) -> ShardProof:
    where = f"WHERE id >> {_ID_BITS} = {shard.bits >> _ID_BITS}"
    return ShardProof(shard, _sum(shard.server, shard.name, shard.bits, ""), _sum(target, MERGED, 0, where))


def _sum(server: MariadbServer, name: TableName, bits: int, where: str) -> Sum:
    ((rows, checksum),) = server.query(_SUM.format(bits=bits, table=name.quoted, where=where))
    return Sum(int(rows), int(checksum))


def _merged(image: Image, shard: Shard) -> Image:
    """A source row's image as it must stand in the merged table: the id with the shard's bits."""
    return (str(int(image[0]) + shard.bits), *image[1:]) if image else image


def _versions(events: Counter[RowEvent]) -> Counter[Image]:
    """How often each row came to stand as it did. Compaction leaves versions out; none may come more often."""
    counts: Counter[Image] = Counter()
    for event, times in events.items():
        if event.after:
            counts[event.after] += times
    return counts


def _vanished(events: Counter[RowEvent]) -> Counter[str]:
    """How often each id vanished: deleted, or changed into another."""
    counts: Counter[str] = Counter()
    for event, times in events.items():
        if event.before and (not event.after or event.after[0] != event.before[0]):
            counts[event.before[0]] += times
    return counts


def _receipts(events: Counter[RowEvent]) -> Counter[Chunk]:
    """How often each chunk of each batch was counted, by the update that commits together with its rows."""
    counts: Counter[Chunk] = Counter()
    for event, times in events.items():
        if event.table != _RECEIPTS or event.kind != "UPDATE":
            continue
        (_, _, _, batch_before, chunk_before, *_), (source, part, _, batch, chunk, *_) = event.before, event.after
        if batch == batch_before and int(chunk) == int(chunk_before) + 1:
            counts[source, batch, part, chunk] += times
    return counts


def chunks_left(proof: Proof, batch: OpenBatch) -> int:
    """How many chunks of the batch were applied after the kill."""
    return proof.chunks_of.get((batch.source, batch.batch_id), 0) - sum(batch.chunks)
