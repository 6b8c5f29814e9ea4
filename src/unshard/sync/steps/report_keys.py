"""Reports the keys that the images of a batch change, for continuous validation. It changes nothing of the batch.

Where all tasks decode the same images, each reports on its own part of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from unshard.kernels.literals import render
from unshard.model.change import IMAGE_FIELDS, Op
from unshard.sync.batch.key_report import SEPARATOR, KeyReport, KeyReportTable, pack
from unshard.sync.batch.plan import BatchPlan, TablePlan
from unshard.sync.changes.decode import Images
from unshard.sync.changes.encode import is_bare
from unshard.sync.changes.map import with_keys


@dataclass(frozen=True, slots=True)
class KeyShare:
    """The slice of the images on which a task reports: number `share` of `shares` equal slices."""

    share: int = 0
    shares: int = 1

    def of(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the slice of `batch` that is this task's."""
        begin, end = (len(batch) * number // self.shares for number in (self.share, self.share + 1))
        return batch.slice(begin, end - begin)


def report_keys(plan: BatchPlan, images: Sequence[Images], share: KeyShare) -> tuple[KeyReport, ...]:
    """Return reports on images after step *map*. Raises SyncError SYNC-030 as `encode` does."""
    found: dict[int, tuple[KeyReportTable, list[pa.Array]]] = {}
    for table, batch in images:
        target = table.target
        names = {} if target.keyless else {name: name for name in target.key}
        own, whole = with_keys(plan, (table, batch), names)
        rows = share.of(whole)
        if not len(rows):
            continue
        inserts, updates, deletes = _counted(rows)
        known, keys = found.get(table.id, (None, []))
        if known is not None:
            inserts, updates, deletes = known.inserts + inserts, known.updates + updates, known.deletes + deletes
        counts = inserts, updates, deletes
        found[table.id] = KeyReportTable(table.table.name, target.name, tuple(names), *counts), keys
        keys.append(_keys(own, rows, tuple(names)))
    return pack([(table, pa.chunked_array(keys, pa.binary()).unique()) for table, keys in found.values()])


def _counted(rows: pa.RecordBatch) -> tuple[int, int, int]:
    """Return the number of inserted, updated and deleted rows."""
    counts = np.bincount(rows.column(0).to_numpy(zero_copy_only=False), minlength=len(Op))
    return int(counts[Op.INSERT]), int(counts[Op.UPDATE_AFTER]), int(counts[Op.DELETE])


def _keys(table: TablePlan, rows: pa.RecordBatch, names: tuple[str, ...]) -> pa.Array:
    """Return the key of each row."""
    if not names:
        return pa.array([], pa.binary())
    places = {column.name: place for place, column in enumerate(table.table.columns)}
    columns = [table.table.columns[places[name]] for name in names]
    arrays = [rows.column(len(IMAGE_FIELDS) + places[name]) for name in names]
    prefixes = [b""] + [SEPARATOR] * (len(names) - 1)
    found: pa.Array = render(arrays, prefixes, b"", [is_bare(column) for column in columns])
    return found
