"""Step *order*: put a partition's changes in the order in which they are applied.

Compacted changes have distinct keys, so they may pass each other: they are grouped by target and operation, so that one
statement takes many. DELETE is first: a key that two of them have, of two source tables, has moved. Ordered changes
keep the order of the log, behind: no row of theirs is tied to one of those.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from unshard.model.change import Op

_RANK = np.zeros(8, dtype=np.int8)
_RANK[[Op.DELETE, Op.INSERT, Op.UPDATE]] = [0, 1, 2]


def order(changes: pa.Table) -> pa.Table:
    """Sort compacted changes by target, operation and `seq`. The same input gives the same order."""
    target = changes.column("target").to_numpy()
    rank = _RANK[changes.column("op").to_numpy()]
    seq = changes.column("seq").to_numpy()
    index = np.lexsort((seq, rank, target))
    if np.array_equal(index, np.arange(len(index))):
        return changes
    return changes.take(pa.array(index))
