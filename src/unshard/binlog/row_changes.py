"""The row images of one event, change by change, for a reader.

`RowChanges` makes a Python object a value: it is not for the hot path.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
import pyarrow as pa

from unshard.binlog.images import PartialImages
from unshard.model.change import IMAGE_FIELDS, Op
from unshard.model.table import Column, Table


class Absent(Enum):
    """The type of `ABSENT`, the value of a column that the row image does not contain; it is not NULL."""

    ABSENT = "absent"


ABSENT = Absent.ABSENT

_PIECE = 1000  # rows turned into Python values at a time


@dataclass(frozen=True, slots=True)
class Change:
    """The change of one row: the values before and after it, by column.

    An image that the kind of change lacks is None. A column that an image lacks is ABSENT there: the log then doesn't
    say whether the change altered the value.
    """

    before: tuple[Any, ...] | None
    after: tuple[Any, ...] | None

    @property
    def changed(self) -> frozenset[int]:
        """Numbers of the columns that an UPDATE changed, or may have: one that it has after, but not before."""
        if self.before is None or self.after is None:
            return frozenset()
        pairs = enumerate(zip(self.before, self.after, strict=True))
        return frozenset(number for number, (before, after) in pairs if before != after and after is not ABSENT)


@dataclass(frozen=True, slots=True)
class RowChanges:
    """The changes of one row event. `as_text`: bytes of unknown charset are shown as text where they are UTF-8."""

    table: Table
    batches: tuple[pa.RecordBatch, ...]
    as_text: bool
    partial: tuple[PartialImages, ...] = ()

    @property
    def columns(self) -> tuple[Column, ...]:
        """Columns of the table that the event is decoded with."""
        return self.table.columns

    def count(self) -> int:
        """Return how many rows the event changes; an update's two images are one row."""
        batches = [*self.batches, *(images.batch for images in self.partial)]
        count: int = sum(batch.num_rows for batch in batches)
        return count // 2 if batches and batches[0].column(0)[0].as_py() == Op.UPDATE_BEFORE else count

    def __iter__(self) -> Iterator[Change]:
        before: tuple[Any, ...] | None = None
        for op, values in self._images():
            if op == Op.UPDATE_BEFORE:
                before = values
            elif op == Op.DELETE:
                yield Change(values, None)
            else:
                yield Change(before, values)
                before = None

    def _images(self) -> Iterator[tuple[int, tuple[Any, ...]]]:
        first = len(IMAGE_FIELDS)
        for batch in self.batches:
            for start in range(0, batch.num_rows, _PIECE):
                piece = batch.slice(start, _PIECE)
                columns = [self._plain(column) for column in piece.columns[first:]]
                yield from zip(piece.column(0).to_pylist(), zip(*columns, strict=True), strict=True)
        for images in self.partial:
            yield from self._partial_images(images)

    def _partial_images(self, images: PartialImages) -> Iterator[tuple[int, tuple[Any, ...]]]:
        places = {column.name: place for place, column in enumerate(images.columns)}
        numbers = range(len(self.table.columns))
        before, after = (
            [places[self.columns[n].name] if present is not None and n in present else None for n in numbers]
            for present in images.present
        )
        for start in range(0, images.batch.num_rows, _PIECE):
            piece = images.batch.slice(start, _PIECE)
            columns = [self._plain(column) for column in piece.columns[len(IMAGE_FIELDS) :]]
            for row, op in enumerate(piece.column(0).to_pylist()):
                chosen = before if op in (Op.UPDATE_BEFORE, Op.DELETE) else after
                yield op, tuple(ABSENT if place is None else columns[place][row] for place in chosen)

    def _plain(self, column: pa.Array) -> list[Any]:
        values: list[Any] = column.to_pylist()
        if pa.types.is_float32(column.type):  # the shortest text that reads back as the same FLOAT
            return [None if value is None else float(str(np.float32(value))) for value in values]
        if self.as_text and pa.types.is_binary(column.type):
            return [text_or_bytes(value) for value in values]
        return values


def text_or_bytes(value: bytes | None) -> str | bytes | None:
    """Return the text where the value is printable UTF-8, else the bytes."""
    try:
        text = None if value is None else value.decode()
    except UnicodeDecodeError:
        return value
    return text if text is None or text.replace("\n", "").replace("\t", "").isprintable() else value
