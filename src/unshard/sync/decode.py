"""Steps *decode* and *versions*: bytes of the log to the row images of a batch's tables."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from unshard.binlog.partial import PartialImages
from unshard.binlog.rows import decode_range
from unshard.binlog.table_map import TableMap
from unshard.errors import BinlogError, Where
from unshard.model.change import Op
from unshard.model.table import Table
from unshard.sync.batch import BatchPlan, Range, TablePlan
from unshard.sync.carry import opened
from unshard.sync.ledger import Seen
from unshard.sync.versions import RULE, current_rows

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
