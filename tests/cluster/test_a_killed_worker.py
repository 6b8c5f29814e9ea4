"""The smallest cluster: a master, two workers, one source. The worker of the source is killed, the other takes over."""

from __future__ import annotations

from pathlib import Path

import pytest
from shop import Shop

from unshard.testing.cluster import ThrowawayCluster
from unshard.testing.hold import row_held, stands_still
from unshard.testing.mariadb_server import MariadbServer

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.recovery]


def test_a_killed_worker_is_followed_by_the_other_one(tmp_path: Path) -> None:
    with (
        MariadbServer() as source,
        MariadbServer({"gtid_domain_id": "9"}) as target,
        ThrowawayCluster(f"sqlite:///{tmp_path}/master.db", masters=1, workers=2) as cluster,
    ):
        shop = Shop(cluster, {"s1": source}, target)
        shop.create()
        cluster.ctl("operate-source", "create", shop.source_file("s1"))
        cluster.ctl("start-task", shop.task_file())
        shop.moves("s1")
        old = shop.worker_of("s1")
        with row_held(target, "shop.orders"):
            shop.work("s1")
            source.query("UPDATE shop.orders_1 SET note = CONCAT(note, '.')")
            shop.until(lambda: stands_still(target), "in the middle of a batch")
            old.kill()
        shop.moves("s1")
        shop.until(lambda: shop.serves("s1") not in ("", old.name), "the other worker serves s1")
        shop.assert_exactly_once()
