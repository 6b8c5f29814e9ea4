"""Step *encode* for all tables of a batch: turns row images into changes in SQL text (`encode`), table by table.

Before that, rows of several tables that are written alike are joined into one record batch. A batch of the log may have
a few rows of each of five hundred shards; the fixed cost of a call would then be most of the time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from unshard.errors import SyncError
from unshard.model.change import ENCODED_SCHEMA, LOG_ORDER
from unshard.sync.batch.plan import BatchPlan, TablePlan
from unshard.sync.changes.decode import Images
from unshard.sync.changes.encode import Ties, encode

ENOUGH_BYTES = 1 << 20
"""Images of this many bytes are not joined with more: memory holds both copies, and the call costs little then.

Those of a table whose changes are written by what the batch does to the row before or after are joined all the same.
"""


@dataclass(slots=True)
class Gathered:
    """Images of one target, from tables that `encode` treats alike, so that the first table's plan serves all.

    `batches`, `numbers` and `found` are the record batches, with their tables' numbers and ties; `size`: their bytes.
    """

    plan: TablePlan
    batches: list[pa.RecordBatch] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    found: list[Ties] = field(default_factory=list)
    size: int = 0

    def add(self, plan: TablePlan, batch: pa.RecordBatch, ties: Ties | None, size: int) -> None:
        """Add the images of one table."""
        self.batches.append(batch)
        self.numbers.append(plan.id)
        self.found += [] if ties is None else [ties]
        self.size += size

    def takes(self, plan: TablePlan, batch: pa.RecordBatch, ties: Ties | None) -> bool:
        """Return whether these images may join."""
        return (
            self.size < ENOUGH_BYTES
            and bool(self.found) == (ties is not None)
            and self.plan.target == plan.target
            and self.plan.table.columns == plan.table.columns
            and self.plan.kept == plan.kept
            and self.batches[0].schema.equals(batch.schema)
        )

    @property
    def batch(self) -> pa.RecordBatch:
        """All images as one record batch."""
        return self.batches[0] if len(self.batches) == 1 else pa.concat_batches(self.batches)

    @property
    def tables(self) -> np.ndarray:
        """The number of its table, by image."""
        return np.repeat(np.array(self.numbers, dtype=np.int32), [len(batch) for batch in self.batches])

    @property
    def ties(self) -> Ties | None:
        """The ties of all images; None where there are none."""
        if len(self.found) < 2:
            return self.found[0] if self.found else None
        return Ties(
            pa.concat_arrays([ties.key for ties in self.found]),
            np.concatenate([ties.part for ties in self.found]),
            np.concatenate([ties.ordered for ties in self.found]),
            np.concatenate([ties.born for ties in self.found]),
        )


def gather(images: Iterable[tuple[TablePlan, pa.RecordBatch, Ties | None]]) -> Iterator[Gathered]:
    """Yield all of the images; those of one table stay in their order. Pure.

    A batch that lies in several stretches of the log has a table's images in as many record batches. They stay together
    where a change depends on others of its row (`encode.first_is_insert`).
    """
    open_ones: dict[tuple[int, bool], list[Gathered]] = {}
    for plan, batch, ties in images:
        size = batch.get_total_buffer_size()
        whole = bool(plan.kept) or plan.target.by_condition
        held = open_ones.setdefault((plan.target.id, whole), [])
        one = next((one for one in held if plan.id in one.numbers), None) if whole else None
        if one is None and held and size < ENOUGH_BYTES and held[-1].takes(plan, batch, ties):
            one = held[-1]
        if one is None:
            if held and not whole:
                yield held.pop()
            one = Gathered(plan)
            held.append(one)
        one.add(plan, batch, ties, size)
    yield from (one for held in open_ones.values() for one in held)


def encode_changes(
    plan: BatchPlan, images: Sequence[Images], mine: np.ndarray | None, ties: Sequence[Ties | None] | None = None
) -> tuple[pa.Table, dict[int, int]]:
    """Step *encode*: return all changes as one table, and the number of changes by target id.

    The table has ENCODED_SCHEMA and the order of the log. With `mine`, only changes of those partitions are kept.

    Raises SyncError SYNC-044 for an image that lacks columns, in a safe batch: a REPLACE would lose what it lacks. The
    images of tables that the task does not migrate are not among these.
    """
    seen: Counter[int] = Counter()
    batches, whole = [], []
    for (table, batch), tied in zip(images, ties or [None] * len(images), strict=True):
        if not isinstance(batch, pa.RecordBatch):
            from unshard.sync.changes.partial_images import encode_partial, where_of  # few sources log such images

            where = where_of(plan, batch)
            if plan.safe:
                raise SyncError("SYNC-044", where)
            encoded, changes = encode_partial(table, batch, plan.shape.partitions, mine, where)
            batches.append(encoded)
            seen[table.target.id] += changes
        else:
            whole.append((table, batch, tied))
    shape = plan.shape
    for one in gather(whole):
        encoded, changes = encode(
            one.plan,
            one.batch,
            shape.partitions,
            mine,
            one.ties,
            compact=shape.compact,
            multiple_rows=shape.multiple_rows,
            tables=one.tables,
            range_digits=shape.range_digits,
        )
        batches.append(encoded)
        seen[one.plan.target.id] += changes
    found = pa.Table.from_batches(batches, ENCODED_SCHEMA)
    return (found.sort_by(LOG_ORDER) if len(images) > 1 else found).combine_chunks(), dict(seen)
