"""TIME beyond the range of MySQL and TiDB, clamped to the last value that they have.

MariaDB's TIME goes from -838:59:59.999999 to 838:59:59.999999, that of MySQL and TiDB from -838:59:59 to 838:59:59.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from unshard.kernels.literals import render
from unshard.model.table import Column, TableName, quote_name

LATEST_TIME = "838:59:59"
"""The last TIME of MySQL and TiDB, and without its sign the first."""

_BEYOND = rf"^-?{LATEST_TIME}\.0*[1-9]"
_FRACTION = rf"^(-?{LATEST_TIME})\.\d+$"


@dataclass(frozen=True, slots=True)
class ClampedValue:
    """A value that was clamped. `key` is of its row (`row_keys`); "" for a table without a key.

    `table` is the source's table, `column` its column, `value` the text of the value in the source.
    """

    table: TableName
    target: TableName
    key: str
    column: str
    value: str


def row_keys(columns: Sequence[Column], arrays: Sequence[pa.Array]) -> list[str]:
    """Return the condition that finds each row, by these columns of the source and the values that they have there.

    A Python object each: use it for single rows. `columns` must not be empty.
    """
    prefixes = [f"{' AND ' if number else ''}{quote_name(one.name)}=".encode() for number, one in enumerate(columns)]
    texts = render(list(arrays), prefixes, b"", [column.type == "decimal" for column in columns])
    return [text.decode(errors="replace") for text in texts.to_pylist()]


def are_beyond(values: pa.Array) -> np.ndarray:
    """Return which texts of TIME values are beyond the range. A NULL is not."""
    found: np.ndarray = pc.fill_null(pc.match_substring_regex(values, _BEYOND), False).to_numpy(zero_copy_only=False)
    return found


def clamped(values: pa.Array, column: Column) -> pa.Array:
    """Return the texts of a TIME column, clamped. Their lengths stay, so that a batch is cut into the same chunks."""
    return pc.replace_substring_regex(values, _FRACTION, rf"\1.{'0' * column.fsp}")


def without_fraction(values: pa.Array) -> pa.Array:
    """Return the texts without the fraction of the first and the last TIME, by which both ends are compared."""
    return pc.replace_substring_regex(values, _FRACTION, r"\1")


def clamped_columns(
    batch: pa.RecordBatch, columns: Collection[Column], first: int = 0
) -> tuple[pa.RecordBatch, dict[str, np.ndarray]]:
    """Return the batch with these columns clamped, and the numbers of the rows that had a value beyond, by column.

    Columns of the batch before number `first` are not of the table.
    """
    found: dict[str, np.ndarray] = {}
    names = batch.schema.names[first:]
    for column in columns:
        if column.name not in names:
            continue
        place = first + names.index(column.name)
        beyond = np.flatnonzero(are_beyond(batch.column(place)))
        if len(beyond):
            found[column.name] = beyond
            batch = batch.set_column(place, batch.schema.field(place), clamped(batch.column(place), column))
    return batch, found
