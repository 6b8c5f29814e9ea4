"""Binlog bytes to Arrow on one core: the header walk and the row decoder, beside `mariadb-binlog -v`."""

from __future__ import annotations

import mmap
import time
from collections.abc import Callable
from typing import Any

from bench import data, peers
from unshard.binlog.format import read_format
from unshard.binlog.index import BudgetReached, EndOfData, Rotate, walk
from unshard.binlog.rows import decode_range
from unshard.errors import Where
from unshard.model.table import Table, TableName
from unshard.mysql.connection import session
from unshard.mysql.structure import read_table
from unshard.testing.servers import MariadbServer

_SCHEMA = "bench"
_BUDGET = 32 << 20
_RUNS = 3


def run() -> dict[str, Any]:
    """`{"bulk": {"rows_per_s", "mb_per_s", "x_native"}, "oltp": …, "wide": …}`, the best of three runs each."""
    with MariadbServer({"max_binlog_size": "1G"}) as server:
        shapes: dict[str, Callable[..., data.Written]] = {"bulk": data.bulk, "oltp": data.oltp, "wide": data.wide}
        return {name: _shape(server, write(server, _SCHEMA), name) for name, write in shapes.items()}


def _shape(server: MariadbServer, written: data.Written, table: str) -> dict[str, float]:
    with session(server.endpoint, "source") as connection:
        structure = read_table(connection, TableName(_SCHEMA, table))
    if structure is None:
        raise LookupError(table)
    size = written.file.stat().st_size
    written.file.read_bytes()  # both sides find the file in the page cache
    ours = min(_ours(written, structure) for _ in range(_RUNS))
    theirs = min(peers.decode(written.file) for _ in range(_RUNS))
    return {
        "rows_per_s": round(written.rows / ours),
        "transactions_per_s": round(written.transactions / ours),
        "mb_per_s": round(size / ours / 1e6, 1),
        "native_mb_per_s": round(size / theirs / 1e6, 1),
        "x_native": round(theirs / ours, 2),
    }


def _ours(written: data.Written, structure: Table) -> float:
    """Seconds to walk and decode the whole file, batch by batch. Fails where a row is missing."""
    begun = time.perf_counter()
    changes = 0
    with written.file.open("rb") as handle, mmap.mmap(handle.fileno(), 0, prot=mmap.PROT_READ) as log:
        checksum = read_format(log).checksum
        where = Where(file=str(written.file))
        at = 4
        while True:
            extent = walk(log, at, size=len(log), budget=_BUDGET, checksum=checksum, where=where)
            if extent.row_events:
                found = decode_range(
                    log,
                    extent.start,
                    extent.end,
                    checksum=checksum,
                    wanted=lambda table_map, offset: structure,
                    where=where,
                )
                changes += found.changes
            if isinstance(extent.stop, EndOfData | Rotate):
                break
            at = extent.end if isinstance(extent.stop, BudgetReached) else extent.stop.end
    seconds = time.perf_counter() - begun
    if changes != written.rows:
        raise AssertionError(f"{changes} changes decoded, {written.rows} were written")
    return seconds
