"""Step *clamp*: TIME beyond the range of a TiDB or MySQL becomes the last one that it has, if the task says so.

Called in a Spark task before step *map*, so the keys that are reported are those of the source. The images before a
change are clamped too, as the row in the target was. Only the values of rows that are written are reported.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from unshard.binlog.images import PartialImages
from unshard.model.change import IMAGE_FIELDS, Op
from unshard.sync.batch.plan import BatchPlan
from unshard.sync.changes.decode import Images
from unshard.sync.changes.map import batch_of, with_keys
from unshard.transform.latest_time import ClampedValue, clamped_columns, row_keys


def clamp_times(plan: BatchPlan, images: Sequence[Images]) -> tuple[list[Images], tuple[ClampedValue, ...]]:
    """Return the images with clamped values, and the values that were clamped, in the order of the images."""
    found: list[Images] = []
    values: list[ClampedValue] = []
    for one in images:
        table, whole = one
        batch = batch_of(whole)
        columns = [column for column in table.table.columns if column.name in table.clamped]
        clamped, beyond = clamped_columns(batch, columns, len(IMAGE_FIELDS))
        if beyond:
            values += _values(plan, one, batch, beyond)
            whole = replace(whole, batch=clamped) if isinstance(whole, PartialImages) else clamped
        found.append((table, whole))
    return found, tuple(values)


def _values(
    plan: BatchPlan, images: Images, batch: pa.RecordBatch, beyond: dict[str, np.ndarray]
) -> Iterator[ClampedValue]:
    """Yield the values of the images of rows that are written. A Python object each: such values are rare."""
    table, _ = images
    written = np.isin(batch.column(0).to_numpy(zero_copy_only=False), (Op.INSERT, Op.UPDATE_AFTER))
    for name, rows in beyond.items():
        chosen = pa.array(rows[written[rows]], pa.int64())
        if len(chosen):
            place = batch.schema.names.index(name, len(IMAGE_FIELDS))
            texts = batch.column(place).take(chosen).to_pylist()
            for key, text in zip(_keys(plan, images, chosen), texts, strict=True):
                yield ClampedValue(table.table.name, table.target.name, key, name, text)


def _keys(plan: BatchPlan, images: Images, rows: pa.Array) -> list[str]:
    """Return the keys of these rows; "" for a table without one."""
    identity = images[0].table.identity
    if not identity:
        return [""] * len(rows)
    own, whole = with_keys(plan, images, {name: name for name in identity})
    chosen = whole.take(rows)
    names = [column.name for column in own.table.columns]
    places = [names.index(name) for name in identity]
    arrays = [chosen.column(len(IMAGE_FIELDS) + place) for place in places]
    return row_keys([own.table.columns[place] for place in places], arrays)
