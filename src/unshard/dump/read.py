"""Reads the rows of a chunk from a source connection as Arrow batches, in the types of `mysql.types.arrow_type`."""

from __future__ import annotations

import gc
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from unshard.dump.result_rows import column_batches
from unshard.errors import DumpError, Where
from unshard.kernels.transcode import UntranslatableText, transcode
from unshard.model.table import Column, Table, quote_name
from unshard.mysql.plain_socket import plain_socket
from unshard.mysql.types import CHARACTERS, GEOMETRIES, MEMBERS, arrow_type, read_by_number, set_text, zero_text

BATCH_ROWS = 10_000
FETCH_ROWS = 2_000
FETCH_BYTES = 8 << 20
"""A batch ends with the row that reaches this size."""

_LONG_BYTES = 1 << 10
_BOUNDLESS = frozenset({"json"}) | GEOMETRIES
_APPROXIMATE = frozenset({"float", "double"})


def dumped_columns(table: Table) -> tuple[Column, ...]:
    """Return the columns that a dump holds: all but generated ones, which the target computes itself."""
    return tuple(column for column in table.columns if not column.generated)


def dump_schema(table: Table, raw: Collection[str] = ()) -> pa.Schema:
    """Return field names and types of the table's dump files. Raises for a column type that is not handled.

    `raw`: the columns of text whose values stay the bytes that they are.
    """
    kinds = (
        (column.name, pa.binary() if column.name in raw else arrow_type(column)) for column in dumped_columns(table)
    )
    return pa.schema([pa.field(name, kind) for name, kind in kinds])


def select(table: Table, conditions: Sequence[str] = ()) -> str:
    """Return the SELECT for a table's rows, ANDing `conditions`.

    FLOAT goes through DOUBLE: the server prints FLOAT with six digits, which is not the value. Text that is not utf8mb4
    is read in its own bytes: the server would send a question mark for a character that it can't convert. A DECIMAL
    ZEROFILL is read without leading zeros, and a YEAR(2) as the full year, as the binlog has them; a SET with an empty
    member as a number.
    """
    terms = [_term(column) for column in dumped_columns(table)]
    condition = " AND ".join(f"({text})" for text in conditions if text)
    return f"SELECT {', '.join(terms)} FROM {table.name.quoted}" + (f" WHERE {condition}" if condition else "")


def _term(column: Column) -> str:
    name = quote_name(column.name)
    if column.type in _APPROXIMATE:
        return f"{name} * 1e0"  # a cast that every server has; it keeps the sign of a zero
    if column.type == "year" and column.definition == "year(2)":  # shown without its century, which the binlog has
        # YEAR() tells 1950 from 2050, and gives 1900 for the year zero; servers without it for such a column give NULL
        return f"IF(YEAR({name}) >= 1900, YEAR({name}) * (YEAR({name}) > 1900), {name} + IF({name} < 70, 2000, 1900))"
    if column.type == "decimal" and "zerofill" in column.definition:
        return f"CAST({name} AS DECIMAL({column.precision},{column.scale}))"
    if column.type == "enum" and column.members and (zero := zero_text(column)):
        name = f"IF({name} = 0, '{zero}', {name})"
    if read_by_number(column):
        return f"CAST({name} AS UNSIGNED)"
    # CAST ... AS BINARY would give NULL on MariaDB for a text longer than max_allowed_packet
    return f"CONVERT({name} USING binary)" if _own_charset(column) else name


def _own_charset(column: Column) -> str | None:
    """Return the charset in which the column's values are read, where it is not that of the connection."""
    text = column.type in CHARACTERS or column.type in MEMBERS
    return column.charset if text and column.charset not in ("utf8mb4", "binary") else None


