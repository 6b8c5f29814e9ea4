"""A source is taken out of a sharding task, through a real master: nobody waits for it, and it writes nothing late.

A worker is frozen at a place that the test names when the moment has come, whichever worker that is.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from shop import PATIENT, SHARDS, TARGET, Shop

from unshard.api.verbs import ShardDdlLock
from unshard.crash_point import BY, ORDER
from unshard.testing.cluster import ClusterMember, ThrowawayCluster
from unshard.testing.compare import assert_equal
from unshard.testing.mariadb_server import MariadbServer

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.recovery, pytest.mark.cluster]


@pytest.fixture(scope="module")
def order(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file that names where a worker freezes next."""
    return tmp_path_factory.mktemp("order") / "freeze"


@pytest.fixture(scope="module")
def shop(sources: dict[str, MariadbServer], target: MariadbServer, store: str, order: Path) -> Iterator[Shop]:
    freezes = {f"w{number + 1}": {ORDER: str(order), BY: "SIGSTOP"} for number in range(4)}
    with ThrowawayCluster(store, 1, 4, master=PATIENT, environments=freezes) as cluster:
        shop = Shop(cluster, sources, target)
        shop.create()
        for name, worker in zip(sources, ("w1", "w2", "w3"), strict=True):
            cluster.ctl("operate-source", "create", shop.source_file(name), "-w", worker)
        shop.do("start-task", shop.task_file())
        shop.all_move()
        yield shop


def frozen(shop: Shop, order: Path) -> ClusterMember:
    """The worker that has taken the order."""
    found: list[ClusterMember] = []

    def taken() -> bool:
        pids = {one.suffix for one in order.parent.iterdir()}
        found[:] = [one for one in shop.cluster.workers if one.runs and f".{one.pid}" in pids]
        return bool(found)

    shop.until(taken, "a worker is frozen")
    (member,) = found
    order.with_suffix(f".{member.pid}").unlink()
    return member


def is_paused(shop: Shop, name: str) -> bool:
    return shop.stages().get(name) == "Paused"


def test_who_was_frozen_before_its_claim_does_not_take_the_source_back(shop: Shop, order: Path) -> None:
    shop.do("pause-task", "shop", "-s", "s1")
    shop.until(lambda: is_paused(shop, "s1"), "s1 is paused")
    order.write_text("sync-claim-before")
    with ThreadPoolExecutor() as threads:
        threads.submit(shop.cluster.told, "resume-task", "shop", "-s", "s1")  # which nobody confirms
        old = frozen(shop, order)
        shop.gives_up(old)
        shop.until(lambda: shop.serves("s1") not in ("", old.name), "another worker serves s1")
        shop.moves("s1")
    known = len(old.text)
    old.wake()
    shop.until(lambda: "SYNC-071" in old.text[known:], "it is told that its order is old")
    shop.until(lambda: "source let go" in old.text[known:], "it has let go")
    shop.all_move()
    assert shop.serves("s1") != old.name
    shop.assert_exactly_once()


def alter(shop: Shop, name: str, change: str) -> None:
    for shard in SHARDS:
        shop.sources[name].query(f"ALTER TABLE {shard.quoted} {change}")


def locks(shop: Shop) -> list[dict[str, Any]]:
    return list(shop.cluster.asked(ShardDdlLock(task="shop"))["locks"])


def reported(shop: Shop) -> set[str]:
    """The sources that the open lock has heard of."""
    return {name for lock in locks(shop) for name in lock["synced"]}


def take_out(shop: Shop, name: str) -> Shop:
    """What is left."""
    rest = replace(shop, sources={other: server for other, server in shop.sources.items() if other != name})
    shop.do("stop-task", "shop", "-s", name)
    shop.do("pause-task", "shop")
    all_paused(rest)
    shop.cluster.ctl("update-task", rest.task_file())
    shop.cluster.told("resume-task", "shop")  # it tells an error that comes at once
    return rest


def all_paused(shop: Shop) -> None:
    shop.until(lambda: all(is_paused(shop, name) for name in shop.sources), "all are paused")


def has_column(shop: Shop, name: str) -> bool:
    return bool(shop.target.query(f"SHOW COLUMNS FROM {TARGET.quoted} LIKE '{name}'"))


def assert_rows_are_equal(shop: Shop) -> None:
    assert_equal([(server, shard) for server in shop.sources.values() for shard in SHARDS], (shop.target, TARGET))


def test_a_source_that_a_ddl_waits_for_is_taken_out_and_comes_back(shop: Shop) -> None:
    for name in ("s1", "s2"):
        alter(shop, name, "ADD COLUMN n INT NOT NULL DEFAULT 7")
        shop.work(name)
    shop.until(lambda: [lock["unsynced"] for lock in locks(shop)] == [["s3"]], "it waits for s3 alone")
    told = shop.cluster.told("operate-source", "stop", "s3")
    assert told.exit_code
    assert "stop-task TASK -s s3" in told.stdout
    rest = take_out(shop, "s3")
    shop.until(lambda: has_column(shop, "n"), "the others have gone on")
    for name in rest.sources:
        shop.moves(name)
    shop.work("s3")
    alter(shop, "s3", "ADD COLUMN n INT NOT NULL DEFAULT 7")
    shop.work("s3")
    shop.do("pause-task", "shop")
    all_paused(rest)
    shop.cluster.ctl("update-task", shop.task_file())
    shop.do("resume-task", "shop")
    shop.do("start-task", shop.task_file(), "-s", "s3")
    shop.all_move()
    shop.until(lambda: not locks(shop), "all have passed")
    shop.saved("shop")
    assert_rows_are_equal(shop)


def test_an_owner_that_has_run_its_ddl_is_taken_out_before_it_says_so(shop: Shop, order: Path) -> None:
    """It is frozen there. The next owner finds by its intent that the target's table is changed."""
    serving = {shop.worker_of(name).name for name in shop.sources}
    for member in shop.cluster.workers:
        if member.name not in serving:
            member.kill()  # no spare finishes it
    order.write_text("ddl-execute-after")
    for name in ("s1", "s2", "s3"):
        alter(shop, name, "ADD COLUMN m INT NOT NULL DEFAULT 8")
        shop.until(lambda name=name: name in reported(shop), f"{name} has reported")  # type: ignore[misc]
    owner = frozen(shop, order)
    assert has_column(shop, "m")
    assert shop.serves("s1") == owner.name
    shop.gives_up(owner)
    rest = take_out(shop, "s1")
    known = len(owner.text)
    owner.wake()
    shop.until(lambda: "source let go" in owner.text[known:], "it has let go")
    for name in rest.sources:
        shop.moves(name)
    shop.until(lambda: not locks(shop), "all have passed")
    rest.saved("shop")
    assert_rows_are_equal(shop)
