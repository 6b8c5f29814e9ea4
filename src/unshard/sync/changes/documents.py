"""Step *documents*: stop at a row whose JSON document the target would store with other values.

MySQL's JSON holds values of types that JSON text lacks (opaque values): DECIMAL, dates and times, binary data. Rows are
written as text, so a JSON column of the target gets a DOUBLE or a string in their place. With `json-values: stop` the
task stops instead, before anything of the batch is written. Only documents that are written count: what a filter leaves
out, an image before a change and a DELETE don't.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from unshard.binlog.images import PartialImages
from unshard.binlog.rows import OpaqueDocuments
from unshard.errors import SyncError, Where
from unshard.sync.batch.plan import BatchPlan, Range, TablePlan
from unshard.sync.changes.decode import Images, decode_all
from unshard.sync.changes.filter import filter_rows


def refuse_documents(plan: BatchPlan, images: Sequence[Images], opaque: Iterable[OpaqueDocuments]) -> None:
    """Raise SyncError SYNC-078 for the first change of these images that leaves an opaque value in such a column.

    The error's `seq` is the number of the change.
    """
    plans = plan.by_name()
    watched = [one for one in opaque if one.column in plans[one.table.name].documents]
    if not watched:
        return
    found = [
        (seq, table, one.column)
        for table, batch in images
        for one in watched
        if one.table.name == table.table.name and (seq := _first(batch, one.seqs)) is not None
    ]
    if found:
        seq, table, column = min(found, key=lambda one: one[0])
        raise _error(plan, table, column, seq)


def refuse_documents_ahead(plan: BatchPlan) -> None:
    """Raise SyncError SYNC-078 for such a change of a batch that is applied slice by slice; nothing for any other.

    The executors would find it in a later slice, with the transaction half applied.
    """
    tables = tuple(table for table in plan.tables if table.documents)
    if not plan.sliced or not tables:
        return
    plan = replace(plan, tables=tables)
    for piece in plan.ranges:
        refuse_documents(plan, *_filtered(plan, piece))


def _filtered(plan: BatchPlan, piece: Range) -> tuple[Sequence[Images], Iterable[OpaqueDocuments]]:
    images, _, opaque = decode_all(plan, piece)
    return filter_rows(images)[0], opaque


def _first(images: pa.RecordBatch | PartialImages, seqs: pa.Array) -> int | None:
    """Return the smallest number of a change that the images have; None where they have none of them."""
    batch = images.batch if isinstance(images, PartialImages) else images
    there = seqs.filter(pc.is_in(seqs, batch.column(1)))
    return int(there[0].as_py()) if len(there) else None


def _error(plan: BatchPlan, table: TablePlan, column: str, seq: int) -> SyncError:
    values = {"column": column, "target": str(table.target.name), "seq": seq}
    return SyncError("SYNC-078", Where(plan.source, str(table.table.name)), values=values)
