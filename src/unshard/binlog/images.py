"""The row images of one event, change by change, for a reader. A Python object a value: not for the hot path."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from unshard.model.change import IMAGE_FIELDS, Op
from unshard.model.table import Column, Table

_PIECE = 1000  # rows turned into Python values at a time


@dataclass(frozen=True, slots=True)
class Change:
    """One row's change: its values before and after, by column; None where the kind has no such image."""

    before: tuple[Any, ...] | None
    after: tuple[Any, ...] | None

    @property
    def changed(self) -> frozenset[int]:
        """Numbers of the columns that an UPDATE changed."""
        if self.before is None or self.after is None:
            return frozenset()
        pairs = enumerate(zip(self.before, self.after, strict=True))
        return frozenset(number for number, (before, after) in pairs if before != after)


@dataclass(frozen=True, slots=True)
class Rows:
    """The changes of one row event. `as_text`: bytes of unknown charset are shown as text where they are UTF-8."""

    table: Table
    batches: tuple[pa.RecordBatch, ...]
    as_text: bool

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.table.columns

    def count(self) -> int:
        images: int = sum(batch.num_rows for batch in self.batches)
        return images // 2 if self.batches and self.batches[0].column(0)[0].as_py() == Op.UPDATE_BEFORE else images

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

    def _plain(self, column: pa.Array) -> list[Any]:
        values: list[Any] = column.to_pylist()
        if pa.types.is_float32(column.type):  # the shortest text that reads back as the same FLOAT
            return [None if value is None else float(str(np.float32(value))) for value in values]
        if self.as_text and pa.types.is_binary(column.type):
            return [text_or_bytes(value) for value in values]
        return values


def text_or_bytes(value: bytes | None) -> str | bytes | None:
    """The text of printable UTF-8, else the bytes."""
    try:
        text = None if value is None else value.decode()
    except UnicodeDecodeError:
        return value
    return text if text is None or text.replace("\n", "").replace("\t", "").isprintable() else value
