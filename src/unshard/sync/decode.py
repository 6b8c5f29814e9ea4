"""Steps *decode* and *versions*: bytes of the log to the row images of a batch's tables."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from unshard.binlog.mapped import mapped
from unshard.binlog.partial import PartialImages
from unshard.binlog.rows import decode_range
from unshard.binlog.table_map import TableMap
from unshard.errors import BinlogError, Where
from unshard.model.position import Position
from unshard.model.table import Table
from unshard.sync.batch import BatchPlan, Range, TablePlan
from unshard.sync.versions import current_rows

Images = tuple[TablePlan, pa.RecordBatch | PartialImages]
"""Images of one table, and how it is written."""


def decode(plan: BatchPlan, piece: Range, *, offsets: bool = False) -> list[Images]:
    """Steps *decode* and *versions*: the images of current rows in one range, a batch per table.

    There are more of them where images lack columns. With `offsets` a batch has one more column, the offset of each
    row's event; the numbers of the changes are the same. Raises BinlogError BINLOG-046 for such ones of a
    system-versioned table.
    """
    plans = plan.by_name()

    def wanted(table_map: TableMap, offset: int) -> Table | None:
        found = plans.get(table_map.name)
        if found is None or (found.after is not None and Position(piece.file, offset) < found.after):
            return None
        return found.table

    where = Where(source=plan.source, file=piece.path)
    decoded = decode_range(
        memoryview(mapped(Path(piece.path), piece.end)),
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
    whole: list[Images] = [(plans[table.name], current_rows(table, batch)) for table, batch in decoded]
    return whole + [(plans[images.table.name], images) for images in decoded.partial]
