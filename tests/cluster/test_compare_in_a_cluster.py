"""A task of a cluster is compared, repaired and cut over, and its worker is killed meanwhile."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from shop import PATIENT, SHARDS, TARGET, Shop

from support.killed_commands import TypedCommand
from unshard.testing.cluster import ThrowawayCluster
from unshard.testing.mariadb_server import MariadbServer

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.recovery, pytest.mark.cluster]


@pytest.fixture(scope="module")
def shop(sources: dict[str, MariadbServer], target: MariadbServer, store: str) -> Iterator[Shop]:
    cluster = ThrowawayCluster(store, masters=1, workers=2, master=PATIENT)
    with cluster:
        shop = Shop(cluster, {"s1": sources["s1"]}, target)
        shop.create()
        cluster.ctl("operate-source", "create", shop.source_file("s1"))
        cluster.told("start-task", shop.task_file())
        shop.all_move()
        yield shop


@pytest.fixture(autouse=True)
def mended(shop: Shop) -> Iterator[None]:
    """Every test ends with both workers at work, and with equal rows, each change applied once."""
    yield
    shop.cluster.mend()
    shop.all_move()
    shop.saved("shop")
    found = typed(shop, "compare").ends("--json")
    assert found.returncode == 0, found.stdout + found.stderr


def typed(shop: Shop, verb: str, *words: str) -> TypedCommand:
    return TypedCommand(shop.folder, (verb, "task.yaml", "-s", "s1.yaml", *words))


def killed(shop: Shop) -> None:
    """The worker of the source dies, and the other one serves it."""
    shop.cluster.mend()
    old = shop.worker_of("s1")
    old.kill()
    shop.gives_up(old)
    shop.until(lambda: shop.serves("s1") not in ("", old.name), "another worker serves the source")


@contextmanager
def writer(shop: Shop) -> Iterator[None]:
    """Rows of the source come, change and go."""
    ended = threading.Event()

    def write() -> None:
        while not ended.wait(0.1):
            shop.work("s1")

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def differing(report: dict[str, Any]) -> dict[str, str]:
    """By key, what each row that differs is."""
    (table,) = report["tables"]
    return {one["key"]: one["class"] for one in table["differences"]}


def test_no_false_alarm_and_no_miss_while_the_worker_dies(shop: Shop) -> None:
    """A DDL of the merged table and a writer's changes are under way too."""
    lost, other = shop.add("s1"), shop.add("s1")
    shop.all_move()
    shop.target.run(
        f"DELETE FROM {TARGET.quoted} WHERE id = {lost}",
        f"UPDATE {TARGET.quoted} SET note = 'other' WHERE id = {other}",
    )
    compare = typed(shop, "compare", "--json", "--state", "ranges")  # it freezes once its first look is on record
    with writer(shop), compare.frozen("compare-range-after") as found:
        first, second = (shard.quoted for shard in SHARDS)
        shop.sources["s1"].run(f"ALTER TABLE {first} ADD COLUMN n INT NOT NULL DEFAULT 0")
        killed(shop)
        shop.sources["s1"].run(f"ALTER TABLE {second} ADD COLUMN n INT NOT NULL DEFAULT 0")
    (done,) = found
    assert done.returncode == 1, done.stdout + done.stderr
    report = json.loads(done.stdout)
    assert differing(report) == {f"id={lost}": "missing", f"id={other}": "changed"}
    assert sum(report["tables"][0]["counts"].values()) == 2

    with writer(shop), typed(shop, "compare", "--repair", "--yes").frozen("repair-commit-before") as found:
        shop.cluster.mend()
        killed(shop)
    (done,) = found
    assert "repaired 0 extra, 1 changed, 1 missing" in done.stdout, done.stdout + done.stderr
    assert done.returncode == 0, done.stdout + done.stderr


def test_cut_over_while_the_worker_dies(shop: Shop) -> None:
    cut_over = typed(shop, "cutover", "--read-only", "--rest", "1")
    try:
        with cut_over.frozen("cutover-read-only-before") as found:
            last = shop.add("s1", 20)
            killed(shop)
        (done,) = found
        assert done.returncode == 0, done.stdout + done.stderr
        assert shop.arrives(last)()
        with cut_over.frozen("compare-range-after") as found:
            killed(shop)
        (done,) = found
        assert done.returncode == 0, done.stdout + done.stderr
        report = json.loads((shop.folder / "unshard-cutover-shop.json").read_text())
        ((file, offset, *_),) = shop.sources["s1"].query("SHOW MASTER STATUS")
        assert report["cut_over"]
        assert report["sources"][0]["position"] == f"{file}:{offset}"
    finally:
        back = typed(shop, "cutover").ends("--back")
    assert back.stdout.splitlines() == ["s1: SET GLOBAL read_only = OFF"], back.stderr
