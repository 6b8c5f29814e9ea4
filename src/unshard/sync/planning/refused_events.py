"""Row events that a filter with `action: Error` refuses.

They are found before a batch is opened. So the task stops before the batch, with nothing of it applied, and can go on
from there by other rules.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa

from unshard.binlog.headers import mapped
from unshard.binlog.rows import decode_range
from unshard.binlog.table_map import TableMap
from unshard.errors import SyncError, Where
from unshard.model.change import Op
from unshard.model.table import Table, TableName
from unshard.sync.batch.plan import BatchPlan, Range

_OPS = {"insert": Op.INSERT, "update": Op.UPDATE_BEFORE, "delete": Op.DELETE}

Forbidden = Mapping[TableName, Mapping[str, str]]
"""By upstream table, the row events that stop the task, each with the rule that says so."""


def refuse_forbidden(plan: BatchPlan, forbidden: Forbidden) -> None:
    """Raise SyncError SYNC-015 for the first forbidden event of a batch, by position in the log.

    Decodes the rows of the tables that have such rules, slice by slice; nothing where the batch has none of them.
    """
    tables = {table.table.name: table for table in plan.tables if forbidden.get(table.table.name)}
    if not tables:
        return
    for piece in plan.ranges:

        def wanted(table_map: TableMap, offset: int, piece: Range = piece) -> Table | None:
            found = tables.get(table_map.name)
            return found.table if found is not None and found.takes(piece.file, offset) else None

        decoded = decode_range(
            memoryview(mapped(Path(piece.path), piece.end)),
            piece.start,
            piece.end,
            checksum=plan.checksum,
            wanted=wanted,
            offsets=True,
            maps=piece.maps,
            part=piece.part,
            where=Where(source=plan.source, file=piece.path),
        )
        batches = [*decoded.batches, *((images.table, images.batch) for images in decoded.partial)]
        found = [_first(table.name, batch, forbidden[table.name]) for table, batch in batches]
        refused = min((one for one in found if one is not None), default=None)
        if refused is not None:
            offset, table, event, rule = refused
            where = Where(plan.source, table, f"{piece.file}:{offset}")
            raise SyncError("SYNC-015", where, values={"event": event, "rule": rule})


def _first(name: TableName, batch: pa.RecordBatch, events: Mapping[str, str]) -> tuple[int, str, str, str] | None:
    """Return (offset, table, event, rule) of the first forbidden event in a table's images; None if there is none."""
    ops = batch.column(0).to_numpy(zero_copy_only=False)
    offsets = batch.column(batch.num_columns - 1).to_numpy(zero_copy_only=False)
    found = []
    for event, rule in events.items():
        places = np.flatnonzero(ops == _OPS[event])
        if len(places):
            found.append((int(offsets[places[0]]), str(name), event, rule))
    return min(found, default=None)
