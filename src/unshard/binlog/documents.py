"""JSON columns of PARTIAL_UPDATE_ROWS events, whose images after may hold differences (`PARTIAL_JSON`).

There a document is binary JSON of its own, or a list of diffs on that of the image before. A Python object for each
of the latter.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from unshard.binlog.columns import Buffers, UndecodableValue
from unshard.binlog.json_diff import apply_diffs
from unshard.kernels.json import to_text


def document_buffers(rows: int, buffers: Buffers, changed: Sequence[int]) -> Buffers:
    """The buffers of the documents' texts, for `build_array`, from those of the bytes that the log has.

    `changed` are the rows that hold diffs; the document that they change stands in the row above. Raises
    UndecodableValue.
    """
    data, offsets, validity, nulls = buffers
    raw = pa.Array.from_buffers(pa.binary(), rows, [validity, offsets, data], nulls)
    is_diff = np.zeros(rows, dtype=bool)
    is_diff[list(changed)] = True
    texts = _texts(pc.if_else(pa.array(is_diff), pa.scalar(None, pa.binary()), raw))
    if changed:
        made = pa.array([_changed(raw, row) for row in changed], pa.string())
        texts = pc.replace_with_mask(texts, pa.array(is_diff), made)
    validity, offsets, data = texts.buffers()
    return data if data is not None else pa.py_buffer(b""), offsets, validity, texts.null_count


def changes_document(bitmap: bytes, number: int) -> bool:
    """Whether the bitmap of an image says that JSON column `number` of the table, from 0 on, holds diffs."""
    return bool(bitmap[number >> 3] >> (number & 7) & 1)


def _texts(raw: pa.Array) -> pa.Array:
    try:
        return to_text(raw)
    except ValueError as error:
        raise UndecodableValue(next(row for row in range(len(raw)) if _fails(raw.slice(row, 1))), str(error)) from None


def _fails(value: pa.Array) -> bool:
    try:
        to_text(value)
    except ValueError:
        return True
    return False


def _changed(raw: pa.Array, row: int) -> str:
    before, diffs = raw[row - 1].as_py(), raw[row].as_py()
    if before is None or diffs is None:
        raise UndecodableValue(row, "the value is a change of a document that is NULL")
    try:
        return apply_diffs(before, diffs)
    except ValueError as error:
        raise UndecodableValue(row, f"the value does not change the document before: {error}") from None
