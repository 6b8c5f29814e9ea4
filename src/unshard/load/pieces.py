"""Cuts a data file into pieces that are committed one by one; the pieces are the same in every attempt."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from unshard.dump.files import checksum
from unshard.errors import ConfigError, LoadError, Where
from unshard.kernels.literals import render
from unshard.kernels.transcode import UntranslatableText, transcode
from unshard.load.backslashes import escaped
from unshard.load.file_settings import FileSettings, file_settings, is_setting
from unshard.load.file_text import Bytes, open_text
from unshard.load.sql_dump import Rewriter, statements
from unshard.model.table import Table
from unshard.mysql.types import arrow_type, as_written
from unshard.transform.column_mapping import ColumnMapping, apply_mapping, first_unmappable
from unshard.transform.extract import append_constants
from unshard.transform.latest_time import ClampedValue, clamped_columns, row_keys

STATEMENT_BYTES = 1 << 20
PIECE_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class LoadPiece:
    """A piece of a file, numbered from 1: the statements of one transaction.

    `offset` is where the next piece of an SQL file begins. `last`: the file has no further piece. A part of a piece
    (`load.parts.smaller`) has the piece's rows from number `start` on, up to `end`; None is the piece's end. `clamped`
    are the values of the whole piece that were clamped. Where the statements were made of columns, `head` is the length
    of each one's text before its values, and `columns` the number of them; else both are 0.
    """

    number: int
    offset: int
    statements: tuple[bytes, ...]
    last: bool
    start: int = 0
    end: int | None = None
    clamped: tuple[ClampedValue, ...] = ()
    head: int = 0
    columns: int = 0


def parquet_pieces(
    path: Path,
    done: int,
    table: Table,
    rewriter: Rewriter,
    raw: Collection[str] = (),
    clamped: Collection[str] = (),
) -> Iterator[LoadPiece]:
    """Yield the row groups after the first `done`, as INSERTs of at most about STATEMENT_BYTES.

    `raw`: the columns of text whose bytes are written, where the file has them; others are converted to Unicode.
    `clamped`: the columns of TIME that are clamped.
    Raises LoadError LOAD-002 for a file that is not whole Parquet or has other columns than the table.
    """
    where = Where(rewriter.where.source, rewriter.where.table, file=str(path))
    try:
        file = pq.ParquetFile(path, memory_map=True)
        total = file.num_row_groups
        for number in range(done, total):
            (batch,) = file.read_row_group(number, use_threads=False).combine_chunks().to_batches()
            batch = _as_text(batch, table, raw, where)
            batch, values = _clamped(batch, table, rewriter, clamped)
            yield _piece(number + 1, batch, table, rewriter, values, last=number + 1 == total)
    except (pa.ArrowException, OSError) as error:
        fault = "it is not whole Parquet"
        raise LoadError("LOAD-002", where, cause=str(error)[:300], values={"fault": fault}) from error


def _as_text(batch: pa.RecordBatch, table: Table, raw: Collection[str], where: Where) -> pa.RecordBatch:
    """Return the batch with text in the columns of text that the file has as bytes, but for those in `raw`."""
    for at, field in enumerate(batch.schema):
        column = table.column(field.name)
        if field.type != pa.binary() or arrow_type(column) != pa.string() or field.name in raw:
            continue
        try:
            values = transcode(batch.column(at), column.charset or "")
        except UntranslatableText as error:
            cause = f"column {field.name}: {error}"
            raise LoadError("LOAD-002", where, cause, {"fault": "it has text that is none"}) from None
        batch = batch.set_column(at, pa.field(field.name, pa.string()), values)
    return batch


def _clamped(
    batch: pa.RecordBatch, table: Table, rewriter: Rewriter, columns: Collection[str]
) -> tuple[pa.RecordBatch, tuple[ClampedValue, ...]]:
    """Return the batch with these columns clamped, and the values that were."""
    if not columns:
        return batch, ()
    found, beyond = clamped_columns(batch, [table.column(name) for name in columns])
    values = [
        ClampedValue(table.name, rewriter.target, key, name, text)
        for name, rows in beyond.items()
        for key, text in zip(_keys(batch.take(rows), table), batch.column(name).take(rows).to_pylist(), strict=True)
    ]
    return found, tuple(values)


def _keys(batch: pa.RecordBatch, table: Table) -> list[str]:
    """Return the conditions that find the rows; "" for a table without a key."""
    columns = [table.column(name) for name in table.identity]
    return row_keys(columns, [batch.column(one.name) for one in columns]) if columns else [""] * len(batch)


def _piece(
    number: int,
    batch: pa.RecordBatch,
    table: Table,
    rewriter: Rewriter,
    clamped: tuple[ClampedValue, ...],
    *,
    last: bool,
) -> LoadPiece:
    """Return the piece that inserts the rows of a batch."""
    if rewriter.mapping is not None:
        batch = _mapped(batch, rewriter.mapping, rewriter.where)
    columns = [table.column(name) for name in batch.schema.names]
    written = [as_written(*one) for one in zip(columns, batch.columns, strict=True)]
    batch = pa.RecordBatch.from_arrays(written, batch.schema.names)
    bare = [column.type == "decimal" for column in columns]
    batch = append_constants(batch, rewriter.constants)
    names = batch.schema.names
    bare += [False] * len(rewriter.constants)
    lines = render(batch.columns, [b"(", *[b","] * (len(names) - 1)], b"),", bare)
    _, offsets, data = lines.buffers()
    ends = np.frombuffer(offsets, dtype=np.int32)[lines.offset : lines.offset + len(lines) + 1]
    head = rewriter.head(names)
    view = memoryview(data)
    statements = tuple(b"".join((head, view[ends[a] : ends[b] - 1])) for a, b in _cuts(ends))
    return LoadPiece(number, 0, statements, last, clamped=clamped, head=len(head), columns=len(names))


def _mapped(batch: pa.RecordBatch, mapping: ColumnMapping, where: Where) -> pa.RecordBatch:
    try:
        return apply_mapping(batch, mapping)
    except ConfigError as error:
        row = first_unmappable(batch, mapping)
        cause = f"the row {str(batch.slice(row, 1).to_pylist()[0])[:300]}" if row is not None else ""
        raise ConfigError(error.code, error.where, cause, error.values).at(
            source=where.source, file=where.file
        ) from None


def _cuts(ends: Any) -> Iterator[tuple[int, int]]:
    """Yield ranges of rows of at most STATEMENT_BYTES, always of at least one row."""
    start, total = 0, len(ends) - 1
    while start < total:
        end = int(np.searchsorted(ends, ends[start] + STATEMENT_BYTES, side="right")) - 1
        end = min(max(end, start + 1), total)
        yield start, end
        start = end


@dataclass(frozen=True, slots=True)
class SqlText:
    """The text of an SQL file, with the meaning of its values and the offset of its first INSERT."""

    data: Bytes
    settings: FileSettings
    first: int


def open_sql(path: Path, where: Where, escape_backslash: bool | None = True) -> SqlText:
    """Open an SQL file. Raises LoadError LOAD-002 for one that is damaged before its first row, LOAD-029, LOAD-040.

    `escape_backslash`: as `load.backslashes.escaped`.
    """
    data = escaped(open_text(path), escape_backslash, where)
    sets: list[bytes] = []
    first = 0
    for text in statements(data, 0, where):
        if not is_setting(text.sql):
            break
        sets.append(text.sql)
        first = text.end
    return SqlText(data, file_settings(sets, data, first), first)


def sql_pieces(text: SqlText, done: int, offset: int, rewriter: Rewriter) -> Iterator[LoadPiece]:
    """Yield the statements from `offset` on, rewritten, in pieces of at least PIECE_BYTES.

    Raises LoadError LOAD-002 for an end inside a statement, LOAD-003 for a statement that is no INSERT.
    """
    held: list[bytes] = []
    held_bytes, number, end = 0, done, max(offset, text.first)
    for found in statements(text.data, end, rewriter.where):
        if held_bytes >= PIECE_BYTES:
            number += 1
            yield LoadPiece(number, end, tuple(held), last=False)
            held, held_bytes = [], 0
        end = found.end
        if not is_setting(found.sql):
            held.append(rewriter.rewrite(found.sql))
            held_bytes += len(found.sql)
    yield LoadPiece(number + 1, end, tuple(held), last=True)


def check_whole(path: Path, size: int, crc32: int | None, where: Where) -> None:
    """Compare a file with what the dump recorded of it. Raises LoadError LOAD-002."""
    fault = ""
    real = path.stat().st_size if path.exists() else None
    if real is None:
        fault = "it is missing"
    elif real != size:
        fault = f"it has {real} bytes where the dump wrote {size}"
    elif crc32 is not None and checksum(path) != crc32:
        fault = "its checksum is not the one that the dump recorded"
    if fault:
        raise LoadError("LOAD-002", where, values={"fault": fault})
