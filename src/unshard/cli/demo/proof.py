"""The demo's proof: rows are equal, and by the target's own record nothing was applied twice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from unshard.cli.demo.applied_counts import AppliedCounts, count_applied
from unshard.cli.demo.open_batches import OpenBatchCount
from unshard.cli.demo.scene import MERGED, Shard
from unshard.model.table import TableName
from unshard.testing.throwaway_server import ThrowawayServer

_ID_BITS = 44
_SUM = """
SELECT COUNT(*), COALESCE(SUM(CAST(CONV(LEFT(MD5(CONCAT_WS(',', id + {bits}, k, QUOTE(c), QUOTE(pad))), 12), 16, 10)
    AS UNSIGNED)), 0) FROM {table} {where}
"""


@dataclass(frozen=True, slots=True)
class Sum:
    """The number of rows of a table, and the sum of their digests, which does not depend on the order of the rows."""

    rows: int
    checksum: int

    def __add__(self, other: Sum) -> Sum:
        return Sum(self.rows + other.rows, self.checksum + other.checksum)

    def __str__(self) -> str:
        return f"{self.checksum % (1 << 32):08x}"


@dataclass(frozen=True, slots=True)
class ShardProof:
    """The comparison of a shard with its rows in the merged table, which are found by their ids."""

    shard: Shard
    source: Sum
    target: Sum


@dataclass(frozen=True, slots=True)
class Proof:
    """The proof that the demo shows: each shard's comparison, the merged table, and the counts of applied changes."""

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
