"""Optimistic mode in a cluster: a worker, the master or the target dies while shards differ from the others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from shop import PATIENT, SHARDS, TARGET, Shop

from unshard.api.verbs import ShardDdlLock
from unshard.testing.cluster import ThrowawayCluster
from unshard.testing.compare import assert_equal
from unshard.testing.mariadb_server import MariadbServer

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.recovery, pytest.mark.cluster]

OPTIMISTIC: dict[str, Any] = {"shard-mode": "optimistic"}
ADD = "ADD COLUMN n INT NOT NULL DEFAULT 7"


@pytest.fixture(scope="module")
def shop(sources: dict[str, MariadbServer], target: MariadbServer, store: str) -> Iterator[Shop]:
    with ThrowawayCluster(store, 1, 4, master=PATIENT) as cluster:
        shop = Shop(cluster, sources, target)
        shop.create()
        for name in sources:
            cluster.ctl("operate-source", "create", shop.source_file(name))
        shop.do("start-task", shop.task_file(**OPTIMISTIC))
        shop.all_move()
        yield shop


def alter(shop: Shop, name: str, change: str) -> None:
    for shard in SHARDS:
        shop.sources[name].query(f"ALTER TABLE {shard.quoted} {change}")


def columns(shop: Shop) -> list[str]:
    return [row[0] for row in shop.target.query(f"SHOW COLUMNS FROM {TARGET.quoted}")]


def assert_rows_are_equal(shop: Shop) -> None:
    shop.saved("shop")
    assert_equal([(server, shard) for server in shop.sources.values() for shard in SHARDS], (shop.target, TARGET))


def test_a_worker_dies_while_its_shards_are_ahead(shop: Shop) -> None:
    alter(shop, "s1", ADD)
    shop.work("s1")
    shop.until(lambda: columns(shop) == ["id", "note", "n"], "the target has the column")
    shop.all_move()
    old = shop.worker_of("s1")
    old.kill()
    shop.gives_up(old)
    shop.work("s1")
    shop.moves("s1")
    for name in ("s2", "s3"):
        alter(shop, name, ADD)
        shop.work(name)
    shop.all_move()
    assert_rows_are_equal(shop)


def test_the_master_and_the_target_die_while_shards_are_ahead(shop: Shop) -> None:
    """The masters' database is on the target's server, so it is away for them too."""
    change = "ADD COLUMN m VARCHAR(9) NOT NULL DEFAULT 'new'"
    (master,) = shop.cluster.masters
    alter(shop, "s1", change)
    shop.work("s1")
    shop.until(lambda: columns(shop) == ["id", "note", "n", "m"], "the target has the column")
    master.kill()
    alter(shop, "s2", change)
    shop.work("s2")
    shop.all_move()
    shop.target.kill()
    alter(shop, "s3", change)
    shop.work("s3")
    shop.target.start()
    shop.cluster.start_master(0)
    shop.all_move()
    shop.until(lambda: not shop.cluster.asked(ShardDdlLock(task="shop"))["locks"], "no shard is ahead")
    assert_rows_are_equal(shop)
    for name in shop.sources:
        alter(shop, name, "DROP COLUMN m")
    shop.until(lambda: columns(shop) == ["id", "note", "n"], "the column is gone")
    shop.all_move()
    assert_rows_are_equal(shop)
