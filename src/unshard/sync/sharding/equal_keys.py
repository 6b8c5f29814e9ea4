"""The form in which keys are compared that have different texts, but that the target may take for one key.

| column of the target's key | form, the same for values that may be equal |
|---|---|
| text, ENUM, SET | without trailing blanks, and folded as its collation does (`transform.expressions.texts`); \
all values are equal where the collation isn't known |
| FLOAT, DOUBLE | as FLOAT; -0.0 is 0.0 |
| DECIMAL, temporal values | without trailing zeros of the fraction |
| BINARY | without trailing zero bytes |
| others | the value |
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from unshard.kernels.literals import hash_of, render
from unshard.model.change import IMAGE_FIELDS
from unshard.model.table import Column
from unshard.sync.batch.plan import TablePlan
from unshard.transform.expressions.texts import coarse

_SCALED = frozenset({"decimal", "time", "datetime", "timestamp"})
_FLOATING = frozenset({"float", "double"})


def compared_otherwise(columns: Iterable[Column]) -> bool:
    """Return whether the target may take values of different texts for equal in one of these columns."""
    return any(
        column.text_with_collation or column.type in _SCALED | _FLOATING or column.type == "binary"
        for column in columns
    )


def coarse_hashes(plan: TablePlan, images: pa.RecordBatch, there: Sequence[Column]) -> np.ndarray:
    """Return a hash of every image's key, the same for keys that the target may take for equal.

    `there` are the target's columns of the key; the plan's table has columns of these names.
    """
    places = {column.name.lower(): place for place, column in enumerate(plan.table.columns)}
    forms = [_form(images.column(len(IMAGE_FIELDS) + places[column.name.lower()]), column) for column in there]
    found: np.ndarray = hash_of(render(forms, [b","] * len(forms), b""))
    return found


def _form(values: Any, column: Column) -> Any:
    if pa.types.is_floating(values.type):
        largest = np.finfo(np.float32).max
        values = pc.min_element_wise(pc.max_element_wise(values.cast(pa.float64()), -largest), largest)
        return pc.add(values.cast(pa.float32(), safe=False), pa.scalar(0, pa.float32()))
    if values.type == pa.binary() and column.type == "binary":
        return pc.replace_substring_regex(values, pattern=rb"\x00+\z", replacement=b"")
    if values.type != pa.string():
        return values
    if column.type in _SCALED:
        shorter = pc.replace_substring_regex(values, pattern=r"(\.\d*?)0*$", replacement=r"\1")
        return pc.utf8_rtrim(shorter, characters=".")
    if not column.text_with_collation:
        return values
    found = coarse(values, column.collation or "")
    return found if found is not None else pa.array([""] * len(values), pa.string())
