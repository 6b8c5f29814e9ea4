"""Step *versions*: of a system-versioned table's images, the changes of its current rows.

MariaDB keeps the history of such a table in the table itself: `row_end` tells a current row, which has the largest
time there is, from a row of the past. Its binlog shows how that is done, row by row:

| statement | images (c: current, h: history) | becomes |
|---|---|---|
| INSERT | INSERT c | INSERT |
| UPDATE | UPDATE c to c, INSERT h | UPDATE |
| DELETE | UPDATE c to h | DELETE |
| REPLACE | UPDATE c to h, INSERT c | DELETE, INSERT |
| DELETE HISTORY | DELETE h | nothing |
| INSERT of history | INSERT h | nothing |

Only current rows are migrated: a target that is versioned itself writes a history of its own. Transaction-precise
tables never come here: the server logs their changes as statements, which stop the task.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from unshard.model.change import IMAGE_FIELDS, Op
from unshard.model.table import Table

FOREVER = ("2038-01-19 03:14:07.999999", "2106-02-07 06:28:15.999999")
"""`row_end` of a current row: the last TIMESTAMP, of before and since MariaDB 11.5."""


RULE = "system-versioning"
"""What the ledger counts changes of history rows under."""


def current_rows(table: Table, images: pa.RecordBatch) -> pa.RecordBatch:
    """The images of current rows; all of them, unchanged, for a table without versions. Pure.

    `images` has `op`, `seq` and all of the table's columns, the two images of an UPDATE side by side.
    """
    place = table.row_end
    if place is None:
        return images
    ends = images.column(len(IMAGE_FIELDS) + place)
    current = pc.is_in(ends, pa.array(FOREVER, pa.string())).to_numpy(zero_copy_only=False)
    if current.all():
        return images
    op = images.column(0).to_numpy(zero_copy_only=False).copy()
    before = np.flatnonzero(op == Op.UPDATE_BEFORE)
    ended = before[current[before] & ~current[before + 1]]
    revived = before[~current[before] & current[before + 1]] + 1
    op[ended] = Op.DELETE
    op[revived] = Op.INSERT
    columns = [pa.array(op, pa.int8()), *images.columns[1:]]
    return pa.RecordBatch.from_arrays(columns, schema=images.schema).filter(pa.array(current))
