"""Step *filter*: leave out changes by the rules of their table, and count them by rule."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from unshard.binlog.images import PartialImages
from unshard.kernels.literals import hash_of, render
from unshard.model.change import IMAGE_FIELDS, Op
from unshard.sync.batch.plan import TablePlan
from unshard.sync.batch.row_counts import Filtered
from unshard.transform.row_filter import RowFilter


def filter_rows(
    images: Sequence[tuple[TablePlan, pa.RecordBatch | PartialImages]],
) -> tuple[list[tuple[TablePlan, pa.RecordBatch | PartialImages]], Filtered]:
    """Return the images that no rule of their table drops, and the counts of what is left out. Pure.

    A rule is asked only for images that the rules before it kept. Raises what a rule raises.
    """
    filtered: Counter[tuple[int, str]] = Counter()
    kept = []
    for table, found in images:
        for rule in table.filters:
            found, changes = _ask(rule, table, found)
            if changes:
                filtered[table.target.id, rule.rule] += changes
        if not table.filters or len(_batch(found)):
            kept.append((table, found))
    return kept, dict(filtered)


def hidden_targets(
    given: Sequence[tuple[TablePlan, pa.RecordBatch | PartialImages]],
    kept: Sequence[tuple[TablePlan, pa.RecordBatch | PartialImages]],
) -> frozenset[int]:
    """Return the targets with several unique keys whose images no longer show all values that a row had. Pure.

    `kept` are the images that `filter_rows` has kept of `given`. Where an UPDATE of a row is left out and another
    change of the row is not, the target's row has values that no image shows, and another row may take them over.
    Images that lack columns don't count: their changes keep the order of the log anyway.
    """
    there: defaultdict[int, list[pa.RecordBatch]] = defaultdict(list)
    for table, images in kept:
        there[table.id] += [images] if isinstance(images, pa.RecordBatch) else []
    hidden = set[int]()
    for table, images in given:
        own = there[table.id] if table.target.tied and table.filters else []
        if own and isinstance(images, pa.RecordBatch):
            batch, seqs = images, pa.chunked_array([one.column(1) for one in own])
            updates = pc.is_in(batch.column(0), pa.array([Op.UPDATE_BEFORE, Op.UPDATE_AFTER], pa.int8()))
            lost = batch.filter(pc.and_(updates, pc.invert(pc.is_in(batch.column(1), seqs.combine_chunks()))))
            if len(lost) and any(np.isin(_identities(table, lost), _identities(table, one)).any() for one in own):
                hidden.add(table.target.id)
    return frozenset(hidden)


def _identities(table: TablePlan, images: pa.RecordBatch) -> np.ndarray:
    """Return a hash of each image's identity. Rows may share one by chance."""
    names = [column.name for column in table.table.columns]
    values = [images.column(len(IMAGE_FIELDS) + names.index(name)) for name in table.table.identity]
    found: np.ndarray = hash_of(render(values, [b","] * len(values), b""))
    return found


def _ask(
    rule: RowFilter, table: TablePlan, images: pa.RecordBatch | PartialImages
) -> tuple[pa.RecordBatch | PartialImages, int]:
    """Return the images that the rule lets through, and how many changes it drops."""
    batch = _batch(images)
    if not len(batch):
        return images, 0
    dropped = rule.dropped(table.table, batch, _absent(images))
    if not dropped.any():
        return images, 0
    op = batch.column(0).to_numpy(zero_copy_only=False)
    before = np.flatnonzero(op == Op.UPDATE_BEFORE)
    if (dropped[before] != dropped[before + 1]).any():
        raise ValueError(f"{rule.rule} parts the images of an UPDATE")
    rest = batch.filter(pa.array(~dropped))
    changes = int((dropped & (op != Op.UPDATE_AFTER)).sum())
    return (replace(images, batch=rest) if isinstance(images, PartialImages) else rest), changes


def _batch(images: pa.RecordBatch | PartialImages) -> pa.RecordBatch:
    return images.batch if isinstance(images, PartialImages) else images


def _absent(images: pa.RecordBatch | PartialImages) -> frozenset[str]:
    """Return the columns that an image lacks; a generated column that is not logged is one of them."""
    if not isinstance(images, PartialImages):
        return frozenset()
    there = [present for present in images.present if present is not None]
    columns = enumerate(images.table.columns)
    return frozenset(column.name for number, column in columns if any(number not in present for present in there))
