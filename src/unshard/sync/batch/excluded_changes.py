"""Row changes that are excluded from a batch, usually by a binlog operator; the same ones in every attempt.

A binlog operator is an instruction of the user for one position of the log (`unshard ctl binlog skip`). The changes are
identified by their numbers in the log (`seq`). If nothing of the batch is applied yet, they are dropped by a rule of
step *filter* (`LeftOutRows`). If chunks are applied already, which include the effect of the changes, they are excluded
after the exchange (`ExclusionEpoch`). Applied chunks then stay as they are and are counted. The rest is compacted and
divided into chunks again, without the excluded changes and without everything that the applied chunks contain.

| the changes of a key in the batch | in an applied chunk | which of them are applied |
|---|---|---|
| with or without an excluded one | yes | those applied already: the operator was given too late for them |
| with an excluded one | no | the others |
| without an excluded one | no | all |
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from unshard.model.table import Table
from unshard.transform.row_filter import RowFilter

OPERATOR, MOVED = "operator", "moved between shards"
"""Why changes are excluded, as the ledger counts them: by an operator; because their rows moved to another shard."""

Seqs = tuple[tuple[int, int], ...]
"""Numbers of changes, as (first, last) of each run of them."""


@dataclass(frozen=True, slots=True)
class LeftOutRows:
    """The row filter that excludes changes by their numbers in the log (a `transform.event_filter.RowFilter`)."""

    seqs: Seqs
    rule: str = OPERATOR

    @property
    def hides_values(self) -> bool:
        """False: the changes are of this batch alone, whose images show the values."""
        return False

    def to_dict(self) -> dict[str, Any]:
        """As `RowFilter.to_dict`."""
        return {"rule": self.rule, "seqs": self.seqs}

    def dropped(self, table: Table, images: pa.RecordBatch, absent: frozenset[str]) -> np.ndarray:
        """Return which images are dropped; both images of an UPDATE have one number."""
        del table, absent
        return within(images.column(1).to_numpy(zero_copy_only=False), self.seqs)


@dataclass(frozen=True, slots=True)
class ExclusionEpoch:
    """Changes that are excluded once the first `base` chunks of each partition were applied."""

    seqs: Seqs
    base: tuple[int, ...]


def seqs_for(rule: str, filters: Sequence[RowFilter]) -> Seqs:
    """Return the changes that a rule excludes from a batch since its beginning, by the filters of any of its tables."""
    return tuple(run for one in filters if isinstance(one, LeftOutRows) and one.rule == rule for run in one.seqs)


def within(seq: np.ndarray, seqs: Seqs) -> np.ndarray:
    """Return which of the numbers are in `seqs`."""
    found = np.zeros(len(seq), dtype=bool)
    for first, last in seqs:
        found |= (seq >= first) & (seq <= last)
    return found


def without(rows: pa.Table, done: pa.Table, *, compacted: bool) -> pa.Table:
    """Return the rows whose effect is not among those of `done`."""
    return rows.filter(pa.array(~_among(rows, done, compacted=compacted))).combine_chunks()


def _among(rows: pa.Table, done: pa.Table, *, compacted: bool) -> np.ndarray:
    """Return whether `done` has the effect of each row: free compacted rows are compared by key, others by number.

    It makes a Python object a row, because batches with an operator are rare.
    """
    there = set(_names(done, compacted=compacted)) if len(done) else set()
    return np.fromiter((name in there for name in _names(rows, compacted=compacted)), dtype=bool, count=len(rows))


def _names(rows: pa.Table, *, compacted: bool) -> Iterator[tuple[Any, ...]]:
    columns = (rows.column(name).to_pylist() for name in ("table", "key", "ordered", "seq", "op"))
    for table, key, ordered, seq, op in zip(*columns, strict=True):
        yield (table, key) if compacted and not ordered else (table, key, seq, op)


def runs(seqs: Sequence[int]) -> Seqs:
    """Return numbers as sorted runs."""
    numbered = enumerate(sorted(set(seqs)))
    groups = (list(group) for _, group in itertools.groupby(numbered, lambda pair: pair[1] - pair[0]))
    return tuple((group[0][1], group[-1][1]) for group in groups)
