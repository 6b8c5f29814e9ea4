"""Steps *compact* and *order* for the changes of a partition.

Step *order* puts them in the order in which they are applied. Compacted changes have distinct keys, so their order is
free: they are grouped by target and operation, so that one statement takes many. DELETE comes first: where changes of
two source tables have one key, a row has moved. Ordered changes come afterwards, in the order of the log: none of their
rows is tied to a compacted one's.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from unshard.model.change import Op
from unshard.sync.changes.compact import compact

_RANK = np.zeros(len(Op), dtype=np.int8)
_RANK[[Op.DELETE, Op.INSERT, Op.UPDATE, Op.UPDATE_OR_INSERT, Op.UPDATE_SET]] = [0, 1, 2, 2, 3]


def order(changes: pa.Table) -> pa.Table:
    """Return compacted changes sorted by target, operation and `seq`. The same input gives the same order."""
    target = changes.column("target").to_numpy()
    rank = _RANK[changes.column("op").to_numpy()]
    seq = changes.column("seq").to_numpy()
    index = np.lexsort((seq, rank, target))
    if np.array_equal(index, np.arange(len(index))):
        return changes
    return changes.take(pa.array(index))


def arrange(changes: pa.Table, *, compacted: bool, safe: bool = False) -> pa.Table:
    """Run steps *compact* and *order*: return the free changes of a partition, then the ordered ones.

    Without `compacted` all changes keep the order of the log.
    """
    if not compacted:
        return _in_order(changes, safe=safe)
    is_ordered = changes.column("ordered")
    free = order(compact(changes.filter(pc.invert(is_ordered)), safe=safe))
    return pa.concat_tables([free, _in_order(changes.filter(is_ordered), safe=safe)]).combine_chunks()


def _in_order(changes: pa.Table, *, safe: bool) -> pa.Table:
    if not safe:
        return changes
    from unshard.sync.changes.safe_mode_moves import without_taken_over  # few batches are in safe mode

    return without_taken_over(changes)