def read_rows(
    connection: Any,
    table: Table,
    conditions: Sequence[str] = (),
    *,
    locking: bool = False,
    raw: Collection[str] = (),
) -> Iterator[pa.RecordBatch]:
    """Stream the rows of one SELECT; memory holds BATCH_ROWS of them, of long ones about FETCH_BYTES.

    `locking`: the rows as they are now, under shared locks until the connection's transaction ends. `raw`: as in
    `dump_schema`.

    `connection` gives bytes (`text=False`). Driver errors are raised unchanged. A caller that stops early must close
    the connection, as the rest of the result is still to be read from it.
    """
    schema = dump_schema(table, raw)
    statement = (select(table, conditions) + (" LOCK IN SHARE MODE" if locking else "")).encode()
    if plain_socket(connection) is not None:
        for columns in column_batches(connection, statement, len(schema), rows=BATCH_ROWS, size=FETCH_BYTES):
            yield _typed(columns, schema, table)
        return
    connection.query(statement)
    result = connection.use_result()
    longest = [_longest(column) for column in dumped_columns(table)]
    at_once = max(1, min(FETCH_ROWS, FETCH_BYTES // max(sum(longest), 1)))
    long = [place for place, size in enumerate(longest) if size > _LONG_BYTES]
    with _no_cycle_search():
        while found := _fetched(result, at_once, long):
            yield to_batch(found, schema, table)


def _longest(column: Column) -> int:
    """Return the most bytes that a text or binary value may have."""
    if column.type in _BOUNDLESS:
        return FETCH_BYTES
    return column.length * (4 if column.type in ("char", "varchar") else 1)


def _fetched(result: Any, at_once: int, long: Sequence[int]) -> Sequence[tuple[bytes | None, ...]]:
    """Return the next rows: FETCH_ROWS, or fewer that have FETCH_BYTES in their `long` columns; none at the end.

    The driver is asked for `at_once` at a time: as many as stay below FETCH_BYTES if each is as long as it may be.
    """
    rows: list[tuple[bytes | None, ...]] = []
    size = 0
    while len(rows) < FETCH_ROWS and size < FETCH_BYTES and (found := result.fetch_row(at_once, 0)):
        rows += found
        size += sum(len(row[place] or b"") for place in long for row in found)
    return rows


@contextmanager
def _no_cycle_search() -> Iterator[None]:
    """Disable Python's cycle collector, which would look at every row's tuple again and again, half of all the time.

    Rows of bytes have no cycles. The switch is the process's, which a task of Spark has for itself; where several
    threads of it read a table, the first that ends turns the search on again.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def to_batch(rows: Sequence[tuple[bytes | None, ...]], schema: pa.Schema, table: Table) -> pa.RecordBatch:
    """Turn rows, as the server's text protocol gives them, into columns. Raises as `_typed`."""
    return _typed([pa.array(values, pa.binary()) for values in zip(*rows, strict=True)], schema, table)


def _typed(columns: Sequence[pa.Array], schema: pa.Schema, table: Table) -> pa.RecordBatch:
    """Turn columns of the bytes that the server sent into those of the schema.

    Raises DumpError DUMP-005 for text that does not fit its type.
    """
    arrays = []
    for field, column, values in zip(schema, dumped_columns(table), columns, strict=True):
        place = Where(table=str(table.name))
        try:
            if read_by_number(column):
                arrays.append(_set_texts(column, values.cast(pa.string()).cast(pa.uint64())))
                continue
            charset = _own_charset(column) if field.type == pa.string() else None
            array = _convert(values, field.type, charset)
            arrays.append(_checked(array, column))
        except UntranslatableText as error:
            value = bytes(values[error.row].as_py() or b"")[:100].hex()
            raise DumpError("DUMP-005", place, f"{error}: x'{value}'", {"column": field.name}) from None
        except pa.ArrowInvalid as error:
            raise DumpError("DUMP-005", place, cause=str(error)[:300], values={"column": field.name}) from error
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _checked(values: pa.Array, column: Column) -> pa.Array:
    """Return ENUM and SET values if the structure has their members: a server can't show each of them as it is.

    Raises pa.ArrowInvalid for another value.
    """
    if column.members:
        known = {zero_text(column) if column.type == "enum" else "", *column.members}
        for text in values.unique().to_pylist():
            parts = [] if text is None else [text] if column.type == "enum" else text.split(",")
            if unknown := [part for part in parts if part not in known]:
                raise pa.ArrowInvalid(f"the structure has no member {unknown[0]}: {column.definition}")
    return values


def _set_texts(column: Column, numbers: pa.Array) -> pa.Array:
    encoded = numbers.dictionary_encode()
    texts = [set_text(column, number) for number in encoded.dictionary.to_pylist()]
    return pa.array(texts, pa.string()).take(encoded.indices)


def _convert(values: pa.Array, kind: pa.DataType, charset: str | None) -> pa.Array:
    if charset is not None:
        return transcode(values, charset)
    if kind == pa.binary():
        return values
    text = values.cast(pa.string())
    if kind == pa.string():
        return text
    if kind == pa.float32():
        return pc.cast(text.cast(pa.float64()), pa.float32(), safe=False)
    return text.cast(kind)
