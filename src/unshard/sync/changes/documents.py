"""Step *documents*: stop at a row whose JSON document the target would store with other values.

MySQL's JSON holds values of types that JSON text lacks (opaque values): DECIMAL, dates and times, binary data. Rows are
written as text, so a JSON column of the target gets a DOUBLE or a string in their place. With `json-values: stop` the
task stops instead, before anything of the batch is written. So it does at a text for such a column, as MariaDB's JSON
is, with a number that has more digits than a DOUBLE keeps. Only documents that are written count: what a filter leaves
out, an image before a change and a DELETE don't.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from unshard.binlog.images import PartialImages
from unshard.binlog.rows import OpaqueDocuments
from unshard.errors import SyncError, Where
from unshard.model.change import Op
from unshard.mysql.json_numbers import MAY_LOSE, loses_digits
from unshard.mysql.types import CHARACTERS
from unshard.sync.batch.plan import BatchPlan, Range, TablePlan
from unshard.sync.changes.decode import Images, decode_all
from unshard.sync.changes.filter import filter_rows

_WRITTEN = pa.array([Op.INSERT, Op.UPDATE_AFTER], pa.int8())


def refuse_documents(plan: BatchPlan, images: Sequence[Images], opaque: Iterable[OpaqueDocuments]) -> None:
    """Raise SyncError SYNC-078 for the first change of these images that leaves such a value in such a column.

    The error's `seq` is the number of the change.
    """
    plans = plan.by_name()
    watched = [one for one in opaque if one.column in plans[one.table.name].documents]
    found = [
        (seq, table, one.column)
        for table, batch in images
        for one in watched
        if one.table.name == table.table.name and (seq := _first(batch, one.seqs)) is not None
    ]
    found += [one for table, batch in images if table.documents for one in _rounded(table, batch)]
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


def _rounded(table: TablePlan, images: pa.RecordBatch | PartialImages) -> Iterator[tuple[int, TablePlan, str]]:
    """Yield the first change, for each column of text, that writes a number which is stored rounded."""
    batch = images.batch if isinstance(images, PartialImages) else images
    for column in table.table.columns:
        if column.name not in table.documents or column.type not in CHARACTERS or column.name not in batch.schema.names:
            continue
        texts = batch.column(batch.schema.names.index(column.name))
        wanted = pc.and_(pc.is_in(batch.column(0), _WRITTEN), pc.match_substring_regex(texts, MAY_LOSE))
        for seq, text in zip(batch.column(1).filter(wanted), texts.filter(wanted), strict=True):
            if loses_digits(str(text)):
                yield int(seq.as_py()), table, column.name
                break


def _first(images: pa.RecordBatch | PartialImages, seqs: pa.Array) -> int | None:
    """Return the smallest number of a change that the images have; None where they have none of them."""
    batch = images.batch if isinstance(images, PartialImages) else images
    there = seqs.filter(pc.is_in(seqs, batch.column(1)))
    return int(there[0].as_py()) if len(there) else None


def _error(plan: BatchPlan, table: TablePlan, column: str, seq: int) -> SyncError:
    values = {"column": column, "target": str(table.target.name), "seq": seq}
    return SyncError("SYNC-078", Where(plan.source, str(table.table.name)), values=values)
