"""Step *compact*: replace all changes of one key of a source table in a batch by one change with the same result.

| first change | last change | becomes |
|---|---|---|
| INSERT | INSERT or UPDATE | INSERT (new values of the last) |
| INSERT | DELETE | nothing; in safe mode DELETE (the row may be there by an earlier attempt) |
| UPDATE or DELETE | INSERT or UPDATE | UPDATE (new values of the last); \
UPDATE_OR_INSERT if an INSERT is among the changes |
| UPDATE or DELETE | DELETE | DELETE |
| UPDATE_SET or DELETE | UPDATE_SET | UPDATE_SET (new values of the last) |

Where an UPDATE of a table leaves columns as they are, it is an UPDATE_SET, unless the batch inserts its row.

The first change shows whether the row existed before the batch, the last whether it exists after it (seeds/001 gives
the pairs; they chain to these four). A change of the key is a DELETE and an INSERT by now. Ordered changes are not
compacted.

A target may lack a row that existed in the source, because a rule or an operator has left out its INSERT. The INSERT of
this batch makes the row in the target, so the UPDATE to which it comes must insert it there.

A row that is inserted and deleted in the batch must not be deleted outside of safe mode: if the target has a row of its
key, it is another row, which has come from another shard while these changes waited, or from another source.

Tables that are merged into one are compacted apart. So a row that has moved from one to another under its key is a
DELETE and an INSERT, and step *order* puts the DELETE first, whatever the order of the source was. Where two of them
have rows of one key, the target refuses the second one; folded into one change, a row would be lost unnoticed.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from unshard.model.change import Op


def compact(changes: pa.Table, *, safe: bool = False) -> pa.Table:
    """Return at most one change for each (table, key), in the order of their last `seq`.

    `changes` are in the order of `seq` and hold no ordered ones. `safe` is for a batch in safe mode.
    """
    if len(changes) < 2:
        return changes
    numbered = changes.select(["table", "key"]).append_column("n", pa.array(np.arange(len(changes), dtype=np.int64)))
    numbered = numbered.append_column("made", pc.equal(changes.column("op"), int(Op.INSERT)))
    groups = numbered.group_by(["table", "key"], use_threads=False).aggregate(
        [("n", "min"), ("n", "max"), ("made", "any")]
    )
    if len(groups) == len(changes):
        return changes
    first = groups.column("n_min").to_numpy()
    last = groups.column("n_max").to_numpy()
    made = groups.column("made_any").to_numpy()
    op = changes.column("op").to_numpy()
    if not safe:
        lives = ~((op[first] == Op.INSERT) & (op[last] == Op.DELETE))
        first, last, made = first[lives], last[lives], made[lives]
    order = np.argsort(last)
    first, last, made = first[order], last[order], made[order]
    result = np.where(made, np.int8(Op.UPDATE_OR_INSERT), np.int8(Op.UPDATE))
    result = np.where(op[first] == Op.INSERT, np.int8(Op.INSERT), result)
    for own in (Op.DELETE, Op.UPDATE_SET):
        result = np.where(op[last] == own, np.int8(own), result)
    kept = changes.take(pa.array(last)).combine_chunks()
    nothing = pa.nulls(len(last), pa.binary())
    kept = kept.set_column(changes.schema.get_field_index("op"), changes.schema.field("op"), pa.array(result))
    return kept.set_column(changes.schema.get_field_index("old_key"), changes.schema.field("old_key"), nothing)
