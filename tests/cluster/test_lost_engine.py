"""A worker whose Spark dies under it: it gets another engine and goes on by itself, and nothing is done twice."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from shop import SHARDS, TARGET, Shop

from unshard.testing.cluster import ThrowawayCluster
from unshard.testing.hold import row_held, stands_still
from unshard.testing.mariadb_server import MariadbServer

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.recovery, pytest.mark.cluster]


@pytest.fixture(scope="module")
def shop(target: MariadbServer, store: str) -> Iterator[Shop]:
    with MariadbServer({"gtid_domain_id": "1"}) as source, ThrowawayCluster(store, masters=1, workers=1) as cluster:
        shop = Shop(cluster, {"s1": source}, target)
        shop.create()
        cluster.ctl("operate-source", "create", shop.source_file("s1"))
        shop.do("start-task", shop.task_file())
        shop.all_move()
        yield shop


MANY = 6000
"""Rows whose changes are too many for a batch in the driver's process: Spark runs it."""


@pytest.mark.parametrize("process", ["java", "spark.daemon"])
def test_what_runs_the_batch_is_killed_in_its_middle(shop: Shop, process: str) -> None:
    worker = shop.cluster.worker("w1")
    shop.until(shop.arrives(shop.add("s1", MANY)), "many rows arrive")
    with row_held(shop.target, TARGET.quoted):
        last = change_all(shop)
        shop.until(lambda: stands_still(shop.target), "in the middle of a batch")
        kill(worker.pid, process)
    shop.until(shop.arrives(last), "it goes on")
    shop.work("s1")
    shop.all_move()
    shop.are("Running")
    assert worker.runs
    shop.assert_exactly_once()


def test_small_batches_go_on_without_spark(shop: Shop) -> None:
    worker = shop.cluster.worker("w1")
    kill(worker.pid, "java")
    shop.work("s1")
    shop.all_move()
    assert not [pid for pid in descendants(worker.pid) if "java" in command(pid)]
    shop.until(shop.arrives(change_all(shop)), "a large batch gets another engine")
    assert [pid for pid in descendants(worker.pid) if "java" in command(pid)]
    shop.are("Running")
    shop.assert_exactly_once()


def change_all(shop: Shop) -> int:
    """Change all rows, which takes a batch that Spark runs; the id of a row that is added after it."""
    for shard in SHARDS:
        shop.sources["s1"].query(f"UPDATE {shard.quoted} SET note = CONCAT(note, '.')")
    return shop.add("s1")


def kill(worker: int, process: str) -> None:
    """Kill the processes of a worker that have a word in their command lines."""
    killed = [pid for pid in descendants(worker) if process in command(pid)]
    assert killed
    for pid in killed:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def descendants(pid: int) -> list[int]:
    """A process and all that it has started, by proc(5)."""
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
    found = [pid]
    for one in found:
        found += [child for child, parent in parents.items() if parent == one]
    return found


def command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""
