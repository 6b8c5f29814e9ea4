"""The time from a commit upstream until the row is visible in the target, at 1,000 one-row transactions a second."""

from __future__ import annotations

import multiprocessing
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from multiprocessing.queues import Queue
from pathlib import Path
from typing import Any

from bench.ends import MARIADB, Target
from bench.stage import BIG, Run, end_of, engine, subtask
from unshard.mysql.connection import Endpoint, connect
from unshard.testing.mariadb_server import MariadbServer

_RATE = 1_000
_SECONDS = 30
_WARM_UP_SECONDS = 5
_BIN_MS = 20
_TABLE = "CREATE TABLE bench.beat (id BIGINT NOT NULL PRIMARY KEY, note VARCHAR(40) NOT NULL)"


def run(target: Target = MARIADB, rate: int = _RATE, seconds: int = _SECONDS) -> dict[str, Any]:
    """Return `{"p50_ms", "p99_ms", "max_ms", "rows_per_s", "histogram": [[milliseconds, rows], …]}`.

    A bin of the histogram has its lower bound. Writer and watcher are separate processes.
    """
    spawn = multiprocessing.get_context("spawn")
    with (
        tempfile.TemporaryDirectory(prefix="unshard-bench-") as name,
        engine(Path(name)) as spark,
        MariadbServer(BIG) as source,
        target.server(BIG) as reached,
    ):
        source.run("CREATE DATABASE bench", _TABLE)
        reached.server.run("CREATE DATABASE bench", _TABLE)
        start = end_of(source)
        source.query("FLUSH BINARY LOGS")
        work = Run(subtask(spark, source, reached, Path(name), mode="incremental", start=end_of(source).file))
        work.start()
        work.until(start)
        total = rate * seconds
        written: Queue[list[float]] = spawn.Queue()
        seen: Queue[list[float]] = spawn.Queue()
        watcher = spawn.Process(target=_watch, args=(reached.server.endpoint, total, seen))
        writer = spawn.Process(target=_write, args=(source.endpoint, total, rate, written))
        watcher.start()
        writer.start()
        commits, sights = written.get(), seen.get()
        writer.join()
        watcher.join()
        work.stop()
    skipped = rate * _WARM_UP_SECONDS
    delays = sorted(seen - written for written, seen in zip(commits[skipped:], sights[skipped:], strict=True))
    return {
        "p50_ms": round(1000 * delays[len(delays) // 2]),
        "p99_ms": round(1000 * delays[len(delays) * 99 // 100]),
        "max_ms": round(1000 * delays[-1]),
        "rows_per_s": round((total - 1) / (commits[-1] - commits[0])),
        "histogram": _histogram(delays),
    }


def _histogram(delays: Sequence[float]) -> list[list[int]]:
    """Return the number of rows by their delay in milliseconds, in bins of `_BIN_MS`, without gaps."""
    found = Counter(int(1000 * delay) // _BIN_MS for delay in delays)
    return [[number * _BIN_MS, found[number]] for number in range(min(found), max(found) + 1)]


def _write(source: Endpoint, total: int, rate: int, written: Queue[list[float]]) -> None:
    """Commit a row every 1/rate seconds, and send the time of each commit."""
    connection = connect(source, "source")
    commits = []
    begun = time.time()
    for number in range(total):
        time.sleep(max(0.0, begun + number / rate - time.time()))
        connection.query(f"INSERT INTO bench.beat VALUES ({number}, 'beat {number}')")
        commits.append(time.time())
    written.put(commits)


def _watch(target: Endpoint, total: int, seen: Queue[list[float]]) -> None:
    """Look for the rows every few milliseconds, and send the time at which each was first seen.

    Rows may come out of order.
    """
    connection = connect(target, "target")
    cursor = connection.cursor()
    sights = [0.0] * total
    missing = set(range(total))
    low = 0
    while missing:
        cursor.execute("SELECT id FROM bench.beat WHERE id >= %s", (low,))
        now = time.time()
        for (number,) in cursor.fetchall():
            if number in missing:
                missing.discard(number)
                sights[number] = now
        while low < total and low not in missing:
            low += 1
        time.sleep(0.005)
    seen.put(sights)
