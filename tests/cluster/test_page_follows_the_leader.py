"""A page that stays open while the master that it came from dies: it goes to the next leader and goes on there."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

import httpx
import pytest
from playwright.sync_api import Page
from shop import Shop

from support.chromium import chromium, new_tab
from support.waiting import wait_until
from unshard.testing.cluster import ClusterMember, ThrowawayCluster
from unshard.testing.mariadb_server import MariadbServer

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.recovery, pytest.mark.browser, pytest.mark.cluster]


@pytest.fixture(scope="module")
def shop(sources: dict[str, MariadbServer], target: MariadbServer, store: str) -> Iterator[Shop]:
    with ThrowawayCluster(store, 3, 3) as cluster:
        shop = Shop(cluster, sources, target)
        shop.create()
        for name in sources:
            cluster.ctl("operate-source", "create", shop.source_file(name))
        shop.do("start-task", shop.task_file())
        shop.all_move()
        yield shop


@pytest.fixture
def tab() -> Iterator[Page]:
    with chromium() as browser:
        yield new_tab(browser)


def address(shop: Shop) -> str:
    """The address of the master that leads."""
    return f"127.0.0.1:{shop.cluster.gates[shop.cluster.masters.index(shop.cluster.leader())].port}"


def test_an_open_page_goes_on_with_the_next_leader(shop: Shop, tab: Page) -> None:
    asked: list[str] = []
    ours = tuple(f"http://127.0.0.1:{gate.port}/ui/" for gate in shop.cluster.gates)
    tab.on("request", lambda one: asked.append(one.url))
    first, old = address(shop), shop.cluster.leader()
    tab.goto(f"http://{first}/ui/tasks/shop/tables?sort=applied")
    tab.wait_for_selector("#link:has-text('live')")
    shop.all_move()
    tab.wait_for_selector("main tbody")
    assert not [url for url in asked if not url.startswith((f"http://{first}/", "data:"))], "only its own master"
    shop.until(lambda: len(begins(first)) == 3, "the charts have a point of each source")
    shop.until(lambda: all(map(has_points, shop.cluster.workers)), "the workers have kept a point of each")
    begun = begins(first)
    old.kill()
    tab.wait_for_selector("#link:has-text('connection lost')")
    tab.wait_for_url(lambda url: first not in url)
    second = address(shop)
    assert second != first
    assert tab.url == f"http://{second}/ui/tasks/shop/tables?sort=applied"
    tab.wait_for_selector("#link:has-text('live')")
    before = tab.inner_text("main tbody")
    shop.all_move()
    wait_until(lambda: tab.inner_text("main tbody") != before, "the table of sources moves")
    assert not [url for url in asked if not url.startswith((*ours, "data:"))], "nothing but masters"
    kept = "the charts begin where they did at the leader before"
    shop.until(lambda: all(begins(second).get(source, inf) < at + 20 for source, at in begun.items()), kept)


def has_points(worker: ClusterMember) -> bool:
    """Return whether a worker has kept a point of a task: the next leader knows of no older ones."""
    return bool(httpx.get(f"http://127.0.0.1:{worker.port}/worker/v1/history", timeout=60).json()["tasks"])


def begins(master: str) -> dict[str, float]:
    """When the charts of the task begin on a master, by source (unix time)."""
    found = httpx.get(f"http://{master}/ui/tasks/shop/history", timeout=60).json()
    return {source: points[0][0] for source, points in found.items()}


def test_a_page_of_a_leader_that_freezes_goes_to_the_next_one(shop: Shop, tab: Page) -> None:
    """It hangs up on nobody: only its silence tells."""
    shop.cluster.mend()
    first, old = address(shop), shop.cluster.leader()
    tab.goto(f"http://{first}/ui/tasks/shop?minutes=15")
    tab.wait_for_selector("#link:has-text('live')")
    old.freeze()
    try:
        tab.wait_for_selector("#link:has-text('connection lost')")
        tab.wait_for_url(lambda url: first not in url)
        assert tab.url.endswith("/ui/tasks/shop?minutes=15")
        tab.wait_for_selector("#link:has-text('live')")
    finally:
        old.wake()


def test_a_page_of_a_leader_that_is_evicted_goes_to_the_next_one(shop: Shop, tab: Page) -> None:
    shop.cluster.mend()
    first = address(shop)
    tab.goto(f"http://{first}/ui/")
    tab.wait_for_selector("#link:has-text('live')")
    shop.cluster.told("operate-leader", "evict")
    tab.wait_for_url(lambda url: first not in url)
    tab.wait_for_selector("#link:has-text('live')")
    assert tab.get_by_role("link", name="shop", exact=True).count() == 1
