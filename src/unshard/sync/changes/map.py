"""Step *map*: apply the column mapping, and add the extracted columns, before keys are formed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from unshard.binlog.images import PartialImages
from unshard.errors import ConfigError, SyncError, UnshardError
from unshard.model.change import IMAGE_FIELDS, Op
from unshard.model.position import Position
from unshard.model.table import Column
from unshard.sync.batch.plan import BatchPlan, Range, TablePlan
from unshard.sync.changes.decode import Images, decode
from unshard.sync.changes.encode import key_separator, keys_of
from unshard.sync.changes.partial_images import map_partial, where_of
from unshard.transform.column_mapping import apply_mapping, first_unmappable
from unshard.transform.extract import append_constants, with_constants


def map_columns(plan: BatchPlan, images: Sequence[Images]) -> list[Images]:
    """Return the images with the values that the target gets, each with a plan whose table has all of their columns.

    Raises ConfigError CONFIG-009 and CONFIG-018 with the row's key and the position of its event; SyncError SYNC-032.
    """
    return [_mapped(plan, table, batch) for table, batch in images]


def _mapped(plan: BatchPlan, table: TablePlan, batch: pa.RecordBatch | PartialImages) -> Images:
    try:
        if isinstance(batch, PartialImages):
            return mapped(table), map_partial(table, batch, where_of(plan, batch))
        if table.mapping is not None:
            batch = apply_mapping(batch, table.mapping)
    except ConfigError as error:
        raise _placed(plan, table, batch, error) from None
    return mapped(table), append_constants(batch, table.constants)


def mapped(table: TablePlan) -> TablePlan:
    """Return the plan for images after step *map*, which has added the constants to the table's own columns."""
    return replace(table, table=with_constants(table.table, table.constants), mapping=None, constants=())


def _placed(
    plan: BatchPlan, table: TablePlan, images: pa.RecordBatch | PartialImages, error: ConfigError
) -> UnshardError:
    """Return the error with the row's key and the position of its event, for which the range is decoded once more."""
    batch = images.batch if isinstance(images, PartialImages) else images
    row = first_unmappable(batch, table.mapping) if table.mapping is not None and error.values.get("limit") else None
    if row is None:
        return error.at(source=plan.source)
    seq = batch.column(1)[row].as_py()
    piece = max((one for one in plan.ranges if one.seq_base <= seq), key=lambda one: one.seq_base)
    place = str(Position(piece.file, _offset(plan, piece, table, seq)))
    columns = images.columns if isinstance(images, PartialImages) else table.table.columns
    found = ConfigError(error.code, error.where, _key(table, columns, batch, row), error.values)
    return found.at(source=plan.source, position=place)


def _key(table: TablePlan, columns: tuple[Column, ...], batch: pa.RecordBatch, row: int) -> str:
    """Return the upstream row's key as a condition, or "" where its image lacks key columns.

    `columns` are the batch's own.
    """
    there = {column.name for column in columns if not column.generated}
    identity = tuple(table.table.column(name).name for name in table.table.identity)
    names = identity or tuple(column.name for column in table.table.columns if not column.generated)
    if not there.issuperset(names):
        return ""
    target = replace(table.target, key=names, keyless=not identity, bytewise=frozenset(), documents=frozenset())
    own = replace(table, target=target, table=replace(table.table, columns=columns))
    text = keys_of(own, batch.slice(row, 1))[0].as_py()
    shown = text[: -len(key_separator(target))].decode(errors="replace")[:500]
    return f"the row with {names[0]}={shown}" if len(identity) == 1 else f"the row with {shown}"


def _offset(plan: BatchPlan, piece: Range, table: TablePlan, seq: int) -> int:
    for found, images in decode(plan, piece, offsets=True)[0]:
        batch = images.batch if isinstance(images, PartialImages) else images
        at = np.flatnonzero(batch.column(1).to_numpy(zero_copy_only=False) == seq)
        if len(at) and found.table.name == table.table.name:
            return int(batch.column(batch.num_columns - 1)[int(at[0])].as_py())
    return piece.start


def batch_of(images: pa.RecordBatch | PartialImages) -> pa.RecordBatch:
    """Return the row images as one record batch; columns that partial images lack are NULL."""
    return images.batch if isinstance(images, PartialImages) else images


def with_keys(plan: BatchPlan, own: Images, names: Mapping[str, str]) -> tuple[TablePlan, pa.RecordBatch]:
    """Rename the key columns to the target's names, and fill in key values that a partial UPDATE leaves unchanged."""
    table, images = own
    columns, batch = table.table.columns, batch_of(images)
    if isinstance(images, PartialImages):
        columns = images.columns
        for name in names:
            batch = _filled(plan, images, batch, name)
    named = tuple(replace(column, name=names.get(column.name, column.name)) for column in columns)
    return replace(table, table=replace(table.table, columns=named)), batch


def _filled(plan: BatchPlan, images: PartialImages, batch: pa.RecordBatch, name: str) -> pa.RecordBatch:
    number = next(place for place, column in enumerate(images.table.columns) if column.name == name)
    before, after = images.present
    if number not in (before if before is not None else after or ()):
        values = {"target": str(images.table.name), "missing": name}
        raise SyncError("SYNC-030", where_of(plan, images), values=values)
    if after is None or number in after:
        return batch
    place = len(IMAGE_FIELDS) + images.columns.index(images.table.columns[number])
    rows = np.arange(len(batch))
    rows -= batch.column(0).to_numpy(zero_copy_only=False) == Op.UPDATE_AFTER
    return batch.set_column(place, batch.schema.field(place), batch.column(place).take(pa.array(rows)))
