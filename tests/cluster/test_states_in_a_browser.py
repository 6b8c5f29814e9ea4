"""What the first line of the page says of a real cluster, in a browser: each state, its link, and the way back."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import yaml
from playwright.sync_api import Page
from shop import PATIENT, SHARDS, TARGET, Shop

from support.chromium import chromium, new_tab
from unshard.testing.cluster import ThrowawayCluster
from unshard.testing.mariadb_server import MariadbServer

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.recovery, pytest.mark.browser, pytest.mark.cluster]

ROWS, A_FILE = 2000, 100
PICTURES = os.environ.get("UNSHARD_PAGE_PICTURES", "")
"""Folder to put a picture of each state into, in both themes."""


@pytest.fixture(scope="module")
def shop(sources: dict[str, MariadbServer], target: MariadbServer, store: str) -> Iterator[Shop]:
    with ThrowawayCluster(store, 1, 2, master=PATIENT) as cluster:
        made = Shop(cluster, {name: sources[name] for name in ("s1", "s2")}, target)
        made.create(ROWS)
        for name in made.sources:
            cluster.ctl("operate-source", "create", made.source_file(name))
        yield made


@pytest.fixture(scope="module")
def tab() -> Iterator[Page]:
    with chromium() as browser:
        yield new_tab(browser, viewport={"width": 1280, "height": 900})


def says(shop: Shop, tab: Page, words: str) -> str:
    """Wait until the first line of the overview says that, without a reload; what stands below it."""
    tab.goto(url(shop))
    tab.wait_for_selector(f"h1:has-text('{words}')")
    picture(tab, words)
    return tab.locator("p.because").inner_text() if tab.locator("p.because").count() else ""


def is_well(shop: Shop, tab: Page) -> None:
    says(shop, tab, shop.fine())


def picture(tab: Page, words: str) -> None:
    for theme in ("light", "dark") if PICTURES else ():
        tab.emulate_media(color_scheme="dark" if theme == "dark" else "light")
        name = re.sub(r"\W+", "-", words).lower()
        tab.screenshot(path=f"{PICTURES}/state-{name}-{theme}.png", full_page=True, animations="disabled")


def url(shop: Shop, path: str = "") -> str:
    return f"http://127.0.0.1:{shop.cluster.gates[0].port}/ui/{path}"


def follow(tab: Page, label: str, path: str) -> None:
    """Go where the first line leads."""
    tab.locator("p.because").get_by_role("link", name=label).click()
    tab.wait_for_url(f"**/ui/{path}")


def run(tab: Page, shop: Shop) -> None:
    """Run the command that the form prints, in place of sending it."""
    words = shlex.split(tab.locator("#command").inner_text())
    assert words[:2] == ["unshard", "ctl"]
    shop.cluster.told(*words[2:])


def test_a_running_copy(shop: Shop, tab: Page) -> None:
    """It is held by somebody who has the last row of each source in the target, so that it stands in the middle."""
    says(shop, tab, "Nothing is migrated yet")
    shop.target.run(
        "CREATE DATABASE shop", f"CREATE TABLE {TARGET.quoted} (id BIGINT PRIMARY KEY, note VARCHAR(40) NOT NULL)"
    )
    with closing(shop.target.connection()) as holds, holds.cursor() as cursor:
        cursor.execute("BEGIN")
        for source in shop.sources.values():
            ((last,),) = source.query(f"SELECT MAX(id) FROM {SHARDS[1].quoted}")
            cursor.execute(f"INSERT INTO {TARGET.quoted} VALUES ({last}, '')")
        tab.goto(url(shop, "do/start-task"))
        tab.get_by_label("Task file (YAML)").fill(in_small_files(shop))
        tab.get_by_role("button", name="Start a task").click()
        says(shop, tab, "Task shop copies its tables")
        follow(tab, "Copy by table", "tasks/shop/copy")
        tab.goto(url(shop, "tasks/shop/tables"))
        row = f"tbody tr:has-text('{SHARDS[1]}'):has-text('{TARGET}'):has-text('s2'):has-text('loading')"
        tab.wait_for_selector(f"{row}:has-text('kB')")
        tab.wait_for_selector("main:has-text(' left on s2')")
        picture(tab, "tables of a copy")
        tab.goto(url(shop, "tasks/shop"))
        tab.wait_for_selector("#chart-lag:has-text('No data yet')")
        picture(tab, "charts of a copy")
        says(shop, tab, "Task shop copies its tables")
        cursor.execute("ROLLBACK")
    shop.all_move()
    is_well(shop, tab)


def in_small_files(shop: Shop) -> str:
    """The task's file, with a dump of many files for a table."""
    form = yaml.safe_load(Path(shop.task_file(mydumpers={"own": {"rows": A_FILE}})).read_text())
    for instance in form["mysql-instances"]:
        instance["mydumper-config-name"] = "own"
    return yaml.safe_dump(form)


def test_a_paused_task(shop: Shop, tab: Page) -> None:
    tab.goto(url(shop, "tasks/shop"))
    tab.get_by_role("link", name="Pause", exact=True).click()
    run(tab, shop)
    below = says(shop, tab, "Task shop is paused")
    assert "By hand." in below
    assert re.search(r"since \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC", below), below
    follow(tab, "The task", "tasks/shop")
    assert tab.get_by_role("link", name="Pause", exact=True).count() == 0
    last = shop.add("s1")
    tab.get_by_role("link", name="Resume", exact=True).click()
    run(tab, shop)
    shop.until(shop.arrives(last), "a row of the time in which it was paused")
    is_well(shop, tab)


def test_a_stopped_relay(shop: Shop, tab: Page) -> None:
    tab.goto(url(shop, "cluster"))
    tab.locator("tr:has-text('s2')").get_by_role("link", name="Pause the relay").first.click()
    run(tab, shop)
    says(shop, tab, "The relay of source s2 is paused")
    follow(tab, "Cluster", "cluster")
    tab.get_by_role("link", name="Resume the relay").click()
    run(tab, shop)
    shop.moves("s2")
    is_well(shop, tab)


def test_a_task_that_waits_and_then_lags(shop: Shop, tab: Page) -> None:
    last = shop.add("s1")
    shop.until(shop.arrives(last), "the row that is to be changed")
    with closing(shop.target.connection()) as holds, holds.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute(f"UPDATE {TARGET.quoted} SET note = 'held' WHERE id = {last}")
        for shard in SHARDS:
            shop.sources["s1"].run(f"UPDATE {shard.quoted} SET note = 'new' WHERE id = {last}")
        assert "Source s1:" in says(shop, tab, "Task shop waits")
        assert "s1" in says(shop, tab, "Task shop lags by"), "by name alone, or with what it waits for"
        follow(tab, "The task", "tasks/shop")
        assert "lagging" in tab.inner_text("tr:has-text('s1')")
    is_well(shop, tab)


def test_a_lost_worker(shop: Shop, tab: Page) -> None:
    lost = shop.worker_of("s2")
    lost.kill()
    shop.gives_up(lost)
    assert "Source s2 is not served." in says(shop, tab, f"Worker {lost.name} is lost")
    follow(tab, "Cluster", "cluster")
    lost.start()
    shop.moves("s2")
    is_well(shop, tab)
