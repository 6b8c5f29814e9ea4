"""Steps *decode* and *versions*: turn bytes of the log into the row images of a batch's tables.

Step *versions* selects the changes of a system-versioned table's current rows. MariaDB stores the history of such a
table in the table itself. A current row has the largest possible time in `row_end`, a row of the past an earlier one.
The binlog has the changes of both:

| statement | images (c: current, h: history) | becomes |
|---|---|---|
| INSERT | INSERT c | INSERT |
| UPDATE | UPDATE c to c, INSERT h | UPDATE |
| DELETE | UPDATE c to h | DELETE |
| REPLACE | UPDATE c to h, INSERT c | DELETE, INSERT |
| DELETE HISTORY | DELETE h | nothing |
| INSERT of history | INSERT h | nothing |

Only current rows are migrated: a target that is versioned itself writes a history of its own. Changes of
transaction-precise tables never come here: the server logs them as statements, which stop the task.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from mmap import mmap
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from unshard.binlog.headers import mapped
from unshard.binlog.rows import OpaqueDocuments, decode_range
from unshard.binlog.table_map import TableMap
from unshard.errors import BinlogError, Where
from unshard.model.change import IMAGE_FIELDS, Op
from unshard.model.table import Table
from unshard.sync.batch.plan import BatchPlan, Range, TablePlan
from unshard.sync.batch.row_counts import Seen

if TYPE_CHECKING:
    from unshard.binlog.images import PartialImages

FOREVER = ("2038-01-19 03:14:07.999999", "2106-02-07 06:28:15.999999")
"""`row_end` of a current row: the largest TIMESTAMP, before and since MariaDB 11.5."""


RULE = "system-versioning"
"""The rule under which the ledger counts changes of history rows."""


def current_rows(table: Table, images: pa.RecordBatch) -> pa.RecordBatch:
    """Return the images of current rows; for a table without versions all images, unchanged. Pure.

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


Images = tuple[TablePlan, "pa.RecordBatch | PartialImages"]
"""Images of one table, and the plan by which it is written."""


def decode(plan: BatchPlan, piece: Range, *, offsets: bool = False) -> tuple[list[Images], Seen]:
    """Run steps *decode* and *versions* on one range. Return the images of current rows, and what else it held.

    As `decode_all`, without the documents.
    """
    images, seen, _ = decode_all(plan, piece, offsets=offsets)
    return images, seen


def decode_all(
    plan: BatchPlan, piece: Range, *, offsets: bool = False
) -> tuple[list[Images], Seen, tuple[OpaqueDocuments, ...]]:
    """Run steps *decode* and *versions* on one range.

    Returns the images of current rows, what else it held, and which of its documents hold opaque values.

    A table has one batch, and more where images lack columns. With `offsets` a batch has one more column, the offset of
    each row's event; the numbers of the changes are the same. Raises BinlogError BINLOG-046 for images of a
    system-versioned table that lack columns.
    """
    plans = plan.by_name()

    def wanted(table_map: TableMap, offset: int) -> Table | None:
        found = plans.get(table_map.name)
        return found.table if found is not None and found.takes(piece.file, offset) else None

    where = Where(source=plan.source, file=piece.path)
    decoded = decode_range(
        memoryview(_opened(piece)),
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
    return found, Seen({}, history, decoded.events, decoded.left_out), decoded.opaque


def _opened(piece: Range) -> mmap:
    """Return the file of a range as far as the range needs it. Raises OSError or ValueError where it can't be read."""
    if not piece.carried:
        return mapped(Path(piece.path), piece.end)
    from unshard.sync.batch.shipped_log import in_memory  # only Spark workers on other machines get such ranges

    return in_memory(piece)


def _changes(images: pa.RecordBatch) -> int:
    """Return the number of changes; an UPDATE is one."""
    return len(images) - int(pc.sum(pc.equal(images.column(0), int(Op.UPDATE_AFTER))).as_py() or 0)
