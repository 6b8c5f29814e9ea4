"""Small batches of tables that are written alike, put together before they are encoded.

A batch of the log may hold a few rows of each of five hundred shards, and what a call costs beside its rows is then
most of encoding.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from unshard.sync.batch.plan import TablePlan
from unshard.sync.steps.encode import Ties

ENOUGH_BYTES = 1 << 20
"""Nothing more is put to images of so many bytes: memory holds both copies, and their rows outweigh the call."""


@dataclass(slots=True)
class Gathered:
    """Images of one target, whose tables differ in nothing that `encode` looks at: it may take the first one's plan.

    The number of its table by image is `tables`; `ties` is None where there are none.
    """

    plan: TablePlan
    batches: list[pa.RecordBatch] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    found: list[Ties] = field(default_factory=list)
    size: int = 0

    def add(self, plan: TablePlan, batch: pa.RecordBatch, ties: Ties | None, size: int) -> None:
        self.batches.append(batch)
        self.numbers.append(plan.id)
        self.found += [] if ties is None else [ties]
        self.size += size

    def takes(self, plan: TablePlan, batch: pa.RecordBatch, ties: Ties | None) -> bool:
        """Whether those images may join."""
        return (
            self.size < ENOUGH_BYTES
            and bool(self.found) == (ties is not None)
            and self.plan.target == plan.target
            and self.plan.table.columns == plan.table.columns
            and self.batches[0].schema.equals(batch.schema)
        )

    @property
    def batch(self) -> pa.RecordBatch:
        return self.batches[0] if len(self.batches) == 1 else pa.concat_batches(self.batches)

    @property
    def tables(self) -> np.ndarray:
        return np.repeat(np.array(self.numbers, dtype=np.int32), [len(batch) for batch in self.batches])

    @property
    def ties(self) -> Ties | None:
        if len(self.found) < 2:
            return self.found[0] if self.found else None
        return Ties(
            pa.concat_arrays([ties.key for ties in self.found]),
            np.concatenate([ties.part for ties in self.found]),
            np.concatenate([ties.ordered for ties in self.found]),
            np.concatenate([ties.born for ties in self.found]),
        )


def gather(images: Iterable[tuple[TablePlan, pa.RecordBatch, Ties | None]]) -> Iterator[Gathered]:
    """All of the images, those of each table in their order and unparted. Pure."""
    open_ones: dict[int, Gathered] = {}
    for plan, batch, ties in images:
        size = batch.get_total_buffer_size()
        held = open_ones.get(plan.target.id)
        if held is not None and (size >= ENOUGH_BYTES or not held.takes(plan, batch, ties)):
            yield open_ones.pop(plan.target.id)
            held = None
        if held is None:
            held = open_ones[plan.target.id] = Gathered(plan)
        held.add(plan, batch, ties, size)
    yield from open_ones.values()
