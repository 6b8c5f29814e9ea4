"""Steps *decode* and *versions*: bytes of the log to the row images of a batch's tables."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from unshard.binlog.partial import PartialImages
from unshard.binlog.rows import decode_range
from unshard.binlog.table_map import TableMap
from unshard.errors import BinlogError, Where
from unshard.model.change import IMAGE_FIELDS, Op
from unshard.model.table import Table
from unshard.sync.batch.plan import BatchPlan, Range, TablePlan
from unshard.sync.batch.row_counts import Seen
from unshard.sync.batch.shipped_log import opened

# Step *versions*: of a system-versioned table's images, the changes of its current rows.
#
# MariaDB keeps the history of such a table in the table itself: `row_end` tells a current row, which has the largest
# time there is, from a row of the past. Its binlog shows how that is done, row by row:
#
# | statement | images (c: current, h: history) | becomes |
# |---|---|---|
# | INSERT | INSERT c | INSERT |
# | UPDATE | UPDATE c to c, INSERT h | UPDATE |
# | DELETE | UPDATE c to h | DELETE |
# | REPLACE | UPDATE c to h, INSERT c | DELETE, INSERT |
# | DELETE HISTORY | DELETE h | nothing |
# | INSERT of history | INSERT h | nothing |
#
# Only current rows are migrated: a target that is versioned itself writes a history of its own. Transaction-precise
# tables never come here: the server logs their changes as statements, which stop the task.


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


Images = tuple[TablePlan, pa.RecordBatch | PartialImages]
"""Images of one table, and how it is written."""


def decode(plan: BatchPlan, piece: Range, *, offsets: bool = False) -> tuple[list[Images], Seen]:
    """Steps *decode* and *versions*: the images of current rows in one range, a batch per table, and what else it held.

    There are more batches where images lack columns. With `offsets` a batch has one more column, the offset of each
    row's event; the numbers of the changes are the same. Raises BinlogError BINLOG-046 for such ones of a
    system-versioned table.
    """
    plans = plan.by_name()

    def wanted(table_map: TableMap, offset: int) -> Table | None:
        found = plans.get(table_map.name)
        return found.table if found is not None and found.takes(piece.file, offset) else None

    where = Where(source=plan.source, file=piece.path)
    decoded = decode_range(
        memoryview(opened(piece)),
        piece.start,
        piece.end,
        checksum=plan.checksum,
        wanted=wanted,
        seq_base=piece.seq_base,
        maps=piece.maps,
        part=piece.part,
        offsets=offsets,
        where=where,
    )
    if versioned := [images.table.name for images in decoded.partial if images.table.row_end is not None]:
        raise BinlogError("BINLOG-046", replace(where, table=str(versioned[0])))
    found: list[Images] = []
    history: Counter[tuple[int, str]] = Counter()
    for table, batch in decoded:
        current = current_rows(table, batch)
        found.append((plans[table.name], current))
        if current is not batch:
            history[plans[table.name].target.id, RULE] += _changes(batch) - _changes(current)
    found += [(plans[images.table.name], images) for images in decoded.partial]
    return found, Seen({}, history, decoded.events, decoded.left_out)


def _changes(images: pa.RecordBatch) -> int:
    """How many there are; an UPDATE is one."""
    return len(images) - int(pc.sum(pc.equal(images.column(0), int(Op.UPDATE_AFTER))).as_py() or 0)
