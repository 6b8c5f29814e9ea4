"""Row images that lack columns: `binlog_row_image` MINIMAL, NOBLOB and FULL_NODUP leave them out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from unshard.model.change import IMAGE_FIELDS, Op
from unshard.model.table import Column, Table


class Present(NamedTuple):
    """The columns that the row images of an event contain, by number; None for an image that the event lacks.

    An INSERT has no image before the change, a DELETE none after it.
    """

    before: frozenset[int] | None
    after: frozenset[int] | None

    def either(self, count: int) -> tuple[int, ...]:
        """Return the numbers of the columns that either image has, in table order."""
        return tuple(n for n in range(count) if any(images is not None and n in images for images in self))

    def lacks_columns(self, count: int, but: frozenset[int] = frozenset()) -> bool:
        """Return whether an image lacks one of the `count` columns; those in `but` may be absent."""
        return any(images is not None and len(images | but) < count for images in self)


@dataclass(frozen=True, slots=True)
class PartialImages:
    """Row images of one table that all have the same columns, where some of the table's columns are absent.

    `batch` holds `op`, `seq`, then `columns`: the columns that either image has, in table order. A column that an image
    lacks is NULL there, so only `present` tells it from a NULL. Columns that `decode_range` adds to batches are after
    those of the table. `offset` is that of the first event.
    """

    table: Table
    present: Present
    columns: tuple[Column, ...]
    batch: pa.RecordBatch
    offset: int

    def sides(self) -> Iterator[tuple[Table, pa.RecordBatch]]:
        """Yield the images before and those after a change, each with a Table of only the columns that they have."""
        names = [column.name for column in self.columns]
        is_after = pc.is_in(self.batch.column(0), pa.array([Op.INSERT, Op.UPDATE_AFTER], pa.int8()))
        for present, chosen in zip(self.present, (pc.invert(is_after), is_after), strict=True):
            if present is not None:
                columns = tuple(self.table.columns[number] for number in sorted(present))
                absent = [
                    n
                    for n, name in enumerate(names, len(IMAGE_FIELDS))
                    if name not in {column.name for column in columns}
                ]
                kept = [n for n in range(self.batch.num_columns) if n not in absent]
                yield replace(self.table, columns=columns), self.batch.filter(chosen).select(kept)


def present_columns(bitmap: bytes | None, count: int) -> frozenset[int] | None:
    """Return the numbers of the set bits of a columns-present bitmap; None for None."""
    if bitmap is None:
        return None
    return frozenset(number for number in range(count) if bitmap[number >> 3] >> (number & 7) & 1)
