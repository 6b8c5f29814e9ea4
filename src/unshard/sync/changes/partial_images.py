"""Steps *map* and *encode* for row images that lack columns: one statement per row, of the columns that are present.

| images | becomes |
|---|---|
| INSERT | INSERT of the present columns, and of the source's own default for each absent one |
| UPDATE | UPDATE of the columns of the image after, in the row with the key of the image before |
| DELETE | DELETE by the key of the image before |

If the image before lacks the target's key, or a default is not a constant, the batch stops before any of it (or of its
slice) is applied. Every table of such a batch is ordered (`sync.planning.table_plans`). A batch in safe mode refuses
such images (`sync.changes.gather`).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from unshard.binlog.images import PartialImages, Present
from unshard.errors import SyncError, Where
from unshard.kernels.literals import partition_of
from unshard.model.change import ENCODED_SCHEMA, Op
from unshard.model.position import Position
from unshard.model.table import Table, quote_name
from unshard.mysql.types import arrow_type
from unshard.sync.batch.plan import BatchPlan, TablePlan, TargetPlan
from unshard.sync.changes.encode import assignments, keys_of
from unshard.transform.column_mapping import apply_mapping
from unshard.transform.extract import append_constants, with_constants


def where_of(plan: BatchPlan, images: PartialImages) -> Where:
    """Return the position of the first event that the images are of."""
    return Where(plan.source, str(images.table.name), str(Position(plan.begin.file, images.offset)))


def map_partial(plan: TablePlan, images: PartialImages, where: Where) -> PartialImages:
    """Apply the column mapping: an image has the target column if it has the source column. Constants are added to all.

    An UPDATE that leaves the source column unchanged leaves the target column unchanged. Raises SyncError SYNC-032 for
    an INSERT without the source column, ConfigError as `apply_mapping`.
    """
    return _with_constants(plan, _with_mapping(plan, images, where))


def _with_constants(plan: TablePlan, images: PartialImages) -> PartialImages:
    """Return the images with the constants after all columns of the table."""
    if not plan.constants:
        return images
    numbered = list(enumerate(plan.constants, len(plan.table.columns)))
    added = frozenset(number for number, _ in numbered)
    before, after = (None if numbers is None else numbers | added for numbers in images.present)
    if before is not None and after is not None:
        after -= {number for number, one in numbered if one.column.name in plan.kept}
    present = Present(before, after)
    return replace(
        images,
        table=with_constants(images.table, plan.constants),
        present=present,
        columns=(*images.columns, *(one.column for one in plan.constants)),
        batch=append_constants(images.batch, plan.constants),
    )


def _with_mapping(plan: TablePlan, images: PartialImages, where: Where) -> PartialImages:
    mapping = plan.mapping
    if mapping is None:
        return images
    source, target = (_number(plan.table, name) for name in (mapping.source_column, mapping.target_column))
    if source is not None and target is not None:
        before, after = images.present
        if before is None and after is not None and source not in after:
            values = {"rule": mapping.rule, "column": mapping.source_column}
            raise SyncError("SYNC-032", where, values=values)
        present = Present(_with(before, source, target), _with(after, source, target))
        if source not in (before or ()) and source not in (after or ()):
            return replace(images, present=present)
        images = _having(replace(images, present=present), target)
    return replace(images, batch=apply_mapping(images.batch, mapping))


def encode_partial(
    plan: TablePlan, images: PartialImages, partitions: int, mine: np.ndarray | None, where: Where
) -> tuple[pa.RecordBatch, int]:
    """Do as `sync.changes.encode.encode`. Raises SyncError SYNC-030 (key) and SYNC-031 (default)."""
    target = plan.target
    if not target.ordered:
        raise ValueError(f"{target.name}: images that lack columns need a plan that keeps their order")
    before, after = (_names(plan.table, numbers) for numbers in images.present)
    own = replace(plan, table=replace(plan.table, columns=images.columns))
    op = images.batch.column(0).to_numpy(zero_copy_only=False)
    first, last = np.flatnonzero(op != Op.UPDATE_AFTER), np.flatnonzero(op != Op.UPDATE_BEFORE)
    seen = len(first)
    key = pa.array([b""] * seen, pa.binary())
    old_key = row = pa.nulls(seen, pa.binary())
    if before is not None:
        _check_key(target, before, where)
        key = keys_of(own, images.batch.take(pa.array(first)))
    if after is not None:
        new = images.batch.take(pa.array(last))
        row = _inserted(own, after, new, where) if before is None else _updated(own, after, new)
    if before is not None and after is not None:
        change, old_key = Op.UPDATE, key
    else:
        change = Op.DELETE if after is None else Op.INSERT_SET
    seq = images.batch.column(1).to_numpy(zero_copy_only=False)[last]
    part = int(partition_of(pa.array([target.order_name], pa.binary()), partitions)[0])
    columns = [
        pa.array(np.full(seen, target.id, dtype=np.int32)),
        pa.array(np.full(seen, plan.id, dtype=np.int32)),
        pa.array(np.full(seen, change, dtype=np.int8)),
        pa.array(seq),
        key,
        old_key,
        row,
        pa.array(np.ones(seen, dtype=bool)),
        pa.array(np.full(seen, part, dtype=np.int32)),
    ]
    encoded = pa.RecordBatch.from_arrays(columns, schema=ENCODED_SCHEMA)
    return (encoded if mine is None or part in mine else encoded.slice(0, 0)), seen


def _check_key(target: TargetPlan, present: frozenset[str], where: Where) -> None:
    missing = [name for name in target.key if name not in present]
    if missing:
        raise SyncError("SYNC-030", where, values={"target": str(target.name), "missing": ", ".join(missing)})


def _inserted(own: TablePlan, present: frozenset[str], rows: pa.RecordBatch, where: Where) -> pa.Array:
    """Return the assignments of INSERTs: an absent column gets the source's default, which may not be the target's."""
    defaults = dict(own.defaults)
    absent = [name for name in own.target.columns if name not in present]
    unknown = [name for name in absent if name not in defaults]
    if unknown:
        raise SyncError("SYNC-031", where, values={"missing": ", ".join(unknown)})
    return _assigned(own, present, [f"{quote_name(name)}={defaults[name]}" for name in absent], rows)


def _updated(own: TablePlan, present: frozenset[str], rows: pa.RecordBatch) -> pa.Array:
    """Return the assignments of UPDATEs. An absent time column is set to itself, lest the target renews it."""
    absent = [name for name in own.target.columns if name not in present]
    kept = [name for name in absent if name in own.target.times]
    if len(absent) == len(own.target.columns):
        kept = kept or [own.target.key[0]]
    return _assigned(own, present, [f"{quote_name(name)}={quote_name(name)}" for name in kept], rows)


def _assigned(own: TablePlan, present: frozenset[str], constant: list[str], rows: pa.RecordBatch) -> pa.Array:
    """Return `a`=1,`b`=2: the target's columns that are present, then the constant assignments."""
    names = tuple(name for name in own.target.columns if name in present)
    if not names:
        return pa.array([",".join(constant).encode()] * len(rows), pa.binary())
    target = replace(own.target, columns=names)
    suffix = "".join(f",{text}" for text in constant)
    return assignments(replace(own, target=target), rows, np.ones(len(rows), dtype=bool), suffix.encode())


def _names(table: Table, numbers: frozenset[int] | None) -> frozenset[str] | None:
    return None if numbers is None else frozenset(table.columns[number].name for number in numbers)


def _number(table: Table, name: str) -> int | None:
    return next((n for n, column in enumerate(table.columns) if column.name.lower() == name.lower()), None)


def _with(present: frozenset[int] | None, source: int, target: int) -> frozenset[int] | None:
    if present is None:
        return None
    return present | {target} if source in present else present - {target}


def _having(images: PartialImages, number: int) -> PartialImages:
    """Return the images with that column of the table among theirs; all NULL where no image had it."""
    column = images.table.columns[number]
    if column in images.columns:
        return images
    field = pa.field(column.name, arrow_type(column))
    batch = images.batch.append_column(field, pa.nulls(len(images.batch), field.type))
    return replace(images, columns=(*images.columns, column), batch=batch)
