"""Step *map*: column mapping, and the columns that the source's names fill, before keys are formed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from unshard.binlog.partial import PartialImages
from unshard.errors import ConfigError, UnshardError, Where
from unshard.model.position import Position
from unshard.model.table import Column
from unshard.sync.batch.plan import BatchPlan, Range, TablePlan
from unshard.sync.steps.decode import Images, decode
from unshard.sync.steps.encode import key_separator, keys_of
from unshard.sync.steps.partial_images import map_partial
from unshard.transform.column_mapping import apply_mapping, first_unmappable
from unshard.transform.extract import append_constants


def map_columns(plan: BatchPlan, images: Sequence[Images]) -> list[Images]:
    """The images with the values that the target gets, each with a plan whose table has all of their columns.

    Raises ConfigError CONFIG-009 and CONFIG-018 with the row's key and the place of its event; SyncError SYNC-032.
    """
    return [_mapped(plan, table, batch) for table, batch in images]


def _mapped(plan: BatchPlan, table: TablePlan, batch: pa.RecordBatch | PartialImages) -> Images:
    try:
        if isinstance(batch, PartialImages):
            return table.mapped(), map_partial(table, batch, where_of(plan, batch))
        if table.mapping is not None:
            batch = apply_mapping(batch, table.mapping)
    except ConfigError as error:
        raise _placed(plan, table, batch, error) from None
    return table.mapped(), append_constants(batch, table.constants)


def where_of(plan: BatchPlan, images: PartialImages) -> Where:
    """The place of the first event that the images are of."""
    return Where(plan.source, str(images.table.name), str(Position(plan.begin.file, images.offset)))


def _placed(
    plan: BatchPlan, table: TablePlan, images: pa.RecordBatch | PartialImages, error: ConfigError
) -> UnshardError:
    """The error with the event and the key of the row that it speaks of; the range is decoded once more for that."""
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
    """What names the row upstream, as a condition; empty where its image lacks that. `columns` are the batch's own."""
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
