"""Step *encode* for a batch from which changes were excluded after some of its chunks were applied.

How a change is written may depend on what the batch does to its row before or after (`encode`): an UPDATE by condition
of a row that the batch inserts is written as a VALUES tuple, for example. The applied chunks were cut from changes as
they are written with the excluded ones; the rest has to be written without them. So the changes are encoded once for
each `ExclusionEpoch`, too, in a column `stage` of the table: 0 for all changes, 1 for those after the first epoch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from unshard.sync.batch.excluded_changes import Seqs, within
from unshard.sync.batch.plan import BatchPlan
from unshard.sync.changes.causality import tie_rows
from unshard.sync.changes.decode import Images
from unshard.sync.changes.encode import Ties
from unshard.sync.changes.gather import encode_changes

_STAGE = pa.field("stage", pa.int32(), nullable=False)


def encode_stages(
    plan: BatchPlan,
    images: Sequence[Images],
    mine: np.ndarray | None,
    ties: Sequence[Ties | None] | None,
    hidden: frozenset[int],
    changes: pa.Table,
) -> pa.Table:
    """Return `changes`, which `encode_changes` has made of these arguments, together with those of each stage.

    A change has the same partition in all stages, and is ordered in all of them or in none.
    """
    found = [changes]
    excluded: Seqs = ()
    for stage in plan.stages:
        excluded += stage.seqs
        rest = _without(images, ties or [None] * len(images), excluded)
        own = [one for one, _ in rest]
        again = None if ties is None else _as_before([tied for _, tied in rest], tie_rows(plan, own, hidden))
        found.append(encode_changes(plan, own, mine, again)[0])
    return pa.concat_tables(_numbered(number, one) for number, one in enumerate(found))


def of_stage(changes: pa.Table, number: int) -> pa.Table:
    """Return the changes as they are encoded after that many epochs, in the form of `encode_changes`."""
    return changes.filter(pc.equal(changes.column(_STAGE.name), number)).drop_columns([_STAGE.name]).combine_chunks()


def _without(images: Sequence[Images], ties: Sequence[Ties | None], excluded: Seqs) -> list[tuple[Images, Ties | None]]:
    """Return the images without those of the excluded changes, each with its ties; no table without images."""
    found: list[tuple[Images, Ties | None]] = []
    for (table, one), tied in zip(images, ties, strict=True):
        batch = one if isinstance(one, pa.RecordBatch) else one.batch
        stays = ~within(batch.column(1).to_numpy(zero_copy_only=False), excluded)
        if not stays.any():
            continue
        rest = batch.filter(pa.array(stays))
        if tied is not None:
            tied = Ties(tied.key.filter(pa.array(stays)), tied.part[stays], tied.ordered[stays], tied.born[stays])
        found.append(((table, rest if isinstance(one, pa.RecordBatch) else replace(one, batch=rest)), tied))
    return found


def _as_before(before: Sequence[Ties | None], now: Sequence[Ties | None]) -> list[Ties | None]:
    """Return the ties of all changes, with what the remaining ones tell about the first change of a row."""
    return [
        None if tied is None or own is None else replace(tied, born=own.born)
        for tied, own in zip(before, now, strict=True)
    ]


def _numbered(number: int, changes: pa.Table) -> pa.Table:
    return changes.append_column(_STAGE, pa.array(np.full(len(changes), number, dtype=np.int32)))
