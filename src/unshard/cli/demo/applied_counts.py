"""Counts how often each change was applied to the target, from the history that the target itself keeps.

A MariaDB keeps this history in its binlog. A TiDB has no binlog; there the history is the versions of each row and of
the receipts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from unshard.cli.demo.scene import MERGED, META, TASK, Shard
from unshard.model.table import TableName
from unshard.testing.binlog_count import Image, RowEvent, as_applied, row_events
from unshard.testing.throwaway_server import ThrowawayServer
from unshard.testing.tidb_history import Receipt, Transaction, Version, receipts, versions
from unshard.testing.tidb_server import TidbServer

_RECEIPTS = TableName(META, f"{TASK}_apply_partition")
Chunk = tuple[str, str, str, str]  # source, batch, partition, chunk


@dataclass(frozen=True, slots=True)
class AppliedCounts:
    """The counts of everything that was applied to the target, by the target's own record.

    `chunks` counts chunks that have a receipt, `versions` the row images written into the merged table. `chunks_twice`,
    `versions_twice`, `deletes_twice` and `without_receipt` must be 0. `without_receipt` counts versions and deletes
    that a transaction without exactly one receipt wrote, where the record shows transactions.
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
    """The target's own record of applied changes: how often it has each chunk, each row image and each deleted id."""

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
