"""A source is taken out of a sharding task, through a real master: nobody waits for it, and it writes nothing late.

The worker of s1 is frozen before its claim, until another has the source.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from shop import SHARDS, TARGET, Shop, until

from unshard.api.verbs import ShardDdlLock
from unshard.testing.cluster import Cluster
from unshard.testing.compare import assert_equal
from unshard.testing.servers import MariadbServer

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.recovery]


@pytest.fixture(scope="module")
def target() -> Iterator[MariadbServer]:
    """One that ends sessions which stand in a transaction: who is frozen in one keeps its rows locked."""
    with MariadbServer({"gtid_domain_id": "9", "idle_transaction_timeout": "10"}) as server:
        yield server


@pytest.fixture(scope="module")
def shop(sources: dict[str, MariadbServer], target: MariadbServer, store: str) -> Iterator[Shop]:
    places = {"w1": "sync-claim-before:2", "w4": "ddl-execute-after:2"}
    frozen = {name: {"UNSHARD_CRASH_AT": place, "UNSHARD_CRASH_BY": "SIGSTOP"} for name, place in places.items()}
    cluster = Cluster(store, 1, 4, master={"worker-ttl": "4s"}, environments=frozen)
    with cluster:
        shop = Shop(cluster, sources, target)
        shop.create()
        for name, worker in zip(sources, ("w1", "w2", "w3"), strict=True):
            cluster.ctl("operate-source", "create", shop.source_file(name), "-w", worker)
        cluster.ctl("start-task", shop.task_file())
        yield shop


def test_who_was_frozen_before_its_claim_does_not_take_the_source_back(shop: Shop) -> None:
    old = shop.cluster.worker("w1")
    shop.all_move()
    shop.cluster.ctl("pause-task", "shop", "-s", "s1")
    shop.cluster.told("resume-task", "shop", "-s", "s1")  # which nobody confirms
    until(lambda: shop.serves("s1") not in ("", "w1"), "another worker serves s1")
    shop.moves("s1")
    new = shop.serves("s1")
    old.wake()
    until(lambda: "SYNC-071" in old.text, "it is told that its order is old")
    until(lambda: "source let go" in old.text, "it has let go")
    shop.all_move()
    assert shop.serves("s1") == new and "SYNC-001" not in shop.cluster.worker(new).text
    shop.assert_exactly_once()


def alter(shop: Shop, name: str, change: str) -> None:
    for shard in SHARDS:
        shop.sources[name].query(f"ALTER TABLE {shard.quoted} {change}")


def locks(shop: Shop) -> list[dict[str, Any]]:
    return list(shop.cluster.asked(ShardDdlLock(task="shop"))["locks"])


def take_out(shop: Shop, name: str) -> None:
    shop.cluster.ctl("stop-task", "shop", "-s", name)
    shop.cluster.ctl("pause-task", "shop")
    others = {other: server for other, server in shop.sources.items() if other != name}
    shop.cluster.ctl("update-task", replace(shop, sources=others).task_file())
    shop.cluster.told("resume-task", "shop")  # it tells an error that comes at once


def has_column(shop: Shop, name: str) -> bool:
    return bool(shop.target.query(f"SHOW COLUMNS FROM {TARGET.quoted} LIKE '{name}'"))


def assert_rows_are_equal(shop: Shop) -> None:
    assert_equal([(server, shard) for server in shop.sources.values() for shard in SHARDS], (shop.target, TARGET))


def test_a_source_that_a_ddl_waits_for_is_taken_out_and_comes_back(shop: Shop) -> None:
    for name in ("s1", "s2"):
        alter(shop, name, "ADD COLUMN n INT NOT NULL DEFAULT 7")
        shop.work(name)
    until(lambda: [lock["unsynced"] for lock in locks(shop)] == [["s3"]], "it waits for s3 alone")
    told = shop.cluster.told("operate-source", "stop", "s3")
    assert told.exit_code and "stop-task TASK -s s3" in told.stdout
    take_out(shop, "s3")
    until(lambda: has_column(shop, "n"), "the others have gone on")
    for name in ("s1", "s2"):
        shop.moves(name)
    shop.work("s3")
    alter(shop, "s3", "ADD COLUMN n INT NOT NULL DEFAULT 7")
    shop.work("s3")
    shop.cluster.ctl("pause-task", "shop")
    shop.cluster.ctl("update-task", shop.task_file())
    shop.cluster.ctl("resume-task", "shop")
    shop.cluster.ctl("start-task", shop.task_file(), "-s", "s3")
    shop.all_move()
    assert locks(shop) == []
    assert_rows_are_equal(shop)


def test_an_owner_that_has_run_its_ddl_is_taken_out_before_it_says_so(shop: Shop) -> None:
    """It is frozen there. The next owner finds the target's table changed, and the way out is the one that is told."""
    owner = shop.cluster.worker("w4")
    assert shop.serves("s1") == owner.name
    shop.cluster.worker("w1").kill()  # no spare finishes it
    for name in ("s1", "s2", "s3"):
        alter(shop, name, "ADD COLUMN m INT NOT NULL DEFAULT 8")
        until(lambda name=name: name in locks(shop)[0]["synced"] if locks(shop) else False, f"{name} has reported")  # type: ignore[misc]
    until(lambda: has_column(shop, "m"), "it is run")
    until(lambda: not shop.serves("s1"), "the owner is frozen")
    take_out(shop, "s1")
    until(lambda: shop.stages().get("s2") == "Paused", "the next owner stops")
    owner.wake()
    until(lambda: "SYNC-001" in owner.text, "the one that was taken out writes nothing late")
    (lock,) = locks(shop)
    assert lock["owner"] == "s2" and "--force-remove" in lock["help"]
    shop.cluster.ctl("shard-ddl-lock", "unlock", lock["ID"], "--force-remove")
    shop.cluster.ctl("resume-task", "shop")
    for name in ("s2", "s3"):
        shop.moves(name)
    until(lambda: not locks(shop), "all have passed")
    assert_rows_are_equal(shop)
