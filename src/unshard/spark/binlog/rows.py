"""Converts decoded batches to rows of the data source. Each column has one of these types in Spark.

| column | in Spark |
|---|---|
| BIGINT UNSIGNED, ENUM or SET without members | decimal(20,0), since Spark has no unsigned numbers |
| other integers, YEAR | bigint |
| DECIMAL up to 38 digits | decimal; wider ones are strings |
| FLOAT, DOUBLE | float, double |
| BINARY, BLOB, BIT, GEOMETRY, VECTOR | binary |
| everything else, temporal types too (Spark's types have no zero dates) | string |
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    DecimalType,
    DoubleType,
    FloatType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from unshard.binlog.rows import Decoded
from unshard.errors import BinlogError, ConfigError, Where
from unshard.kernels.literals import render
from unshard.model.change import IMAGE_FIELDS, Op
from unshard.model.table import Column, Table
from unshard.mysql.types import arrow_type

_WIDEST_DECIMAL = 38
_PLAIN = {pa.float32(): FloatType(), pa.float64(): DoubleType(), pa.binary(): BinaryType(), pa.int64(): LongType()}
_NAMES = {
    Op.INSERT: "insert",
    Op.UPDATE_BEFORE: "update_preimage",
    Op.UPDATE_AFTER: "update_postimage",
    Op.DELETE: "delete",
}
_CHANGE_TYPES = pa.array([_NAMES.get(Op(number), "") for number in range(len(Op))], pa.string())

_CHANGE = (StructField("_change_type", StringType(), False),)
_PLACE = (
    StructField("_file", StringType(), False),
    StructField("_offset", LongType(), False),
    StructField("_seq", LongType(), False),
    StructField("_timestamp", TimestampType(), False),
    StructField("_absent", ArrayType(StringType(), False), True),
)
_OF_TABLE = (StructField("_schema", StringType(), False), StructField("_table", StringType(), False))
_TEXTS = MapType(StringType(), StringType(), True)

ALL_TABLES = StructType([*_CHANGE, *_OF_TABLE, *_PLACE, StructField("row", _TEXTS, False)])
"""The schema for rows of all tables: values by column name, as text; bytes as the SQL literal `x'…'`."""

META = tuple(field.name for field in (*_CHANGE, *_PLACE))


def table_schema(table: Table) -> StructType:
    """Return the schema of one table's rows.

    Raises BinlogError for a column type that isn't supported, ConfigError CONFIG-011 for a column with the name of one
    of ours.
    """
    clash = sorted({column.name for column in table.columns}.intersection(META))
    if clash:
        raise ConfigError("CONFIG-011", cause=f"{table.name} has a column {', '.join(clash)} itself: read all tables")
    own = [StructField(column.name, spark_type(column), True) for column in table.columns]
    return StructType([*_CHANGE, *_PLACE, *own])


def spark_type(column: Column) -> DataType:
    """Return the column's type in Spark, by the module's table."""
    if column.type == "decimal" and column.precision <= _WIDEST_DECIMAL:
        return DecimalType(column.precision, column.scale)
    kind = arrow_type(column)
    if kind == pa.uint64():
        return DecimalType(20, 0) if column.type in ("bigint", "enum", "set") else LongType()
    return _PLAIN.get(kind, StringType())


@dataclass(frozen=True, slots=True)
class Images:
    """Row images of one table, with the offsets of their events.

    `absent` are the columns that were not logged in them.
    """

    table: Table
    batch: pa.RecordBatch
    absent: tuple[str, ...] = ()

    def slices(self, rows: int) -> Iterator[Images]:
        """Yield the images in slices of at most `rows` rows."""
        for at in range(0, len(self.batch), rows):
            yield replace(self, batch=self.batch.slice(at, rows))


def images_of(decoded: Decoded) -> Iterator[Images]:
    """Yield all images of a range.

    If images lack columns, those before and those after a change are yielded separately.
    """
    for table, batch in decoded:
        yield Images(table, batch)
    for partial in decoded.partial:
        for table, batch in partial.sides():
            logged = {column.name for column in table.columns}
            yield Images(
                table, batch, tuple(column.name for column in partial.table.columns if column.name not in logged)
            )


def typed_rows(images: Images, file: str, log: np.ndarray, wanted: pa.Schema) -> pa.RecordBatch:
    """Return images of one table with the columns of `wanted`. Columns that the table doesn't have are NULL.

    `log` is the file as bytes. Raises BinlogError 056 for a column of the binlog that `wanted` lacks.
    """
    table, batch = images.table, images.batch
    values = {column.name: _converted(column, batch.column(place)) for place, column in _placed(table)}
    beyond = sorted(set(values) - set(wanted.names))
    if beyond:
        first = int(_offsets(batch)[0])
        raise BinlogError(
            "BINLOG-056",
            Where(table=str(table.name), position=f"{file}:{first}"),
            values={"columns": ", ".join(beyond)},
        )
    values |= _places(images, file, log)
    arrays = [values.get(field.name, pa.nulls(len(batch), field.type)) for field in wanted]
    fitted = [array.cast(field.type) for array, field in zip(arrays, wanted, strict=True)]
    return pa.RecordBatch.from_arrays(fitted, schema=wanted)


def all_rows(images: Images, file: str, log: np.ndarray, wanted: pa.Schema) -> pa.RecordBatch:
    """Return images of one table with the columns of ALL_TABLES."""
    table, batch = images.table, images.batch
    values = _places(images, file, log)
    values["_schema"] = pa.repeat(table.name.schema, len(batch))
    values["_table"] = pa.repeat(table.name.table, len(batch))
    values["row"] = _texts(table, batch)
    fitted = [values[field.name].cast(field.type) for field in wanted]
    return pa.RecordBatch.from_arrays(fitted, schema=wanted)


def _placed(table: Table) -> Iterator[tuple[int, Column]]:
    return enumerate(table.columns, len(IMAGE_FIELDS))


def _offsets(batch: pa.RecordBatch) -> np.ndarray:
    found: np.ndarray = batch.column(batch.num_columns - 1).to_numpy()
    return found


def _places(images: Images, file: str, log: np.ndarray) -> dict[str, pa.Array]:
    """Return the columns about the change itself. An event begins with its time in Unix seconds, little-endian."""
    batch = images.batch
    absent = pa.scalar(list(images.absent) or None, pa.list_(pa.string()))
    offsets = _offsets(batch)
    seconds = sum(log[offsets + byte].astype(np.int64) << (8 * byte) for byte in range(4))
    return {
        "_change_type": _CHANGE_TYPES.take(batch.column(0)),
        "_file": pa.repeat(file, len(batch)),
        "_offset": pa.array(offsets),
        "_seq": batch.column(1),
        "_timestamp": pa.array(seconds * 1_000_000, pa.timestamp("us", tz="UTC")),
        "_absent": pa.repeat(absent, len(batch)),
    }


def _converted(column: Column, values: pa.Array) -> pa.Array:
    kind = spark_type(column)
    if isinstance(kind, DecimalType):
        return values.cast(pa.decimal128(kind.precision, kind.scale))
    return values.cast(pa.int64()) if isinstance(kind, LongType) else values


def _texts(table: Table, batch: pa.RecordBatch) -> pa.Array:
    """Return one map for each row, with the columns in table order.

    The values of all columns are concatenated, column by column, and then taken row by row.
    """
    rows, count = len(batch), len(table.columns)
    columns = [_text(batch.column(place)) for place, _ in _placed(table)]
    by_row = (np.arange(rows)[:, None] + np.arange(count)[None, :] * rows).ravel()
    names = pa.array([column.name for column in table.columns])
    keys = names.take(pa.array(np.tile(np.arange(count), rows)))
    items = pa.concat_arrays(columns).take(pa.array(by_row))
    return pa.MapArray.from_arrays(pa.array(np.arange(rows + 1, dtype=np.int32) * count), keys, items)


def _text(values: pa.Array) -> pa.Array:
    if values.type == pa.binary():
        literal = render([values], [b""], b"", [False]).cast(pa.string())
        return pc.if_else(values.is_valid(), literal, pa.scalar(None, pa.string()))
    return values.cast(pa.string())
