"""Decodes binlog bytes to Arrow on one core: the header walk and the row decoder, beside the usual readers.

`mariadb-binlog -v` reads the whole file. mysql-replication (PyPI) reads only the first `_PYTHON_ROWS` rows from the
server that wrote it, because all of them would take a minute.
"""

from __future__ import annotations

import mmap
import multiprocessing
import re
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from bench import data, peers
from unshard.binlog.headers import read_format
from unshard.binlog.index import walk
from unshard.binlog.rows import decode_range
from unshard.binlog.transaction_range import BudgetReached, EndOfData, Rotate
from unshard.errors import Where
from unshard.model.table import Table, TableName
from unshard.mysql.connection import session
from unshard.mysql.structure import read_table
from unshard.testing.mariadb_server import MariadbServer

_SCHEMA = "bench"
_BUDGET = 32 << 20
_RUNS = 5
_PYTHON_ROWS = 100_000
_LONGER = 10


def run(share: float = 1.0, turns: int = _RUNS) -> dict[str, Any]:
    """Return `{"bulk": {"rows_per_s", "mb_per_s", "x_native", "x_python", …}, "oltp": …, "wide": …, "memory": …}`.

    Rates are the best of `turns` runs each. The files have that share of the default rows. `memory` has the highest
    resident memory of a process that decodes the bulk file, and of one that decodes a file ten times as long.
    """
    with MariadbServer({"max_binlog_size": "1G"}) as server:
        shapes: dict[str, Callable[..., data.Written]] = {"bulk": data.bulk, "oltp": data.oltp, "wide": data.wide}
        written = {name: write(server, _SCHEMA, **data.part(name, share)) for name, write in shapes.items()}
        found: dict[str, Any] = {name: _shape(server, written[name], name, turns) for name in shapes}
        return {**found, "memory": _memory(written["bulk"].file, _structure(server, "bulk"))}


def batches(file: Path, structure: Table, *, budget: int = _BUDGET) -> Iterator[int]:
    """Yield the number of changes in each batch of a file, which is walked and decoded.

    Each batch maps the file anew, as a task does.
    """
    where = Where(file=str(file))
    at = 4
    while at:
        with file.open("rb") as handle, mmap.mmap(handle.fileno(), 0, prot=mmap.PROT_READ) as log:
            checksum = read_format(log).checksum
            log_range = walk(log, at, size=len(log), budget=budget, checksum=checksum, where=where)
            if log_range.row_events:
                yield decode_range(
                    log,
                    log_range.start,
                    log_range.end,
                    checksum=checksum,
                    wanted=lambda table_map, offset: structure,
                    where=where,
                ).changes
        if isinstance(log_range.stop, EndOfData | Rotate):
            at = 0
        else:
            at = log_range.end if isinstance(log_range.stop, BudgetReached) else log_range.stop.end


def peak_mb(file: Path, structure: Table, *, budget: int = _BUDGET) -> int:
    """Return the highest resident memory, in MiB, of a new process that decodes the file batch by batch."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as one:
        return one.submit(_decode_and_tell, file, structure, budget).result()


def _decode_and_tell(file: Path, structure: Table, budget: int) -> int:
    for _ in batches(file, structure, budget=budget):
        pass
    # not getrusage: its figure is inherited from the process that started this one
    (kilobytes,) = re.findall(r"^VmHWM:\s+(\d+) kB$", Path("/proc/self/status").read_text(), re.MULTILINE)
    return round(int(kilobytes) / 1024)


def _shape(server: MariadbServer, written: data.Written, table: str, turns: int) -> dict[str, float]:
    structure = _structure(server, table)
    size = written.file.stat().st_size
    written.file.read_bytes()  # both sides find the file in the page cache
    # in turn, so that other load on the machine affects both
    pairs = [(_ours(written, structure), peers.decode(written.file)) for _ in range(turns)]
    ours, theirs = (min(seconds) for seconds in zip(*pairs, strict=True))
    python = peers.python_rows_per_s(server, written.file.name, min(_PYTHON_ROWS, written.rows))
    return {
        "rows_per_s": round(written.rows / ours),
        "transactions_per_s": round(written.transactions / ours),
        "mb_per_s": round(size / ours / 1e6, 1),
        "native_mb_per_s": round(size / theirs / 1e6, 1),
        "python_rows_per_s": round(python),
        "x_native": round(theirs / ours, 2),
        "x_python": round(written.rows / ours / python, 1),
    }


def _structure(server: MariadbServer, table: str) -> Table:
    with session(server.endpoint, "source") as connection:
        structure = read_table(connection, TableName(_SCHEMA, table))
    if structure is None:
        raise LookupError(table)
    return structure


def _ours(written: data.Written, structure: Table) -> float:
    """Return the seconds to walk and decode the whole file. Fails if a row is missing."""
    begun = time.perf_counter()
    changes = sum(batches(written.file, structure))
    seconds = time.perf_counter() - begun
    if changes != written.rows:
        raise AssertionError(f"{changes} changes decoded, {written.rows} were written")
    return seconds


def _memory(file: Path, structure: Table) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="unshard-bench-") as folder:
        long = data.repeated(file, _LONGER, Path(folder) / "long")
        return {
            "file_mb": [round(one.stat().st_size / 1e6) for one in (file, long)],
            "peak_rss_mb": [peak_mb(one, structure) for one in (file, long)],
        }
