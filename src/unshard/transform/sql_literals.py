"""Values of a column as SQL literals, one Python text each: for statements that are written row by row."""

from __future__ import annotations

import pyarrow as pa

from unshard.kernels.literals import render
from unshard.model.table import Column
from unshard.mysql.types import zero_text


def sql_literals(array: pa.Array, column: Column) -> list[str]:
    """Return the literals that set `column` of the target: a DECIMAL without quotes, an ENUM's number 0 as a number."""
    texts = literal_texts(array, plain=column.type == "decimal")
    zero = zero_text(column) if column.type == "enum" and column.members else ""
    return ["0" if zero and text == f"'{zero}'" else text for text in texts]


def literal_texts(array: pa.Array, *, plain: bool = False) -> list[str]:
    """Return SQL literals of the values; `plain`: texts that are numbers, without quotes."""
    found: list[bytes] = render([array], [b""], b"", [plain]).to_pylist()
    return [text.decode() for text in found]
