"""A table of 500,000 rows dumped and loaded, beside mydumper and myloader with two threads."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

from bench import data, peers
from bench.stage import BIG, engine, subtask
from unshard.testing.servers import MariadbServer

_SCHEMA = "bench"
_NO_BINLOG = {**BIG, "log_bin": ""}
"""Targets here write no binlog: myloader turns it off for its own rows, and so both do the same work."""

_RUNS = 3


def run(rows: int = 500_000) -> dict[str, Any]:
    """`{"dump_rows_per_s", "load_rows_per_s", "x_native"}`; whole runs in turn, the median of three each."""
    with tempfile.TemporaryDirectory(prefix="unshard-bench-") as name, MariadbServer(BIG) as source:
        folder = Path(name)
        data.bulk(source, _SCHEMA, rows=rows)
        ours, theirs = [], []
        with engine(folder) as spark:
            for turn in range(_RUNS):
                with MariadbServer(_NO_BINLOG) as target:
                    work = subtask(spark, source, target, folder / f"{turn}", mode="full")
                    begun = time.perf_counter()
                    work.dump.run()  # type: ignore[union-attr]
                    middle = time.perf_counter()
                    work.load.run()  # type: ignore[union-attr]
                    ours.append((middle - begun, time.perf_counter() - middle))
                    _compare(source, target)
                with MariadbServer(_NO_BINLOG) as target:
                    peer = peers.dump_and_load(source, target, _SCHEMA, threads=2)
                    theirs.append((peer.dump_seconds, peer.load_seconds))
                    _compare(source, target)
    (dump, load), (peer_dump, peer_load) = _median(ours), _median(theirs)
    return {
        "dump_rows_per_s": round(rows / dump),
        "load_rows_per_s": round(rows / load),
        "dump_s": round(dump, 2),
        "load_s": round(load, 2),
        "native_dump_s": round(peer_dump, 2),
        "native_load_s": round(peer_load, 2),
        "x_native": round((peer_dump + peer_load) / (dump + load), 2),
    }


def _median(times: list[tuple[float, float]]) -> tuple[float, float]:
    return sorted(times, key=sum)[len(times) // 2]


def _compare(source: MariadbServer, target: MariadbServer) -> None:
    statement = f"CHECKSUM TABLE {_SCHEMA}.bulk"
    if source.query(statement)[0][1] != target.query(statement)[0][1]:
        raise AssertionError("the copy differs from the source")
