"""The interface of row filters, the rules by which step *filter* excludes row changes by their kind or values.

`EventRowFilter` is the row filter of the binlog event filter. It only names kinds of row changes, so that a worker
process needs none of the rules from which it was made.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from unshard.model.change import Op
from unshard.model.table import Table


class RowFilter(Protocol):
    """A rule that excludes rows of one source table. Frozen, picklable, pure."""

    @property
    def rule(self) -> str:
        """The name that the ledger counts under: section and rule, such as `filters.no-delete`."""

    @property
    def hides_values(self) -> bool:
        """True if it may exclude UPDATEs of any batch, so that later images don't show what the target's row has."""

    def to_dict(self) -> dict[str, Any]:
        """Return everything that decides, JSON-ready.

        Digests of open batches are made of it (`sync.batch.stored_plan`): a form that changes needs another version.
        """

    def dropped(self, table: Table, images: pa.RecordBatch, absent: frozenset[str]) -> np.ndarray:
        """Return a bool for each image: whether its change is left out; both images of an UPDATE get the same answer.

        `images` is as decoded: `op`, `seq`, then columns of `table` (`model.change.IMAGE_FIELDS`), before any
        mapping. `absent` are columns that an image of it lacks (they are NULL or not there). Raises an UnshardError
        for a change that the rule treats as an error, or that it can't judge.
        """


_IMAGES: Mapping[str, tuple[Op, ...]] = {
    "insert": (Op.INSERT,),
    "update": (Op.UPDATE_BEFORE, Op.UPDATE_AFTER),
    "delete": (Op.DELETE,),
}


@dataclass(frozen=True, slots=True)
class EventRowFilter:
    """The row filter of one event filter rule, which excludes the row events of these kinds from one table."""

    rule: str
    events: tuple[str, ...]

    @property
    def hides_values(self) -> bool:
        """As `RowFilter.hides_values`."""
        return "update" in self.events

    def to_dict(self) -> dict[str, Any]:
        """As `RowFilter.to_dict`."""
        return {"rule": self.rule, "events": self.events}

    def dropped(self, table: Table, images: pa.RecordBatch, absent: frozenset[str]) -> np.ndarray:
        """As `RowFilter.dropped`."""
        ops = [int(op) for event in self.events for op in _IMAGES[event]]
        return np.isin(images.column(0).to_numpy(zero_copy_only=False), ops)
