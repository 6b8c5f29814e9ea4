"""Step *filter*: leave out changes by the rules of their table, and count them by rule."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from unshard.binlog.images import PartialImages
from unshard.model.change import Op
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
