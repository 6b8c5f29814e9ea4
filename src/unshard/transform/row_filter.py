"""What step *filter* asks of a rule that leaves out rows by what they are or hold."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from unshard.model.table import Table


class RowFilter(Protocol):
    """One rule, as it concerns one source table. Frozen, picklable, pure."""

    @property
    def rule(self) -> str:
        """The name that the ledger counts under: section and rule, such as `filters.no-delete`."""

    def to_dict(self) -> dict[str, Any]:
        """All that decides, JSON-ready. Digests of open batches are made of it (`sync.batch_record`): a form that
        changes takes another version."""

    def dropped(self, table: Table, images: pa.RecordBatch, absent: frozenset[str]) -> np.ndarray:
        """A bool for each image: whether its change is left out; both images of an UPDATE get the same answer.

        `images` is as decoded: `op`, `seq`, then columns of `table` (`model.change.IMAGE_FIELDS`), before any
        mapping. `absent` are columns that an image of it lacks (they are NULL or not there). Raises an UnshardError
        for a change that the rule makes an error of, or that it can't judge.
        """
