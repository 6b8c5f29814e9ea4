"""Dumps and loads tables of several shapes, each beside mydumper and myloader with two threads."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench import data
from bench.ends import MARIADB
from bench.load import SCHEMA, in_turn
from bench.stage import BIG, engine
from unshard.testing.mariadb_server import MariadbServer

RUNS = 3


def _narrow(server: MariadbServer, share: float) -> None:
    """Two integers a row: what a row costs by itself."""
    count = max(2_000, round(1_000_000 * share))
    server.run(
        "CREATE TABLE narrow (id INT NOT NULL PRIMARY KEY, n INT)",
        f"INSERT INTO narrow SELECT seq, seq * 7 % 1000003 FROM seq_1_to_{count}",
        database=SCHEMA,
    )


def _wide(server: MariadbServer, share: float) -> None:
    """Ten columns of as many types."""
    data.wide(server, SCHEMA, **data.part("wide", share))


def _blobs(server: MariadbServer, share: float) -> None:
    """Values of 64 kB, which no compression makes smaller."""
    source = random.Random(9)
    server.run(f"CREATE TABLE {SCHEMA}.blobs (id INT NOT NULL PRIMARY KEY, v LONGBLOB NOT NULL)")
    for number in range(max(20, round(2_000 * share))):
        server.query(f"INSERT INTO {SCHEMA}.blobs VALUES (%s, %s)", (number, source.randbytes(64_000)))


def _many(server: MariadbServer, share: float) -> None:
    """Many tables with a few rows each: what a table costs by itself."""
    for number in range(max(20, round(500 * share))):
        server.run(
            f"CREATE TABLE many_{number} (id INT NOT NULL PRIMARY KEY, v VARCHAR(50))",
            f"INSERT INTO many_{number} SELECT seq, MD5(seq) FROM seq_1_to_100",
            database=SCHEMA,
        )


def _huge(server: MariadbServer, share: float) -> None:
    """One table that is four times as large as that of the bench `load`."""
    data.bulk(server, SCHEMA, rows=max(2_000, round(2_000_000 * share)))


SHAPES: dict[str, Callable[[MariadbServer, float], None]] = {
    "narrow": _narrow,
    "wide": _wide,
    "blobs": _blobs,
    "many": _many,
    "huge": _huge,
}


def run(percent: int = 100, turns: int = RUNS) -> dict[str, Any]:
    """Return by shape what `load.in_turn` returns; `percent` of the default sizes."""
    with tempfile.TemporaryDirectory(prefix="unshard-bench-") as name, engine(Path(name)) as spark:
        return {shape: _measure(spark, Path(name) / shape, shape, percent / 100, turns) for shape in SHAPES}


def _measure(spark: Any, folder: Path, shape: str, share: float, turns: int) -> dict[str, Any]:
    with MariadbServer(BIG) as source:
        source.run(f"CREATE DATABASE IF NOT EXISTS {SCHEMA}")
        SHAPES[shape](source, share)
        return in_turn(spark, folder, source, MARIADB, turns)
